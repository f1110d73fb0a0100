"""Immutable fields of children that a change of the custom resource would change.

The API server rejects the change, and the child stays as it was. Either the CRD makes the field of the spec immutable
too, by a rule with `oldSelf`, or `apply.onImmutable` says that the child is recreated. A Job is written once: if its
name stays the same, a change of its Pod's template has no effect at all.

Whether a field is immutable is not another table: two versions of the body that differ in this field alone are
compared as two versions of the object are.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes
from ruleop.kubernetes.kinds import GroupKind
from ruleop.language.templates.syntax import names_in
from ruleop.planning import SENSITIVE
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.authoring.checking.dataflow import Path, Sources
    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import SlotPlace
    from ruleop.language.templates.bodies.body import BodyField, FieldPath

_WHOLE: Final = re.compile(r"\b(self\s*==\s*oldSelf|oldSelf\s*==\s*self)\b(?!\s*[.\[])")
_TEMPLATE: Final = ("spec", "template")
_TYPES: Final = frozenset({("type",), ("spec", "type")})
_NAMES: Final = frozenset({("metadata", "name"), ("metadata", "namespace")})
_JOB: Final = GroupKind("batch", "Job")


def check_immutable_changes(sources: Sources, findings: Findings) -> None:
    if sources.crd is None:
        return  # nothing is known of the spec
    for part in sources.body_parts:
        child = part.child
        if child is None or child.final or child.table.patch is not None or child.run is not None:
            continue
        if child.create_only:
            _check_job(part, child, sources, findings)
        else:
            _check_child(part, child, sources, findings)


def _check_child(part: RulePart, child: ChildDraft, sources: Sources, findings: Findings) -> None:
    ignored = [each.path.segments for each in child.ignore if each.path is not None and each.when is None]
    found: dict[tuple[SlotPlace, Kind], str] = {}
    for body in sources.bodies(part):
        literals = tuple((each.path, each.value) for each in body.fields if 0 < len(each.path) < 3 and not each.pieces)
        literals += tuple(
            (each.path, each.value) for each in body.fields if each.path in _TYPES and not any(each.slots)
        )
        for each in body.fields:
            slots = [slot.place for slot in each.slots]
            if slots and not any(path == each.path[: len(path)] for path in ignored):
                path = (*each.path, "x") if each.spread else each.path
                if (
                    path
                    and not _is_recreated(child, body.kind)
                    and (immutable := _immutable(body.kind, path, literals))
                ):
                    found.update(dict.fromkeys(((place, body.kind) for place in slots), immutable))
    read = _read_by_name(part, sources) if found else None
    if read is None:
        return
    changing = sources.places(part, _Mutable(sources, read).accepts)
    has_schema = sources.watch.draft.table.schema is not None
    rule = "`immutable=true`" if has_schema else "`self == oldSelf` in the CRD"
    for (place, kind), immutable in found.items():
        if place in changing:
            recreate = "" if _keeps_data(kind) else ", or set `apply: {onImmutable: recreate}`"
            message = (
                f"`{place.expression}` can change, and {immutable} of a {kind.kind} cannot: make the field of the spec "
                f"immutable ({rule}){recreate}"
            )
            findings.warning("immutable-change", message, place.site, word=place.expression)


def _is_recreated(child: ChildDraft, kind: Kind) -> bool:
    """Whether the rule may say that the object is recreated: of kinds that keep data, the child itself has to."""
    own = child.table.apply.on_immutable if child.table.apply is not None else None
    found = own if _keeps_data(kind) else child.on_immutable
    return found is not None and found.compiled.constant != "fail"


def _keeps_data(kind: Kind) -> bool:
    return (kind.group, kind.kind) in SENSITIVE


def _check_job(part: RulePart, child: ChildDraft, sources: Sources, findings: Findings) -> None:
    """Reports one value of the Pod's template, the image if that can change."""
    if child.strategy is not None:
        return  # somebody has chosen to create it once
    fields = [each for body in sources.bodies(part) if body.kind.versionless == _JOB for each in body.fields]
    in_pods = [each for each in fields if each.path[: len(_TEMPLATE)] == _TEMPLATE and any(each.slots)]
    if not in_pods or _read_by_name(part, sources) != frozenset():
        return
    changing = sources.places(part, _Mutable(sources).accepts)
    places = [slot.place for each in sorted(in_pods, key=_is_no_image) for slot in each.slots if slot.place in changing]
    if places:
        value = places[0].expression
        message = (
            f"`{value}` can change, and a Job of this name is not run again: add the value to the name with "
            f'`dns_label`, or set `once: "{{{{ {value} }}}}"`, `apply: {{strategy: merge, onImmutable: recreate}}`, or '
            "`apply: {strategy: create-only}` to keep the first one"
        )
        findings.warning("stale-job", message, places[0].site, word=value)


def _is_no_image(found: BodyField) -> bool:
    return found.path[-1:] != ("image",)


# -- immutable fields --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _immutable(kind: Kind, path: FieldPath, literals: tuple[tuple[FieldPath, Any], ...]) -> str:
    """The immutable field that changes with this one, in an object with these literals; "" if there is none."""
    old, new = (_object(kind, ((path, value), *literals)) for value in ("a", "b"))
    if kind.kind == "PersistentVolumeClaim":
        old["status"] = {"phase": "Bound"}  # so that the size may grow
    if kind.kind == "Service" and isinstance(spec := old.get("spec"), dict) and "clusterIP" in spec:
        old["spec"] = {"clusterIPs": [spec["clusterIP"]], **spec}  # as the server completes it
    changes = immutable_changes(new, old)
    written = ".".join(map(str, path))
    return next((each for each in changes if written.startswith(each)), written) if changes else ""


def _object(kind: Kind, values: Iterable[tuple[FieldPath, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, value in values:
        at: Any = found
        for step, below in zip(path, (*path[1:], None), strict=True):
            inner: Any = value if below is None else [] if isinstance(below, int) else {}
            if isinstance(at, list):
                at[:] = at or [inner]
                at = at[0]
            elif isinstance(at, dict):
                at = at.setdefault(str(step), inner)
    return {**found, "apiVersion": kind.api_version, "kind": kind.kind}


# -- fields of the spec that may change --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Mutable:
    """Fields of the spec that may change while the custom resource exists, and none of those by which the object is
    named: another value is another object."""

    sources: Sources
    named_by: frozenset[Path] = frozenset()

    def accepts(self, path: Path) -> bool:
        if any(path[: len(each)] == each for each in self.named_by):
            return False
        return self.sources.is_of_spec(path) and not self._is_guarded(path)

    def _is_guarded(self, path: Path) -> bool:
        """Whether the CRD has a rule about a change of the field: its own, or one of a parent that mentions it or
        compares the whole."""
        for length in range(len(path) + 1):
            schema = self.sources.schema(path[:length]) or {}
            name = path[length] if length < len(path) else None
            for each in schema.get("x-kubernetes-validations") or ():
                rule = str(each.get("rule", ""))
                mentions = name is not None and re.search(rf"\b{re.escape(name)}\b", rule)
                if "oldSelf" in rule and (length == len(path) or mentions or _WHOLE.search(rule)):
                    return True
        return len((self.sources.schema(path) or {}).get("enum") or ()) == 1


def _read_by_name(part: RulePart, sources: Sources) -> frozenset[Path] | None:
    """The fields of the spec on which the name or the namespace of the object may depend; None if they are not known,
    as where a template names it by a variable of its own."""
    named = {
        slot.place: names_in(slot.node)
        for body in sources.bodies(part)
        for each in body.fields
        if each.path in _NAMES or (each.spread and each.path == ("metadata",))
        for slot in each.slots
    }
    found = {path for place, paths in sources.origins(part).items() if place in named for path in paths}
    for each in sources.watch.parts:
        if each.key == "namespace" and each.child is part.child:
            found = found.union(*sources.origins(each).values())
    is_known = all(names <= part.view.names for names in named.values())
    if not is_known or any(path[0] not in ("metadata", "spec") for path in found):
        return None
    return frozenset(path for path in found if path[0] == "spec")
