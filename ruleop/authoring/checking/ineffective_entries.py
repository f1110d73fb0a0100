"""Entries of watches.yaml that have no effect: names that nothing reads, paths of `apply` that lead nowhere, and short
names that kubectl takes for another kind.

A path may be set for one child or, in a watch or a file, for all of them. A shared path must lead somewhere in one of
the children. Loading refuses what is wrong with an owned path by its form; a schema may be older than the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.builtin.builtin_types import served_resources
from ruleop.language.rules.checks.child_bodies import first_mistake, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.errors import Site
    from ruleop.kubernetes.merge import Path
    from ruleop.language.rules import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft
    from ruleop.language.rules.loading import Loaded, Watch


def check_unused_names(loaded: Loaded, findings: Findings) -> None:
    """A name that several watches share is used if one of them uses it."""
    unused: dict[tuple[Site, str], bool] = {}
    for watch in loaded.watches:
        read = {name for part in watch.parts for name in part.compiled.names}
        for what, name, site in _defined(watch):
            message = f'nothing reads {what} "{name}": remove it'
            unused[site, message] = unused.get((site, message), True) and name not in read
    for (site, message), is_unused in unused.items():
        if is_unused:
            findings.warning("unused-name", message, site)


def _defined(watch: Watch) -> Iterator[tuple[str, str, Site]]:
    for entry in watch.draft.let:
        yield "the value of let", entry.name, entry.site
    for observed in watch.draft.observed.values():
        yield "the observed resource", observed.name, observed.site


def check_short_names(loaded: Loaded, findings: Findings) -> None:
    builtin = {
        name: each.kind.kind for each in served_resources() for name in (*each.short_names, each.plural, each.singular)
    }
    for watch in loaded.watches:
        schema = watch.draft.table.schema
        for word in schema.short_names if schema is not None else ():
            if (other := builtin.get(word.text)) is not None:
                message = f'kubectl takes "{word.text}" for {other}: choose another short name'
                findings.warning("taken-name", message, word.site)


def check_apply_paths(loaded: Loaded, findings: Findings) -> None:
    reasons_by_path: dict[tuple[str, Path, Site], list[str]] = {}
    for watch in loaded.watches:
        for child in watch.draft.everyone:
            for each in _paths(child):
                reasons_by_path.setdefault(each, []).append(_reason(child, each[1], loaded))
    for (what, path, site), reasons in reasons_by_path.items():
        if all(reasons):
            findings.mistake("unknown-field", f'{what} "{path}": {reasons[0]}', site)


def _paths(child: ChildDraft) -> Iterator[tuple[str, Path, Site]]:
    for ignored in child.ignore:
        if ignored.path is not None:
            yield "an ignored path", ignored.path, ignored.key_sites.get("path", ignored.site)
    for owned in child.own:
        yield "an owned path", owned.path, owned.site


def _reason(child: ChildDraft, path: Path, loaded: Loaded) -> str:
    """The reason that no object of the child can have the field; "" if one can."""
    crds = loaded.project.crds
    reasons = [first_mistake(path.segments, kind, shape_of(kind, crds)) for kind in sorted(child.kinds)]
    return reasons[0] if reasons and all(reasons) else ""
