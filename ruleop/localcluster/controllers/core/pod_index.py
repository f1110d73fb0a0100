"""The pods of each controller by their state, kept from events: thousands of pods are counted, not read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.store.object_store import Event, Name


@dataclass(slots=True)
class OwnedPods:
    """The names of an owner's pods that have not ended, the oldest first."""

    unready: dict[Name, None] = field(default_factory=dict)
    ready: dict[Name, None] = field(default_factory=dict)
    terminating: dict[Name, None] = field(default_factory=dict)

    @property
    def active(self) -> int:
        return len(self.unready) + len(self.ready)


class PodIndex:
    def __init__(self) -> None:
        self._by_owner: dict[str, OwnedPods] = {}

    def of(self, uid: str) -> OwnedPods:
        return self._by_owner.get(uid) or OwnedPods()

    def update(self, event: Event) -> None:
        before = None if event.old is None else self._place(event.old.obj)
        after = None if event.deleted else self._place(event.new.obj)
        if before is after:
            return
        if before is not None:
            before.pop(event.new.name, None)
        if after is not None:
            after[event.new.name] = None
        if event.deleted and (uid := _controller(event.new.obj)) and self._by_owner.get(uid) == OwnedPods():
            del self._by_owner[uid]

    def _place(self, pod: Object) -> dict[Name, None] | None:
        uid = _controller(pod)
        if not uid or is_over(pod):
            return None
        owned = self._by_owner.setdefault(uid, OwnedPods())
        if pod["metadata"].get("deletionTimestamp"):
            return owned.terminating
        return owned.ready if is_ready(pod) else owned.unready


def is_over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _controller(pod: Object) -> str:
    for each in pod["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            uid: str = each["uid"]
            return uid
    return ""
