"""Secrets: their data, validation and warnings."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.core.schema.builtin.immutable_fields import immutable_changes
from ruleop.core.validation.field_errors import (
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    too_long,
)
from ruleop.core.validation.fields.field_names import config_key_problems
from ruleop.core.validation.fields.go_json import problem_of
from ruleop.core.validation.fields.go_text import type_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_WHEN_SET: Final = "field is immutable when `immutable` is set"
MAX_DATA: Final = 1024 * 1024
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


def validate_secret(new: Object, old: Object | None) -> list[FieldError]:
    data = new.get("data") or {}
    errors = validate_immutable_data(new, old)
    for key in data:
        errors += invalid_values(f"data[{key}]", key, config_key_problems(key))
    if sum(map(decoded_size, data.values())) > MAX_DATA:
        errors.append(too_long("data", MAX_DATA))
    return [*errors, *_validate_type(new, data)]


def validate_immutable_data(new: Object, old: Object | None) -> list[FieldError]:
    changes, type_ = immutable_changes(new, old), new.get("type", "")
    return [immutable_value(name, type_) if name == "type" else forbidden_value(name, _WHEN_SET) for name in changes]


def decoded_size(value: str) -> int:
    return len(value) * 3 // 4 - value[-2:].count("=")


def _validate_type(secret: Object, data: Object) -> Iterator[FieldError]:
    """Validates the keys that the type of a Secret asks for."""
    type_ = secret.get("type", "")
    if type_ == "kubernetes.io/service-account-token":
        if not (secret["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif type_ in _DOCKER_KEYS:
        yield from _validate_docker(f"data[{_DOCKER_KEYS[type_]}]", data.get(_DOCKER_KEYS[type_]))
    elif type_ == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            yield from (required(f"data[{key}]") for key in ("username", "password"))
    elif type_ == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            yield required("data[ssh-privatekey]")
    elif type_ == "kubernetes.io/tls":
        yield from (required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)


def _validate_docker(field: str, value: str | None) -> Iterator[FieldError]:
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
    """The warning for a certificate that cannot be read. Whether the key fits to it is not checked."""
    if new.get("type") != "kubernetes.io/tls":
        return []
    data = new.get("data") or {}
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in _bytes(data.get(key, "")):
            return [f"tls: failed to find any PEM data in {what} input"]
    return []
