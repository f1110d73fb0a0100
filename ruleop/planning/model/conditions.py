"""The conditions of a custom resource: Ready, Reconciling and Stalled, as in kstatus, and those of the rules."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.messages import MAX_MESSAGE, shortened
from ruleop.planning.model.marks import PAUSED
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object

FINALIZED: Final = "Finalized"
PAUSE: Final = "Paused"
"""A condition's type, and the reason of all conditions in a pause."""

ROLLOUT: Final = "Rollout"
"""The type of the condition that names the revision of the rules that a custom resource has; with `rollout` only."""
_REVISION: Final = re.compile(r"revision ([0-9a-f]{12})")

NEGATIVE: Final = frozenset({"Reconciling", "Stalled"})
"""Conditions whose good value is False."""


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    reason: str
    message: str = ""

    def __post_init__(self) -> None:
        if len(self.message) > MAX_MESSAGE:
            object.__setattr__(self, "message", shortened(self.message, MAX_MESSAGE))

    def as_json(self) -> dict[str, str]:
        return {"type": self.type, "status": self.status, "reason": self.reason, "message": self.message}

    @property
    def is_good(self) -> bool:
        return (self.status == "True") != (self.type in NEGATIVE)


@dataclass(frozen=True, slots=True)
class Conditions:
    """At most one of Reconciling and Stalled is True, and neither is when Ready is."""

    ready: Condition
    reconciling: Condition
    stalled: Condition
    paused: Condition | None = None
    custom: tuple[Condition, ...] = ()  # of the rules

    @classmethod
    def of(
        cls, reason: str, message: str = "", *, ready: bool = False, reconciling: bool = False, stalled: bool = False
    ) -> Conditions:
        other = "Ready" if ready else reason
        return cls(
            Condition("Ready", "True" if ready else "False", reason, message),
            Condition("Reconciling", "True" if reconciling else "False", reason if reconciling else other),
            Condition("Stalled", "True" if stalled else "False", reason if stalled else other),
        )

    @classmethod
    def in_pause(cls, resource: Object, last_reason: str) -> Conditions:
        """The conditions of a paused resource. Ready and Stalled keep their values, Reconciling is False, and Paused is
        True. Ready of a resource that was never reconciled is Unknown."""
        why = f"the annotation {PAUSED} stops all changes"
        return cls(
            as_written(resource, "Ready") or Condition("Ready", "Unknown", last_reason or PAUSE, why),
            Condition("Reconciling", "False", PAUSE),
            as_written(resource, "Stalled") or Condition("Stalled", "False", PAUSE),
            Condition(PAUSE, "True", PAUSE, why),
        )

    def __iter__(self) -> Iterator[Condition]:
        yield from (self.ready, self.reconciling, self.stalled)
        if self.paused is not None:
            yield self.paused
        yield from self.custom

    def with_note(self, note: str) -> Conditions:
        """The conditions with a note appended to the message of Ready."""
        message = "; ".join(filter(None, [self.ready.message, note]))
        return replace(self, ready=replace(self.ready, message=message))

    def with_messages(self, change: Callable[[str], str]) -> Conditions:
        """The conditions with changed messages."""

        def changed(each: Condition) -> Condition:
            return replace(each, message=change(each.message))

        return Conditions(
            changed(self.ready),
            changed(self.reconciling),
            changed(self.stalled),
            changed(self.paused) if self.paused is not None else None,
            tuple(map(changed, self.custom)),
        )


def as_written(resource: Object, type_: str) -> Condition | None:
    """A condition in the status of a resource, without its times."""
    live = find_condition(resource, type_)
    return Condition(*(str(live.get(name) or "") for name in ("type", "status", "reason", "message"))) if live else None


def type_of(condition: object) -> str:
    """The type of a condition in a status, where a schema may allow anything; empty for what is not a condition."""
    found = condition.get("type") if isinstance(condition, dict) else None
    return found if isinstance(found, str) else ""


def named_revision(condition: Mapping[str, object]) -> str:
    """The revision that a condition of the type ROLLOUT names; empty if it is not ruleop's."""
    found = _REVISION.match(str(condition.get("message") or "")) if type_of(condition) == ROLLOUT else None
    return found[1] if found is not None else ""


def find_condition(resource: Object, type_: str) -> Mapping[str, object]:
    """A condition in the status of a resource; empty if there is none."""
    status = resource.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and each.get("type") == type_:
            return each
    return {}
