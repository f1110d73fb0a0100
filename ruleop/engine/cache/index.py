"""Which CRs an event concerns. An event carries identity only, so all that is kept here is which CR belongs to a label,
a name or a selector."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.kinds import GroupKind, Object, ObjectKey
from ruleop.planning.marks import PART_OF
from ruleop.planning.scope import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.engine.queue.request import Request
    from ruleop.planning.targets import Target


class Index:
    """For one watched kind. The engine says what each CR observes after each pass; events ask."""

    def __init__(self) -> None:
        self._part_of: dict[str, Request] = {}
        self._targets: dict[Request, tuple[str, tuple[Target, ...]]] = {}
        self._observers: dict[_Place, set[Request]] = {}

    def keep(self, request: Request, part_of: str, targets: Iterable[Target] = ()) -> None:
        wanted = (part_of, tuple(targets))
        if self._targets.get(request) == wanted:
            return
        self.forget(request)
        self._targets[request] = wanted
        self._part_of[part_of] = request
        for target in wanted[1]:
            self._observers.setdefault(_place(target), set()).add(request)

    def forget(self, request: Request) -> None:
        part_of, targets = self._targets.pop(request, ("", ()))
        if self._part_of.get(part_of) == request:
            del self._part_of[part_of]
        for target in targets:
            place = _place(target)
            observers = self._observers.get(place, set())
            observers.discard(request)
            if not observers:  # names come and go with CRs, and must not be kept for ever
                self._observers.pop(place, None)

    def owner_of(self, labels: Mapping[str, str]) -> Request | None:
        """The CR whose child carries these labels. A label that matches no known CR is nobody's."""
        return self._part_of.get(labels.get(PART_OF, ""))

    def observers_of(self, obj: Object) -> set[Request]:
        """The CRs that observe an object, as it is or as it was."""
        key, labels = ObjectKey.of(obj), labels_of(obj)
        found: set[Request] = set()
        for namespace in (key.namespace, None):
            found |= self._observers.get((key.group_kind, namespace, key.name), set())
            # A selector is filed under one of its labels, the last one; the others are looked at when the CR is
            # planned.
            for pair in (*labels.items(), None):
                found |= self._observers.get((key.group_kind, namespace, pair), set())
        return found


_Place: TypeAlias = tuple[GroupKind, str | None, str | tuple[str, str] | None]
"""Kind, namespace, and a name, a label, or None for all."""


def _place(target: Target) -> _Place:
    if target.name is not None:
        return target.kind, target.namespace, target.name
    return target.kind, target.namespace, target.labels[-1] if target.labels else None
