"""The scale subresource: the replicas of an object as autoscaling/v1 Scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.errors import Cause, bad_request, invalid, invalid_named

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.kinds.served import Served


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


def scaled(served: Served, obj: Object, scale: Any) -> dict[str, Any]:
    """The object with the replicas of a Scale."""
    assert served.scale is not None
    replicas = (scale.get("spec") or {}).get("replicas", 0) if isinstance(scale, dict) else None
    if type(replicas) is not int:
        raise bad_request("spec.replicas must be an integer")
    if replicas < 0:
        name = obj["metadata"]["name"]
        if served.is_custom:
            message = f"Invalid value: {replicas}: should be a non-negative integer"
            raise invalid(served.kind, name, [Cause("FieldValueInvalid", message, ".spec.replicas")])
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", message, "spec.replicas")
        raise invalid_named("autoscaling", "Scale", name, [cause])
    found = _with(obj, served.scale.replicas.lstrip(".").split("."), replicas)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        found = {**found, "metadata": {**found["metadata"], "resourceVersion": version}}
    return found


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
    if served.is_custom:
        found = _at(obj, served.scale.selector)
        return found if isinstance(found, str) else ""
    labels = _at(obj, "spec.selector.matchLabels")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if isinstance(labels, dict) else ""
