"""The Events about some objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.explain_documents import Occurrence
from ruleop.kubernetes.kinds import Kind, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ruleop.authoring.live.reading.reader import Reader

EVENT: Final = Kind("", "v1", "Event")
MAX_EVENTS: Final = 12
SINGLE: Final = 6
"""Names of objects whose Events are listed one by one."""


async def events_about(reader: Reader, keys: Collection[ObjectKey], *, limit: int = MAX_EVENTS) -> list[Occurrence]:
    """The last Events about these objects, the latest first. Raises ApiError."""
    found: list[Occurrence] = []
    for namespace in sorted({key.namespace or "default" for key in keys}):
        for fields in _selectors(keys, namespace):
            async for page in reader.pages(EVENT, namespace, fields=fields):
                found += [
                    event
                    for each in page
                    if (event := _occurrence(each)) is not None and event.key in keys and _matters(event)
                ]
                found = sorted(found, key=lambda each: each.time, reverse=True)[:limit]
    return found


def _selectors(keys: Collection[ObjectKey], namespace: str) -> Iterable[str]:
    """A list for each name while they are few: a namespace may have many thousand Events about other objects."""
    names = sorted({key.name for key in keys if (key.namespace or "default") == namespace and key.name})
    return [f"involvedObject.name={name}" for name in names] if len(names) <= SINGLE else [""]


def _matters(event: Occurrence) -> bool:
    """The normal life of a pod does not explain why it is not ready."""
    return event.type == "Warning" or event.key.kind != "Pod"


def _occurrence(event: Mapping[str, Any]) -> Occurrence | None:
    about = event.get("involvedObject")
    if not isinstance(about, Mapping):
        return None
    kind = Kind.parse(str(about.get("apiVersion", "")), str(about.get("kind", "")))
    key = ObjectKey(kind.group, kind.kind, about.get("namespace") or "", str(about.get("name", "")))
    series: Mapping[str, Any] = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    time = next(filter(None, times), None) or event["metadata"].get("creationTimestamp") or ""
    count = series.get("count") or event.get("count") or 1
    type_, reason, message = (str(event.get(name) or "") for name in ("type", "reason", "message"))
    return Occurrence(key, type_, reason, message.strip(), f"{time[:19]}Z" if time else "", count)
