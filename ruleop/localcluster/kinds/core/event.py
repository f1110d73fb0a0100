"""Events have two APIs, v1 and events.k8s.io/v1, which show the same objects. They are stored as those of v1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object

_GROUP_VERSION: Final = "events.k8s.io/v1"
_NAMES: Final = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_NAMES_BACK: Final = {core: name for name, core in _NAMES.items()}
_ALWAYS: Final = {"reportingComponent": "", "reportingInstance": "", "source": {}}


def to_core(event: Object) -> dict[str, Any]:
    """The Event of events.k8s.io as one of v1."""
    found = {_NAMES.get(name, name): value for name, value in event.items()}
    return {**_ALWAYS, **found, "apiVersion": "v1"}


def from_core(event: Object) -> dict[str, Any]:
    """The Event of v1 as one of events.k8s.io."""
    found = {_NAMES_BACK.get(name, name): value for name, value in event.items()}
    for name in ("reportingController", "reportingInstance"):
        if not found.get(name):
            found.pop(name, None)
    return {**found, "apiVersion": _GROUP_VERSION}
