"""Validation of EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.schema.builtin.immutable_fields import immutable_changes
from ruleop.core.validation.field_errors import (
    duplicate,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
    validate_one_of,
)
from ruleop.core.validation.fields.addresses import validate_address, validate_no_special_address
from ruleop.core.validation.fields.field_names import key_problems, label_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def validate_endpoint_slice(new: Object, old: Object | None) -> Iterator[FieldError]:
    """The addresses of an EndpointSlice stay of one type."""
    kind = new.get("addressType", "")
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield unsupported("addressType", kind, _ADDRESS_TYPES)
    names = set[str]()
    for index, port in enumerate(new.get("ports") or ()):
        yield from _validate_port(f"ports[{index}]", port, names)
    if old is None or old.get("endpoints") != new.get("endpoints"):
        for index, endpoint in enumerate(new.get("endpoints") or ()):
            yield from _validate_endpoint(f"endpoints[{index}]", endpoint, kind)
    if immutable_changes(new, old):
        yield immutable_value("addressType", kind)


def _validate_port(field: str, port: Object, names: set[str]) -> Iterator[FieldError]:
    name = port.get("name", "")
    if name:
        yield from invalid_values(f"{field}.name", name, label_problems(name))
    if name in names:
        yield duplicate(f"{field}.name", name)
    names.add(name)
    yield from validate_one_of(f"{field}.protocol", port.get("protocol"), _PROTOCOLS)
    if (application := port.get("appProtocol")) is not None:
        yield from invalid_values(f"{field}.appProtocol", application, key_problems(application))


def _validate_endpoint(field: str, endpoint: Object, kind: str) -> Iterator[FieldError]:
    if not endpoint.get("addresses"):
        yield required(f"{field}.addresses", "must contain at least 1 address")
    for index, address in enumerate(endpoint.get("addresses") or ()):
        at = f"{field}.addresses[{index}]"
        if kind not in ("IPv4", "IPv6"):
            continue
        if errors := list(validate_address(at, address)):
            yield from errors
            continue
        if (":" in address) != (kind == "IPv6"):
            yield invalid_value(f"{field}.addresses", address, f"must be an {kind} address")
        yield from validate_no_special_address(at, address)
    if (host := endpoint.get("hostname")) is not None:
        yield from invalid_values(f"{field}.hostname", host, label_problems(host))
