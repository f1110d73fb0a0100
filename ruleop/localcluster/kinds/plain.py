"""Kinds without a controller behind them: configuration, access control, namespaces."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.errors import Cause, forbidden_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.label_selectors import label_selector_causes
from ruleop.localcluster.kinds.numbers import share_causes

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        return [*_key_causes(new), *_size_causes(new), *_secret_causes(new)]
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
    causes = list[Cause]()
    for field in ("data", "binaryData"):
        for key in obj.get(field) or {}:
            if not key or not all(letter.isascii() and (letter.isalnum() or letter in "-._") for letter in key):
                causes.append(invalid_value(f"{field}[{key}]", key, problem))
            elif key == "." or key.startswith(".."):
                shown = f"must not be '{key}'" if key in (".", "..") else "must not start with '..'"
                causes.append(invalid_value(f"{field}[{key}]", key, shown))
    both = [key for key in obj.get("data") or {} if key in (obj.get("binaryData") or {})]
    return [*causes, *(invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData") for key in both)]


_NEEDED: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
"""Types of Secrets, with the keys that each needs."""


def _secret_causes(obj: Object) -> Iterator[Cause]:
    data, kind = obj.get("data") or {}, obj.get("type", "")
    yield from (required(f"data[{key}]") for key in _NEEDED.get(kind, ()) if key not in data)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        yield from (required(f"data[{key}]") for key in ("username", "password"))
    if kind == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if not (obj["metadata"].get("annotations") or {}).get(name):
            yield required(f"metadata.annotations[{name}]")


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


_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")


def slice_causes(new: Object, old: Object | None) -> list[Cause]:
    """The addresses of an EndpointSlice stay of one type."""
    kind = new.get("addressType")
    if kind not in _ADDRESS_TYPES:
        return [unsupported("addressType", kind, _ADDRESS_TYPES)]
    if old is None or kind == old.get("addressType"):
        return []
    return [_immutable("addressType", new.get("addressType"))]


def budget_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    causes = list(label_selector_causes(spec.get("selector"), "spec.selector"))
    for name in ("minAvailable", "maxUnavailable"):
        causes += share_causes(spec.get(name), f"spec.{name}", at_most_all=True)
    if "minAvailable" not in spec or "maxUnavailable" not in spec:
        return causes
    shown = {
        "MinAvailable": spec["minAvailable"],
        "Selector": spec.get("selector"),
        "MaxUnavailable": spec["maxUnavailable"],
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
    message = f"Invalid value: {orjson.dumps(shown).decode()}: minAvailable and maxUnavailable cannot be both set"
    return [*causes, Cause("FieldValueInvalid", message, "spec")]


def autoscaler_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    causes, target = list[Cause](), spec.get("scaleTargetRef") or {}
    causes += (required(f"spec.scaleTargetRef.{name}") for name in ("kind", "name") if not target.get(name))
    version = target.get("apiVersion", "")
    if "/" not in version and target.get("kind") != "ReplicationController":
        causes.append(invalid_value("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group"))
    if least < 1 and not {"Object", "External"} & {each.get("type") for each in spec.get("metrics") or ()}:
        problem = "must specify at least one Object or External metric to support scaling to zero replicas"
        causes.append(forbidden_value("spec.metrics", problem))
    if least < 1:
        causes.append(invalid_value("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        causes.append(required("spec.maxReplicas", "must be set and greater than 0"))
    if most < least:
        causes.append(invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    return causes


def node_created(obj: dict[str, Any]) -> dict[str, Any]:
    """A node is not ready until its kubelet reports that it is."""
    spec = obj.get("spec") or {}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return {**obj, "spec": {**spec, "taints": [*(spec.get("taints") or []), taint]}}
