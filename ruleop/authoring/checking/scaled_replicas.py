"""Workloads of which both the rule and an autoscaler set `spec.replicas`.

Each pass reverts what the autoscaler has done, until it backs off. The field is left to the autoscaler by
`apply.ignore`, or by leaving it out. What reads the live object may follow the autoscaler, and is not reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.known_names import UnknownName
from ruleop.authoring.checking.references import SCALERS, references
from ruleop.language.templates.syntax import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.checking.known_names import KnownName, KnownNames
    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.language.rules import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft
    from ruleop.language.templates.bodies.body import Body, BodyField

_REPLICAS: Final = ("spec", "replicas")
_LEAVE_IT: Final = frozenset({"live", "omit"})


def check_scaled_replicas(names: KnownNames, findings: Findings) -> None:
    for part in names.sources.body_parts:
        for body in names.sources.bodies(part):
            if part.child is None or body.kind.versionless not in SCALERS:
                continue
            for reference in references(body):
                scaled = reference.kind, names.of_field(reference.name, part)
                for child, field in _set_replicas(*scaled, scaler=part.child, names=names):
                    message = (
                        f'the {body.kind.kind} of "{part.child.id}" sets `spec.replicas`, and each pass reverts it: '
                        f'add `apply: {{ignore: [spec.replicas]}}` to "{child.id}", or leave the field out'
                    )
                    findings.warning("scaled-replicas", message, field.site)


def _set_replicas(
    kind: GroupKind, name: KnownName, *, scaler: ChildDraft, names: KnownNames
) -> Iterator[tuple[ChildDraft, BodyField]]:
    """The children that are scaled under this name, with the fields by which they set their replicas."""
    if any(part == UnknownName() for part in name):
        return
    for part in names.sources.body_parts:
        child = part.child
        if child is None or _leaves_replicas(child) or _condition(child) not in ("", _condition(scaler)):
            continue
        named = [body for body in names.sources.bodies(part) if body.kind.versionless == kind]
        if all(names.of_object(body, part) == name for body in named):
            fields = [_replicas(body) for body in named]
            if None not in fields:
                yield from {(child.id, field.site): (child, field) for field in fields if field is not None}.values()


def _replicas(body: Body) -> BodyField | None:
    """The field, unless a condition may leave it to others."""
    found = next((each for each in body.fields if each.path == _REPLICAS), None)
    slots = [*found.slots] if found is not None else []
    return None if any(_LEAVE_IT & names_in(slot.node) for slot in slots) else found


def _leaves_replicas(child: ChildDraft) -> bool:
    ignored = (each.path.segments for each in child.ignore if each.path is not None)
    return (
        child.create_only
        or child.final
        or child.table.patch is not None
        or any(path == _REPLICAS[: len(path)] for path in ignored)
    )


def _condition(child: ChildDraft) -> str:
    return child.table.when.compiled.source if child.table.when is not None else ""
