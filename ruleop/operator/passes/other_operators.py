"""Notices operators of other names that reconcile the same custom resources: their selectors or namespaces overlap, or
this is such an operator with another name.

Each would delete the other's children. Nothing is read for this. A CR shows it by the finalizer of the other; and the
response to a write of its status, by the other's field manager, if that has written it since the last response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.names import DEFAULT_OPERATOR, RESERVED_PREFIX, operator_of_manager, status_manager
from ruleop.operator.queue import Request
from ruleop.planning import Event
from ruleop.planning.model.marks import other_operators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.operator.passes.pass_log import Events
    from ruleop.operator.telemetry import Metrics


class OtherOperators:
    def __init__(self, events: Events, metrics: Metrics, name: str = DEFAULT_OPERATOR) -> None:
        """`name`: of this operator."""
        self.events, self.metrics, self.name = events, metrics, name
        self.status_manager, self.finalizer = status_manager(name), f"{RESERVED_PREFIX}{name}"
        self.usual = [self.finalizer]  # all finalizers of most CRs that have any
        self.times: dict[ObjectKey, dict[str, str]] = {}  # of the last write of the status by others, by their names
        self._by_status: dict[ObjectKey, str] = {}  # the other one that has written it since the last response
        self.found: dict[ObjectKey, str] = {}  # as reported
        self._logged: set[str] = set()
        self.log = structlog.get_logger()

    def notice(self, resource: Object) -> None:
        """Called in each pass of a CR that this operator reconciles."""
        finalizers = resource["metadata"].get("finalizers")
        if not (self.times or self.found or (finalizers and finalizers != self.usual)):
            return  # there is no sign of others
        key = ObjectKey.of(resource)
        names = other_operators(resource, self.finalizer)
        other = names[0] if names else self._by_status.get(key, "")
        if other == self.found.get(key, ""):
            return
        if not other:
            self._set(key, "")
            return
        self._set(key, other)
        message = (
            f"the operators {self.name} and {other} both reconcile it: let only one of them select it, by namespaces "
            f"or selector; if {other} is a former name of {self.name}, run `ruleop rename {other}`"
        )
        self.events.record(resource, [Event("Warning", "OtherOperator", message)])
        if other not in self._logged:
            self._logged.add(other)
            log = self.log.bind(controller=str(key.group_kind), resource=str(Request.of(resource)))
            log.warning("another operator reconciles the same custom resources", operator=self.name, other=other)

    def status_written(self, key: ObjectKey, response: Object) -> None:
        """`response`: to a write of the status. Called unless nobody else has written one."""
        times = {other: time for other, time in _writes_of_status(response) if other != self.name}
        before = self.times.pop(key, {})
        self._by_status.pop(key, None)
        if times:
            self.times[key] = times
            for other, time in times.items():
                if other in before and time > before[other]:  # the first may be of long ago, under a former name
                    self._by_status[key] = other

    def remove(self, key: ObjectKey) -> None:
        """The CR is gone, or another process of this operator reconciles it."""
        self.times.pop(key, None)
        self._by_status.pop(key, None)
        self._set(key, "")

    def _set(self, key: ObjectKey, other: str) -> None:
        if other:
            self.found[key] = other
        elif self.found.pop(key, None) is None:
            return
        self.metrics.shared_resources.set(len(self.found))


def _writes_of_status(response: Object) -> Iterator[tuple[str, str]]:
    """The operators that have written the status, and when they did last."""
    for entry in response["metadata"].get("managedFields") or ():
        if entry.get("subresource") == "status" and (name := operator_of_manager(str(entry.get("manager")))):
            yield name, str(entry.get("time"))
