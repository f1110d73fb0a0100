"""Why an EndpointSlice is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.errors import (
    duplicate,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
)
from ruleop.localcluster.kinds.addresses import address_causes, special_address_causes
from ruleop.localcluster.objects.names import key_problems, label_problems
from ruleop.schema.immutable_fields import immutable_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def slice_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    """The addresses of an EndpointSlice stay of one type."""
    kind = new.get("addressType", "")
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield unsupported("addressType", kind, _ADDRESS_TYPES)
    names = set[str]()
    for index, port in enumerate(new.get("ports") or ()):
        yield from _port_causes(f"ports[{index}]", port, names)
    if old is None or old.get("endpoints") != new.get("endpoints"):
        for index, endpoint in enumerate(new.get("endpoints") or ()):
            yield from _endpoint_causes(f"endpoints[{index}]", endpoint, kind)
    if old is not None and immutable_changes(new, old):
        yield immutable_value("addressType", kind)


def _port_causes(field: str, port: Object, names: set[str]) -> Iterator[Cause]:
    name, protocol = port.get("name", ""), port.get("protocol")
    if name:
        yield from invalid_values(f"{field}.name", name, label_problems(name))
    if name in names:
        yield duplicate(f"{field}.name", name)
    names.add(name)
    if protocol not in _PROTOCOLS:
        yield unsupported(f"{field}.protocol", protocol, _PROTOCOLS)
    if (application := port.get("appProtocol")) is not None:
        yield from invalid_values(f"{field}.appProtocol", application, key_problems(application))


def _endpoint_causes(field: str, endpoint: Object, kind: str) -> Iterator[Cause]:
    if not endpoint.get("addresses"):
        yield required(f"{field}.addresses", "must contain at least 1 address")
    for index, address in enumerate(endpoint.get("addresses") or ()):
        at = f"{field}.addresses[{index}]"
        if kind not in ("IPv4", "IPv6"):
            continue
        if causes := list(address_causes(at, address)):
            yield from causes
            continue
        if (":" in address) != (kind == "IPv6"):
            yield invalid_value(f"{field}.addresses", address, f"must be an {kind} address")
        yield from special_address_causes(at, address)
    if (host := endpoint.get("hostname")) is not None:
        yield from invalid_values(f"{field}.hostname", host, label_problems(host))
