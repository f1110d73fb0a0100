"""Kinds without a controller behind them: configuration, access control, namespaces."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.errors import Cause

if TYPE_CHECKING:
    from ruleop.kinds import Object

_WHEN_SET = "Forbidden: field is immutable when `immutable` is set"


def namespace_created(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": {**(obj.get("spec") or {}), "finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def namespace_updated(new: dict[str, Any], _old: Object) -> dict[str, Any]:
    """Its finalizers are written through a subresource; the label of its name is kept."""
    metadata = new["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**new, "metadata": {**metadata, "labels": labels}, "spec": {"finalizers": [], **(new.get("spec") or {})}}


def with_encoded_data(secret: dict[str, Any]) -> dict[str, Any]:
    """`stringData` becomes `data`."""
    if "stringData" not in secret:
        return secret
    found = {name: value for name, value in secret.items() if name != "stringData"}
    texts = {name: base64.b64encode(str(value).encode()).decode() for name, value in secret["stringData"].items()}
    data = {**(secret.get("data") or {}), **texts}
    return {**found, "data": data} if data else found


_MAX_DATA: Final = 1024 * 1024


def data_causes(new: Object, old: Object | None) -> list[Cause]:
    """Of ConfigMaps and Secrets."""
    if old is None:
        return [*_key_causes(new), *_size_causes(new)]
    causes = _size_causes(new)
    if new["kind"] == "Secret" and new.get("type") != old.get("type"):
        causes.append(_immutable("type", new.get("type")))
    if old.get("immutable"):
        if not new.get("immutable"):
            causes.append(Cause("FieldValueForbidden", _WHEN_SET, "immutable"))
        causes += [
            Cause("FieldValueForbidden", _WHEN_SET, name)
            for name in ("data", "binaryData")
            if (new.get(name) or {}) != (old.get(name) or {})
        ]
    return [*causes, *_key_causes(new)]


def _size_causes(obj: Object) -> list[Cause]:
    size = sum(len(value) for value in (obj.get("data") or {}).values() if isinstance(value, str))
    size += sum(len(value) * 3 // 4 for value in (obj.get("binaryData") or {}).values() if isinstance(value, str))
    if obj["kind"] == "Secret":
        size = size * 3 // 4  # encoded
    if size <= _MAX_DATA:
        return []
    field = "data" if obj["kind"] == "Secret" else "[]"
    return [Cause("FieldValueTooLong", f"Too long: may not be more than {_MAX_DATA} bytes", field)]


def _key_causes(obj: Object) -> list[Cause]:
    problem = (
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
        "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
    )
    return [
        Cause("FieldValueInvalid", f"Invalid value: {orjson.dumps(key).decode()}: {problem}", f"{field}[{key}]")
        for field in ("data", "binaryData")
        for key in obj.get(field) or {}
        if not key or not all(letter.isascii() and (letter.isalnum() or letter in "-._") for letter in key)
    ]


def binding_causes(new: Object, old: Object | None) -> list[Cause]:
    """The role of a binding may not change."""
    if old is None or new.get("roleRef") == old.get("roleRef"):
        return []
    reference = new.get("roleRef") or {}
    shown = {name: reference.get(f"{name[0].lower()}{name[1:]}", "") for name in ("Kind", "Name")}
    shown = {"APIGroup": reference.get("apiGroup", ""), **shown}
    message = f"Invalid value: {orjson.dumps(shown).decode()}: cannot change roleRef"
    return [Cause("FieldValueInvalid", message, "roleRef")]


def priority_class_causes(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return []
    causes = []
    if new.get("value") != old.get("value"):
        causes.append(Cause("FieldValueForbidden", "Forbidden: may not be changed in an update.", "value"))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        causes.append(_immutable("preemptionPolicy", new.get("preemptionPolicy")))
    return causes


def _immutable(field: str, value: Any) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {orjson.dumps(value).decode()}: field is immutable", field)


def slice_causes(new: Object, old: Object | None) -> list[Cause]:
    """The addresses of an EndpointSlice stay of one type."""
    if old is None or new.get("addressType") == old.get("addressType"):
        return []
    return [_immutable("addressType", new.get("addressType"))]


def budget_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    if "minAvailable" not in spec or "maxUnavailable" not in spec:
        return []
    shown = {
        "MinAvailable": spec["minAvailable"],
        "Selector": spec.get("selector"),
        "MaxUnavailable": spec["maxUnavailable"],
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
    message = f"Invalid value: {orjson.dumps(shown).decode()}: minAvailable and maxUnavailable cannot be both set"
    return [Cause("FieldValueInvalid", message, "spec")]


def autoscaler_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if most < 1:
        return [Cause("FieldValueInvalid", f"Invalid value: {most}: must be greater than 0", "spec.maxReplicas")]
    if most < least:
        message = f"Invalid value: {most}: must be greater than or equal to `minReplicas`"
        return [Cause("FieldValueInvalid", message, "spec.maxReplicas")]
    return []


def node_created(obj: dict[str, Any]) -> dict[str, Any]:
    """A node is not ready until its kubelet reports that it is."""
    spec = obj.get("spec") or {}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return {**obj, "spec": {**spec, "taints": [*(spec.get("taints") or []), taint]}}
