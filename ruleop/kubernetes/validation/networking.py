"""Ingresses, IngressClasses, NetworkPolicies, EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import value_at
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    invalid_value,
    invalid_values,
    network_problems,
    parse_address,
    parse_network,
    subdomain_problems,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import Errors, Rows


# -- Ingresses -------------------------------------------------------------------------------------------------------


_CLASS: Final = "kubernetes.io/ingress.class"


def _class(ingress: Any, _: Any) -> Errors:
    annotated, name = ingress["metadata"].get("annotations") or {}, value_at(ingress, "spec.ingressClassName")
    if name is None or annotated.get(_CLASS, name) == name:
        return ()
    return (invalid_value(f"annotations.{_CLASS}", annotated[_CLASS], "must match `ingressClassName`"),)


def _path_problems(path: str) -> Iterator[str]:
    yield from (f"must not contain '{each}'" for each in ("//", "/./", "/../", "%2f", "%2F") if each in path)
    yield from (f"cannot end with '{each}'" for each in ("/..", "/.") if path.endswith(each))


def _ports(backend: Any) -> int:
    """The number of ports that a backend names: one by its name, one by its number."""
    port = value_at(backend, "service.port") or {}
    return bool(port.get("name")) + bool(port.get("number"))


_BACKEND: Final[Rows] = {
    "if resource": {"if service": rules.invalid("cannot set both resource and service backends")},
    "if !service": {
        "if !resource": rules.invalid("resource or service backend is required"),
        "resource": {"apiGroup": "subdomain", "kind name": "needed segment"},
    },
    "if !resource": {
        "service.name": "needed label",
        lambda backend: _ports(backend) > 1: rules.invalid("cannot set both port name & port number"),
        lambda backend: _ports(backend) < 2: {"service.port": {"name": "port-name", "number": "port"}},
        "if service": {rules.fails(_ports): rules.lacking("port name or number is required")},
    },
}


def _is_relative(item: Any) -> bool:
    path, type_ = item.get("path", ""), item.get("pathType")
    return type_ in _PATH_TYPES and not path.startswith("/") and (path or type_ != "ImplementationSpecific")


_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_PATHS: Final[Rows] = {
    "pathType": ("needed", rules.one_of(*_PATH_TYPES)),
    "path if pathType=Exact|Prefix": rules.named(_path_problems),
    _is_relative: rules.invalid("must be an absolute path", "path"),
    "backend! if pathType": _BACKEND,
}
_INGRESS: Final[Rows] = {
    "defaultBackend": _BACKEND,
    "rules[].host": ("wildcard", {parse_address: rules.invalid("must be a DNS name, not an IP address")}),
    "rules[].http.paths": "needed",
    "rules[].http.paths[]": _PATHS,
    "tls[].hosts[]": "full-wildcard",
    "tls[].secretName": "subdomain",
    "ingressClassName": "full-subdomain",
    lambda spec: not spec.get("rules") and spec.get("defaultBackend") is None: (
        rules.invalid("either `defaultBackend` or `rules` must be specified")
    ),
}
INGRESS: Final[Rows] = (rules.new(_class), {"spec!": _INGRESS})


def _controller_problems(controller: str) -> Iterator[str]:
    domain, _, path = controller.partition("/")
    if len(controller) > 250:
        yield "must be no more than 250 characters"
    if domain and path:
        yield from subdomain_problems(domain)
    else:
        yield 'must be a domain-prefixed path (such as "acme.io/foo")'


INGRESS_CLASS: Final[Rows] = (
    rules.frozen(),
    rules.new({"spec!.controller": ("needed", rules.named(_controller_problems))}),
)


# -- NetworkPolicies and EndpointSlices ------------------------------------------------------------------------------


def _exceptions(block: Any, _: Any) -> Iterator[FieldError]:
    whole: Any = parse_network(block.get("cidr", ""))
    for index, each in enumerate(block.get("except") or () if whole is not None else ()):
        yield from invalid_values(f"except[{index}]", each, network_problems(each))
        part: Any = parse_network(each)
        if part is not None and (part.version != whole.version or part == whole or not part.subnet_of(whole)):
            yield invalid_value(f"except[{index}]", each, "must be a strict subset of `cidr`")


def _selects(peer: Any) -> bool:
    return "podSelector" in peer or "namespaceSelector" in peer


_PEER: Final[Rows] = {
    "podSelector namespaceSelector": "selector",
    "ipBlock": ({"cidr": "needed network"}, _exceptions),
    _selects: {"if ipBlock": rules.invalid("may not specify both ipBlock and another peer")},
    rules.fails(_selects): {"if !ipBlock": rules.lacking("must specify a peer")},
}
_PORT: Final[Rows] = {
    "protocol": "TCP|UDP|SCTP",
    "port": "optional-port-or-name",
    "endPort if !port": "unset",
    lambda port: isinstance(port.get("port"), str): {"endPort": "unset"},
    lambda port: isinstance(port.get("port"), int): {
        "endPort": "optional-port-or-name",
        lambda port: port.get("endPort", 2**31) < port["port"]: (
            rules.invalid("must be greater than or equal to `port`", "endPort")
        ),
    },
}
NETWORK_POLICY: Final[Rows] = {
    "spec": {
        "podSelector": "selector",
        "ingress[].ports[] egress[].ports[]": _PORT,
        "ingress[].from[] egress[].to[]": _PEER,
        "policyTypes": {
            lambda types: len(types) > 2: rules.invalid("may not specify more than two policyTypes"),
            lambda types: len(types) <= 2: {"[]": "Ingress|Egress"},
        },
    }
}


def _of_family(family: str) -> Rows:
    """The addresses of an endpoint are of the type of their slice."""

    def check(addresses: Any, _: Any) -> Iterator[FieldError]:
        for each in addresses:
            if parse_address(each) is not None and (":" in each) != (family == "IPv6"):
                yield invalid_value("", each, f"must be an {family} address")

    return {"endpoints": rules.changed({"[].addresses": check, "[].addresses[]": "full-external-address"})}


ENDPOINT_SLICE: Final[Rows] = (
    rules.frozen(),
    {
        "addressType": "needed |FQDN|IPv4|IPv6",
        "if addressType=IPv4": _of_family("IPv4"),
        "if addressType=IPv6": _of_family("IPv6"),
        "ports": rules.unique("name", empty=True),
        "ports[]": {"name": "label", "protocol": "PROTOCOL", "appProtocol": "full-key"},
        "endpoints": rules.changed({"[].addresses": "needed", "[].hostname": "full-label"}),
    },
)
