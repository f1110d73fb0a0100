"""Records Events on a custom resource, and logs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ruleop.core.kinds import Kind, Object, ObjectKey
from ruleop.operator.engine.queue.request import Request
from ruleop.operator.kube.client.event_recorder import EventRecorder, Happening

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.planning import Event


class Events:
    def __init__(self, recorder: EventRecorder, *, dry_run: bool = False) -> None:
        self.recorder = recorder
        self.dry_run = dry_run
        self.log = structlog.get_logger()

    def record(self, resource: Object, events: Iterable[Event]) -> None:
        for event in events:
            key = ObjectKey.of(resource)
            log = self.log.bind(controller=str(key.group_kind), resource=str(Request.of(resource)))
            if self.dry_run:
                log.info("dry run", would=f"record the event {event.reason}", message=event.message)
                continue
            log.info("event recorded", type=event.type, reason=event.reason, message=event.message)
            uid, version = resource["metadata"].get("uid", ""), Kind.of(resource).version
            warning = event.type == "Warning"
            self.recorder.record(Happening(key, version, uid, event.reason, event.message, warning=warning))
