"""Events have two groups, v1 and events.k8s.io/v1, with other names for the same fields: one object, shown in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ruleop.kinds import Object

_NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_OLD_NAMES: Final = {new: old for old, new in _NEW_NAMES.items()}
_OMITTED_IF_EMPTY: Final = ("reportingController", "reportingInstance")


def to_new_event(event: Object) -> dict[str, Any]:
    """The stored v1 Event as one of events.k8s.io/v1."""
    found = {_NEW_NAMES.get(name, name): value for name, value in event.items()}
    for name in _OMITTED_IF_EMPTY:
        if found.get(name) == "":
            del found[name]
    return {**found, "apiVersion": "events.k8s.io/v1"}


def to_old_event(event: Object) -> dict[str, Any]:
    """An Event of events.k8s.io/v1 as it is stored."""
    return {**{_OLD_NAMES.get(name, name): value for name, value in event.items()}, "apiVersion": "v1"}
