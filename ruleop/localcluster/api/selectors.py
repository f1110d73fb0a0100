"""Label and field selectors of list and watch requests, as predicates over objects.

Mistakes raise Rejected with the real server's message. Fields are those of the index of a kind: a selector by any other
field is an error, not an empty result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.kubernetes.labels import label_requirements, meets
from ruleop.localcluster.status_errors import bad_request

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Kind, Object
    from ruleop.localcluster.kinds import ServedKind

Predicate: TypeAlias = Callable[["Object"], bool]

_COMMON: Final = ("metadata.name", "metadata.namespace")
_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_OF_PODS: Final = ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName", "hostNetwork")
_OF_POD_STATUS: Final = ("phase", "podIP", "podIPs", "nominatedNodeName")
_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (*(f"spec.{name}" for name in _OF_PODS), *(f"status.{name}" for name in _OF_POD_STATUS)),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Event"): (
        *(f"involvedObject.{name}" for name in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "Event"): (*(f"regarding.{name}" for name in _INVOLVED), "reason", "reportingController", "type"),
    ("", "Namespace"): ("status.phase",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("batch", "Job"): ("status.successful",),
}
"""The fields by which the server selects objects of a kind, beside their names and namespaces."""

_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "status.successful": ("status", "succeeded"),
    "source": ("source", "component"),
}
"""Fields that the object has under another name."""


def label_selector(text: str) -> Predicate | None:
    """A predicate; None for a selector that selects everything. Raises Rejected."""
    try:
        requirements = label_requirements(text)
    except ValueError as error:
        raise bad_request(str(error)) from None
    if not requirements:
        return None
    if all(operator == "In" and len(values) == 1 for _, operator, values in requirements):
        return _with_labels([(key, next(iter(values))) for key, _, values in requirements])
    return lambda obj: meets((obj.get("metadata") or {}).get("labels") or {}, requirements)


def _with_labels(pairs: list[tuple[str, str]]) -> Predicate:
    def selects(obj: Object) -> bool:
        labels = (obj.get("metadata") or {}).get("labels") or {}
        return all(labels.get(key) == value for key, value in pairs)

    return selects


# Field selectors


def field_selector(text: str, kind: Kind, *, selectable: Iterable[str] | None = None) -> Predicate | None:
    """A predicate; None for a selector that selects everything. `selectable` are the selectableFields of a custom kind,
    as paths without the leading dot. Raises Rejected."""
    terms = field_terms(text)
    own = _FIELDS.get((kind.group, kind.kind), ())
    known = {*_COMMON, *own, *(selectable or ())}
    tests = []
    for path, value, negated in terms:
        if path not in known:
            if own or selectable is not None:
                raise bad_request(f"field label not supported: {path}")
            raise bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        tests.append((_ELSEWHERE.get(path) or tuple(path.split(".")), value, negated))
    if not tests:
        return None
    return lambda obj: all((_field_text(obj, names) == value) != negated for names, value, negated in tests)


def field_terms(text: str) -> list[tuple[str, str, bool]]:
    """The terms of a selector: path, value, and whether it is `!=`. Raises Rejected."""
    terms = []
    for part in filter(None, text.split(",")):
        match = re.search(r"!=|==|=", part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((part[: match.start()], part[match.end() :], match[0] == "!="))
    return terms


def _field_text(obj: Object, names: tuple[str, ...]) -> str:
    value: JSON = obj
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return {"unschedulable": "false", "hostNetwork": "false", "succeeded": "0"}.get(names[-1], "")  # as in Go
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def parse_selection(query: Mapping[str, str], served: ServedKind) -> Predicate | None:
    """None selects all. Raises Rejected."""
    labels = label_selector(query.get("labelSelector", ""))
    fields = field_selector(
        query.get("fieldSelector", ""), served.kind, selectable=served.selectable if served.is_custom else None
    )
    if labels is None or fields is None:
        return labels or fields
    return lambda obj: labels(obj) and fields(obj)
