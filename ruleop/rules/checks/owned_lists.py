"""`apply.own`: each path names a list of some child that is merged by keys, or as a set.

A path may be said for one child or, in a watch or a file, for all of them. A shared one has to fit one of the children that it reaches;
in the others it means nothing. Of kinds whose schema is not known before there is a cluster, any path is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge import Path, Selector
from ruleop.schema.nearest import did_you_mean
from ruleop.schema.table import builtin_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kinds import Kind
    from ruleop.rules.findings import Findings
    from ruleop.rules.language.parsed import ChildDraft, Draft
    from ruleop.rules.language.value_types import PlacedPath
    from ruleop.schema.crds import CustomResourceDefinition
    from ruleop.schema.shape import Shape


def check_owned(drafts: Iterable[Draft], crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    definitions = {f"{crd.kind}.{crd.group}": crd for crd in crds}
    refused: dict[PlacedPath, list[str | None]] = {}
    for draft in drafts:
        for child in draft.everyone:
            for owned in child.own:
                refused.setdefault(owned, []).append(_why_not_for(child, owned, definitions))
    for owned, reasons in refused.items():
        if (reason := reasons[0]) is not None and None not in reasons:
            findings.mistake("wrong-value", f'an owned path "{owned.path}": {reason}', owned.site)


def _why_not_for(child: ChildDraft, owned: PlacedPath, definitions: Mapping[str, CustomResourceDefinition]) -> str | None:
    """Why the child has no such list; None if it has, or may have."""
    if child.create_only:
        return "a child with the strategy create-only is never changed, so it cannot remove the items of others"
    reasons = [_why_not(owned.path, kind, _shape(kind, definitions)) for kind in sorted(child.kinds)]
    return reasons[0] if reasons and None not in reasons else None


def _shape(kind: Kind, definitions: Mapping[str, CustomResourceDefinition]) -> Shape | None:
    crd = definitions.get(str(kind.versionless))
    return builtin_shape(kind) or (crd.shape(kind.version) if crd is not None else None)


def _why_not(path: Path, kind: Kind, shape: Shape | None) -> str | None:
    if path.segments[0] == "metadata":
        return "the lists of metadata, such as finalizers, are shared with the API server and other controllers"
    if isinstance(path.segments[-1], Selector):
        return "this names an item: name its list"
    here = shape
    for segment in path.segments:
        if here is None or here.type == "any":
            return None
        if here.atomic or (here.type == "list" and here.list_type == "atomic"):
            return f"this is inside a list or map that {kind.kind} replaces as a whole: remove the path"
        if isinstance(segment, Selector):
            if here.type != "list":
                return f"[...] follows a list, and this is not a list in {kind.kind}"
            here = here.items
        elif here.type == "list":
            return f'"{segment}" follows a list: name one of its items, like [{here.keys[0] if here.keys else "name"}=...]'
        else:
            known, here = here, here.fields.get(segment) or here.values
            if here is None and not known.preserve_unknown:
                return f'{kind.kind} has no such field: "{segment}"{did_you_mean(segment, known.fields)}'
    if here is None or here.type == "any":
        return None
    if here.type != "list":
        return f"this is not a list in {kind.kind}"
    return f"{kind.kind} replaces this list as a whole already: remove the path" if here.list_type == "atomic" else None
