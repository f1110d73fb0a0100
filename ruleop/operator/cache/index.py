"""Maps a changed object to the CRs that it concerns: by ruleop's label, by name, by selector, or by owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.kubernetes.kinds import GroupKind, Object, ObjectKey, owners_of
from ruleop.kubernetes.labels import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.operator.queue.request import Request
    from ruleop.planning.model.targets import Target


class Index:
    """The index of one watched kind. Each pass updates the entry of its CR; events are looked up."""

    def __init__(self) -> None:
        self._part_of: dict[str, Request] = {}
        self._targets: dict[Request, tuple[str, tuple[Target, ...]]] = {}
        self._observers: dict[_IndexKey, set[Request]] = {}

    def add(self, request: Request, part_of: str) -> None:
        """Adds a CR whose targets are not known yet: its children are."""
        if request not in self._targets:
            self.update(request, part_of)

    def update(self, request: Request, part_of: str, targets: Iterable[Target] = ()) -> bool:
        """Sets the entry of a CR. Returns whether it is new or has changed."""
        entry = (part_of, tuple(targets))
        if self._targets.get(request) == entry:
            return False
        self.remove(request)
        self._targets[request] = entry
        self._part_of[part_of] = request
        for target in entry[1]:
            self._observers.setdefault(_index_key(target), set()).add(request)
        return True

    def remove(self, request: Request) -> None:
        part_of, targets = self._targets.pop(request, ("", ()))
        if self._part_of.get(part_of) == request:
            del self._part_of[part_of]
        for target in targets:
            key = _index_key(target)
            observers = self._observers.get(key, set())
            observers.discard(request)
            if not observers:  # names change with the CRs, so empty entries would accumulate
                self._observers.pop(key, None)

    def owner(self, part_of: str) -> Request | None:
        """The CR whose children have this value of ruleop's label; None if no known CR has."""
        return self._part_of.get(part_of)

    def observers_of(self, obj: Object) -> set[Request]:
        """The CRs that observe an object. For a change, it is called with the old and with the new object."""
        key, labels, owners = ObjectKey.of(obj), labels_of(obj), owners_of(obj["metadata"])
        found: set[Request] = set()
        for namespace in (key.namespace, None):
            found |= self._observers.get((key.group_kind, namespace, key.name), set())
            # A selector is indexed by its last label only; planning compares the others.
            for pair in (*labels.items(), None):
                found |= self._observers.get((key.group_kind, namespace, pair), set())
            for uid in owners:
                found |= self._observers.get((key.group_kind, namespace, (uid,)), set())
        return found


_IndexKey: TypeAlias = tuple[GroupKind, str | None, str | tuple[str, str] | tuple[str] | None]
"""Kind, namespace, and a name, a label, the uid of an owner, or None for all."""


def _index_key(target: Target) -> _IndexKey:
    if target.owner:
        return target.kind, target.namespace, (target.owner,)
    if target.name is not None:
        return target.kind, target.namespace, target.name
    return target.kind, target.namespace, target.labels[-1] if target.labels else None
