"""The parts of a request: the route that its path names and its verb, the options of writes, deletions and lists, the
tokens by which a list is continued, and label and field selectors.

The next page of a list shows the objects as they were at the version of its token.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from ruleop.kubernetes.labels import label_requirements, labels_of, meets
from ruleop.kubernetes.times import duration_parts
from ruleop.kubernetes.validation import FieldError, forbidden_value, required, too_long, unsupported
from ruleop.localcluster.object_store import Name
from ruleop.localcluster.status_errors import bad_request, internal, invalid_options
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import JSON, Kind, Object
    from ruleop.localcluster.http import Request
    from ruleop.localcluster.kinds import ServedKind


# -- routes and verbs ------------------------------------------------------------------------------------------------


_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def verb_of(request: Request, route: Route) -> str:
    if request.method == "GET":
        if route.name:
            return "get"
        return "watch" if request.query.get("watch") in TRUE else "list"
    if request.method == "DELETE":
        return "delete" if route.name else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())


class Route(NamedTuple):
    group: str
    version: str
    namespace: str
    plural: str
    name: str = ""
    subresource: str = ""


def parse_route(path: str) -> Route | None:
    """The resource or object of a path such as /apis/apps/v1/namespaces/shop/deployments/web/status; None if it names
    neither."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 and rest[2] != "proxy":
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Route(group, version, namespace, plural, name, subresource)


# -- options ---------------------------------------------------------------------------------------------------------


TRUE: Final = ("true", "1", "True")
PROPAGATIONS: Final = ("Foreground", "Background", "Orphan")


_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_LONGEST_MANAGER: Final = 128


@dataclass(frozen=True, slots=True)
class WriteOptions:
    manager: str = "unknown"  # "": who sets which fields is not recorded
    dry_run: bool = False
    field_validation: str = "Warn"  # Strict, Warn or Ignore
    force: bool = False
    is_patch: bool = False
    undecodable: int = 400  # the status where an object cannot be decoded
    is_stored: bool = False  # an update has the form of a stored object: nothing to decode or to fill in

    @classmethod
    def of(cls, query: Mapping[str, str], user_agent: str, options: str, *, is_apply: bool = False) -> WriteOptions:
        """`options` is the name of their kind: CreateOptions, UpdateOptions or PatchOptions."""
        errors = list(_validate_dry_run(query.get("dryRun")))
        manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
        if is_apply and not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
        if len(manager) > _LONGEST_MANAGER:
            errors.append(too_long("fieldManager", _LONGEST_MANAGER))
        if validation not in _VALIDATIONS:
            errors.append(unsupported("fieldValidation", validation, _VALIDATIONS))
        if "force" in query and options == "PatchOptions" and not is_apply:
            errors.append(forbidden_value("force", "may not be specified for non-apply patch"))
        if errors:
            raise invalid_options(options, *errors)
        return cls(
            manager or user_agent.partition("/")[0][:_LONGEST_MANAGER] or "unknown",
            "dryRun" in query,
            validation or "Warn",
            query.get("force") in ("true", "1"),
            options == "PatchOptions",
            {"PatchOptions": 500 if is_apply else 422}.get(options, 400),
        )


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    propagation: str = ""
    grace: int | None = None
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], body: Mapping[str, Any]) -> DeleteOptions:
        """`body` is decoded: its fields have their types. If there is one, the query says nothing."""
        if body:
            query = {}
        preconditions = body.get("preconditions") or {}
        propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
        dry_run = next(iter(body.get("dryRun") or ()), query.get("dryRun"))
        errors = list(_validate_dry_run(dry_run))
        if propagation and propagation not in PROPAGATIONS:
            errors.append(unsupported("propagationPolicy", propagation, (*PROPAGATIONS, "nil")))
        if errors:
            raise invalid_options("DeleteOptions", *errors)
        grace = body.get("gracePeriodSeconds")
        if grace is None and query.get("gracePeriodSeconds"):
            grace = _integer(query, "gracePeriodSeconds")
        return cls(
            dry_run is not None,
            propagation,
            grace,
            preconditions.get("uid") or "",
            preconditions.get("resourceVersion") or "",
        )


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The version of a list, or the version from which a watch starts."""

    version: int = 0
    exact: bool = False
    limit: int = 0
    token: str = ""
    initial_events: bool | None = None
    timeout: int = 0
    bookmarks: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str], *, watches: bool) -> ListOptions:
        version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
        token, initial = query.get("continue", ""), query.get("sendInitialEvents")
        limit, timeout = _integer(query, "limit"), _integer(query, "timeoutSeconds")
        if watches and initial is not None and match != "NotOlderThan":
            problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise invalid_options("ListOptions", forbidden_value("resourceVersionMatch", problem))
        if not watches and version and not version.isdecimal():
            raise bad_request(f"invalid resource version: {_not_a_version(version)}")
        if token and version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        return cls(
            version_of(version or "0"),
            match == "Exact",
            0 if version == "0" and not token else limit,  # such a list comes from the cache, as a whole
            token,
            None if initial is None else initial in TRUE,
            timeout,
            query.get("allowWatchBookmarks") in TRUE,
        )


def version_of(text: str) -> int:
    """A resourceVersion as a number. Raises Rejected."""
    if not text.isdecimal():
        raise internal(_not_a_version(text))
    return int(text)


def _not_a_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def _integer(query: Mapping[str, str], name: str) -> int:
    value = query.get(name) or "0"
    if not value.removeprefix("-").isdecimal():
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax')
    if not -(1 << 63) <= (found := int(value)) < 1 << 63:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range')
    return found


def _validate_dry_run(value: str | None) -> Iterator[FieldError]:
    if value not in (None, "All"):
        yield unsupported("dryRun", [value], ("All",))


_FORMAT: Final = "meta.k8s.io/v1"


def continue_token(version: int, after: Name, namespace: str) -> str:
    """The token of the page after an object. `namespace` is that of the list, "" for one of all namespaces."""
    start = "/".join(filter(None, ("" if namespace else after.namespace, after.name)))
    document = {"v": _FORMAT, "rv": version, "start": f"/{start}\0"}
    return base64.urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")


def read_token(token: str, namespace: str, *, namespaced: bool) -> tuple[int, Name]:
    """The version of a token, and the object after which the list is continued. Raises Rejected."""
    try:
        document = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, start = int(document["rv"]), str(document["start"])
    except (ValueError, LookupError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    key = start.removeprefix("/").removesuffix("\0")
    if not version or not key or document.get("v") != _FORMAT or ".." in key.split("/"):
        raise bad_request("invalid continue token: continue key is not valid: it is not of this server")
    if not namespaced or namespace:
        return version, Name(namespace, key)
    return version, Name(*key.partition("/")[::2])


LONGEST: Final = 60.0  # seconds: the server's own limit, which no request may exceed


def parse_timeout(query: Mapping[str, str]) -> float:
    """The seconds within which a request, other than a watch, is answered. Raises Rejected."""
    given = query.get("timeout")
    if not given:
        return LONGEST
    try:
        seconds = float(sum(duration_parts(given))) / 1e9
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(seconds, LONGEST) if seconds > 0 else LONGEST


# -- selectors -------------------------------------------------------------------------------------------------------
#
# Predicates over objects. Mistakes raise Rejected with the real server's message. Fields are those of the index of a
# kind: a selector by any other field is an error, not an empty result.


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
    return lambda obj: meets(labels_of(obj), requirements)


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
