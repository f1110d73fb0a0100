"""The scale subresource: the replicas of an object as autoscaling/v1 Scale."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation.field_errors import FieldError, invalid_value
from ruleop.localcluster.api.requests.request_bodies import read_body
from ruleop.localcluster.api.requests.request_objects import decode_unstored
from ruleop.localcluster.objects.go_text import go_text
from ruleop.localcluster.status_errors import SCHEME, Rejected, bad_request, internal, invalid, invalid_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.http.message import Request
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.kinds.served_resources import Registry


SCALE: Final = Kind("autoscaling", "v1", "Scale")
_MOST_REPLICAS: Final = (1 << 31) - 1
_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "<nil>",
}


def scale_of(served: Served, obj: Object) -> dict[str, Any]:
    assert served.scale is not None
    metadata = {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in obj["metadata"]
    }
    status: dict[str, Any] = {"replicas": _at(obj, served.scale.status_replicas) or 0}
    if selector := _selector(served, obj):
        status["selector"] = selector
    replicas = _at(obj, served.scale.replicas)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def read_scale(request: Request, served: Served, registry: Registry) -> Object:
    """The Scale in the body of a request. Raises Rejected."""
    with _as_refused(served):
        return decode_unstored(read_body(request, SCALE.kind), SCALE, registry).obj


def decoded_scale(served: Served, scale: Object, registry: Registry) -> Object:
    """A Scale as it is decoded from what a patch makes. Raises Rejected."""
    with _as_refused(served):
        return decode_unstored(scale, SCALE, registry).obj


@contextmanager
def _as_refused(served: Served) -> Iterator[None]:
    """For a custom resource, the server gives the same response to every invalid Scale."""
    try:
        yield
    except Rejected:
        if served.is_custom:
            raise bad_request(f'no kind is registered for the type v1.Scale in scheme "{SCHEME}"') from None
        raise


def scale_configuration(served: Served, scale: Object, registry: Registry) -> dict[str, Any]:
    """The configuration of an object that applies what a Scale configures."""
    assert served.scale is not None
    if served.is_custom:  # a mistake of Kubernetes
        name = f"{scale['metadata'].get('namespace', '')}/{scale['metadata']['name']}"
        raise internal(
            f"failed to convert new object ({name}; autoscaling/v1, Kind=Scale) to proper version: request to convert "
            "CR to an invalid group/version: autoscaling/v1"
        )
    kind, replicas = served.kind, (decoded_scale(served, scale, registry).get("spec") or {}).get("replicas")
    config = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": scale["metadata"]["name"]}}
    return config if replicas is None else _with(config, served.scale.replicas.split("."), replicas)


def scaled(served: Served, obj: Object, scale: Object) -> dict[str, Any]:
    """The object with the replicas of a Scale, which is decoded."""
    assert served.scale is not None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        name = obj["metadata"]["name"]
        if served.is_custom:
            error = invalid_value(".spec.replicas", replicas, "should be a non-negative integer")
            raise invalid(served.kind, name, [error])
        error = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_named("autoscaling", "Scale", name, [error])
    found = _with(obj, served.scale.replicas.lstrip(".").split("."), replicas)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        found = {**found, "metadata": {**found["metadata"], "resourceVersion": version}}
    return found


def validate_scale(served: Served, obj: Object) -> list[FieldError]:
    """Reasons that the replicas of a custom resource, or those in its status, cannot be shown in its scale
    subresource."""
    if served.scale is None:
        return []
    errors = []
    for path in (served.scale.replicas, served.scale.status_replicas):
        replicas, problem = _replicas_at(obj, path.split("."))
        if problem:
            errors.append(invalid_value(f".{path}", replicas, problem))
    return errors


def _replicas_at(obj: Any, names: list[str]) -> tuple[int, str]:
    """The number at a path, 0 if there is none, and what is wrong with it."""
    for depth, name in enumerate(names):
        if obj is None:
            return 0, ""
        if not isinstance(obj, dict):
            return 0, _accessor_problem(obj, names[: depth + 1], "map[string]interface{}")
        if name not in obj:
            return 0, ""
        obj = obj[name]
    if type(obj) is not int:
        return 0, _accessor_problem(obj, names, "int64")
    if obj < 0:
        return obj, "should be a non-negative integer"
    return obj, f"should be less than or equal to {_MOST_REPLICAS}" if obj > _MOST_REPLICAS else ""


def _accessor_problem(value: Any, names: list[str], expected: str) -> str:
    path = "".join(f".{name}" for name in names)
    return f"{path} accessor error: {go_text(value)} is of the type {_GO_TYPES[type(value)]}, expected {expected}"


def _at(obj: Any, path: str) -> Any:
    for name in path.lstrip(".").split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _with(obj: Any, names: list[str], value: Any) -> dict[str, Any]:
    first, *rest = names
    inner = obj if isinstance(obj, dict) else {}
    return {**inner, first: _with(inner.get(first), rest, value) if rest else value}


def _selector(served: Served, obj: Object) -> str:
    assert served.scale is not None
    labels = _at(obj, served.scale.selector)
    if served.is_custom:
        return labels if isinstance(labels, str) else ""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if isinstance(labels, dict) else ""
