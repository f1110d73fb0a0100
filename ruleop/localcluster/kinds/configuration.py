"""ConfigMaps and Secrets: why one is invalid, and what is warned of."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.errors import (
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    too_long,
)
from ruleop.localcluster.objects.go_json import problem_of
from ruleop.localcluster.objects.go_text import type_name
from ruleop.localcluster.objects.names import config_key_problems
from ruleop.schema.immutable_fields import immutable_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_WHEN_SET: Final = "field is immutable when `immutable` is set"
_MAX_DATA: Final = 1024 * 1024
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_REDACTED: Final = "<secret contents redacted>"
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def with_encoded_data(secret: dict[str, Any]) -> dict[str, Any]:
    """`stringData` becomes `data`."""
    if not secret.get("type"):
        secret = {**secret, "type": "Opaque"}
    if "stringData" not in secret:
        return secret
    found = {name: value for name, value in secret.items() if name != "stringData"}
    texts = {
        name: base64.b64encode(str(value).encode()).decode() for name, value in (secret["stringData"] or {}).items()
    }
    data = {**(secret.get("data") or {}), **texts}
    return {**found, "data": data} if data else found


def config_map_causes(new: Object, old: Object | None) -> list[Cause]:
    texts, binaries = new.get("data") or {}, new.get("binaryData") or {}
    causes = _immutable_causes(new, old)
    for key in texts:
        causes += invalid_values(f"data[{key}]", key, config_key_problems(key))
        if key in binaries:
            causes.append(invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in binaries:
        causes += invalid_values(f"binaryData[{key}]", key, config_key_problems(key))
    size = sum(len(value.encode()) for value in texts.values()) + sum(map(_decoded_size, binaries.values()))
    return [*causes, too_long("[]", _MAX_DATA)] if size > _MAX_DATA else causes


def secret_causes(new: Object, old: Object | None) -> list[Cause]:
    data = new.get("data") or {}
    causes = _immutable_causes(new, old)
    for key in data:
        causes += invalid_values(f"data[{key}]", key, config_key_problems(key))
    if sum(map(_decoded_size, data.values())) > _MAX_DATA:
        causes.append(too_long("data", _MAX_DATA))
    return [*causes, *_type_causes(new, data)]


def _immutable_causes(new: Object, old: Object | None) -> list[Cause]:
    changes = immutable_changes(new, old) if old is not None else ()
    type_ = new.get("type", "")
    return [immutable_value(name, type_) if name == "type" else forbidden_value(name, _WHEN_SET) for name in changes]


def _decoded_size(value: str) -> int:
    return len(value) * 3 // 4 - value[-2:].count("=")


def _type_causes(secret: Object, data: Object) -> Iterator[Cause]:
    """Of the keys that the type of a Secret asks for."""
    type_ = secret.get("type", "")
    if type_ == "kubernetes.io/service-account-token":
        if not (secret["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif type_ in _DOCKER_KEYS:
        yield from _docker_causes(f"data[{_DOCKER_KEYS[type_]}]", data.get(_DOCKER_KEYS[type_]))
    elif type_ == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            yield from (required(f"data[{key}]") for key in ("username", "password"))
    elif type_ == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            yield required("data[ssh-privatekey]")
    elif type_ == "kubernetes.io/tls":
        yield from (required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)


def _docker_causes(field: str, value: str | None) -> Iterator[Cause]:
    if value is None:
        yield required(field)
        return
    content = _bytes(value)
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        yield invalid_value(field, _REDACTED, problem_of(content))
        return
    if not isinstance(document, dict | None):
        found = type_name(document)
        problem = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        yield invalid_value(field, _REDACTED, problem)


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""


def secret_warnings(new: Object, _old: Object | None) -> list[str]:
    """Of a certificate that cannot be read. Whether the key fits to it is not checked."""
    if new.get("type") != "kubernetes.io/tls":
        return []
    data = new.get("data") or {}
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in _bytes(data.get(key, "")):
            return [f"tls: failed to find any PEM data in {what} input"]
    return []
