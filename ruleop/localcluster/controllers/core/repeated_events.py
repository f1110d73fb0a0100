"""Writes the Events of controllers as their recorder in client-go does: equal ones are counted, similar ones combined,
and an object that has too many gets no more. A Deployment of a thousand pods has twenty-five Events, not a thousand.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.api.writes.object_writer import CONTROLLERS
from ruleop.localcluster.kinds.resources import EVENTS
from ruleop.localcluster.status_errors import Rejected
from ruleop.localcluster.store.object_store import Name
from ruleop.localcluster.timestamps import timestamp

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.localcluster.api.writes.object_writer import Writer
    from ruleop.localcluster.kinds.served_resources import Registry
    from ruleop.localcluster.store.object_store import Store

SIMILAR: Final = 10  # messages of one reason that are Events of their own
BURST: Final = 25  # Events that a component may record about an object at once
REFILL: Final = 300.0  # seconds until it may record one more
_COMBINED: Final = "(combined from similar events): "


@dataclass(slots=True)
class _Source:
    """The Events that one component has recorded about one object."""

    left: float = BURST
    since: float = field(default_factory=time.monotonic)
    messages: dict[str, dict[str, str]] = field(default_factory=dict)  # by reason: names of Events by their messages

    def may_record(self) -> bool:
        now = time.monotonic()
        self.left, self.since = min(BURST, self.left + (now - self.since) / REFILL), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Recorder:
    def __init__(self, store: Store, registry: Registry, writer: Writer) -> None:
        self._store, self._registry, self._writer = store, registry, writer
        self._sources: dict[str, dict[str, _Source]] = {}  # by the uid of the object and the component

    def record(self, obj: Object, reason: str, message: str, component: str, *, type_: str = "Normal") -> None:
        metadata = obj["metadata"]
        sources = self._sources.setdefault(metadata["uid"], {})
        source = sources.get(component) or sources.setdefault(component, _Source())
        if not source.may_record():
            return
        known = source.messages.setdefault(reason, {})
        if message not in known and len(known) >= SIMILAR - 1:
            message, key = f"{_COMBINED}{message}", _COMBINED
        else:
            key = message
        namespace = metadata.get("namespace") or "default"
        served = self._registry.of(EVENTS)
        assert served is not None
        now = timestamp(time.time())
        old = self._store.get(EVENTS, Name(namespace, known.get(key, "")))
        # No Event can be written where a namespace is being deleted.
        with contextlib.suppress(Rejected):
            if old is not None:
                counted = {"message": message, "count": old.obj.get("count", 1) + 1, "lastTimestamp": now}
                self._writer.update(served, old, {**old.obj, **counted}, "", CONTROLLERS)
            else:
                known[key] = f"{metadata['name']}.{time.time_ns():x}"
                event = _event(obj, known[key], now, {"reason": reason, "message": message, "type": type_}, component)
                self._writer.create(served, namespace, event)

    def remove(self, uid: str) -> None:
        """Removes what is known of an object that was deleted."""
        self._sources.pop(uid, None)


def _event(obj: Object, name: str, now: str, text: dict[str, str], component: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    about = {
        "kind": obj["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": obj["apiVersion"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": metadata.get("namespace") or "default"},
        "involvedObject": {key: value for key, value in about.items() if value},
        **text,
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": "",
    }
