"""Ingresses, IngressClasses, NetworkPolicies, EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import value_at
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    invalid_values,
    network_problems,
    parse_address,
    parse_network,
    refusal,
    subdomain_problems,
    too_long,
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
    message = "Invalid value: {}: must match `ingressClassName` when both are specified"
    return (refusal(message, annotated[_CLASS], f"annotations.{_CLASS}"),)


def _path_problems(path: str) -> Iterator[str]:
    yield from (f"must not contain '{each}'" for each in ("//", "/./", "/../", "%2f", "%2F") if each in path)
    yield from (f"cannot end with '{each}'" for each in ("/..", "/.") if path.endswith(each))


def _port(backend: Any) -> Any:
    return value_at(backend, "service.port") or {}


_BACKEND: Final[Rows] = {
    lambda backend: None not in (backend.get("resource"), backend.get("service")): (
        'Invalid value: "": cannot set both resource and service backends'
    ),
    lambda backend: (backend.get("resource"), backend.get("service")) == (None, None): (
        'Invalid value: "": resource or service backend is required'
    ),
    rules.lacks("service"): {"resource": {"apiGroup": "subdomain", "kind name": "needed segment"}},
    rules.lacks("resource"): {
        "service.name": "needed label",
        lambda backend: _port(backend).get("name") and _port(backend).get("number"): (
            'Invalid value: "": cannot set both port name & port number'
        ),
        lambda backend: not _port(backend).get("name") or not _port(backend).get("number"): {
            "service.port": {"name": "port-name", "number": "port"},
            rules.has("service"): {rules.fails(_port): rules.always("Required value: port name or number is required")},
        },
    },
}


def _is_relative(item: Any) -> bool:
    path, type_ = item.get("path", ""), item.get("pathType")
    return type_ in _PATH_TYPES and not path.startswith("/") and (path or type_ != "ImplementationSpecific")


_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_PATHS: Final[Rows] = {
    "pathType": rules.one_of(*_PATH_TYPES),
    rules.lacks("pathType"): rules.always("Required value: pathType must be specified", "pathType"),
    rules.equals("pathType", "Exact", "Prefix"): {"path": rules.named(_path_problems)},
    _is_relative: rules.always("Invalid value: {path}: must be an absolute path", "path"),
    rules.has("pathType"): {"backend!": _BACKEND},
}
_INGRESS: Final[Rows] = {
    "defaultBackend": _BACKEND,
    "rules[].host": ("wildcard", {parse_address: "Invalid value: {}: must be a DNS name, not an IP address"}),
    "rules[].http.paths": "needed",
    "rules[].http.paths[]": _PATHS,
    "tls[].hosts[]": "full-wildcard",
    "tls[].secretName": "subdomain",
    "ingressClassName": "full-subdomain",
    lambda spec: not spec.get("rules") and spec.get("defaultBackend") is None: (
        lambda spec, _: (refusal(_NO_RULES, spec.get("rules")),)
    ),
}
_NO_RULES: Final = "Invalid value: {}: either `defaultBackend` or `rules` must be specified"
INGRESS: Final[Rows] = (rules.new(_class), {"spec!": _INGRESS})


def _controller(controller: Any, _: Any) -> Iterator[FieldError]:
    domain, _, path = controller.partition("/")
    if len(controller) > 250:
        yield too_long("", 250)
    if domain and path:
        yield from invalid_values("", domain, subdomain_problems(domain))
    elif controller:
        yield refusal('Invalid value: {}: must be a domain-prefixed path (such as "acme.io/foo")', controller)


INGRESS_CLASS: Final[Rows] = (rules.frozen(), rules.new({"spec!.controller": ("needed", _controller)}))


# -- NetworkPolicies and EndpointSlices ------------------------------------------------------------------------------


def _exceptions(block: Any, _: Any) -> Iterator[FieldError]:
    whole: Any = parse_network(block.get("cidr", ""))
    for index, each in enumerate(block.get("except") or () if whole is not None else ()):
        yield from invalid_values(f"except[{index}]", each, network_problems(each))
        part: Any = parse_network(each)
        if part is not None and (part.version != whole.version or part == whole or not part.subnet_of(whole)):
            yield refusal("Invalid value: {}: must be a strict subset of `cidr`", each, f"except[{index}]")


def _selects(peer: Any) -> bool:
    return "podSelector" in peer or "namespaceSelector" in peer


_BLOCK: Final[Rows] = ({"cidr": "needed network"}, _exceptions)
_PEER: Final[Rows] = {
    "podSelector namespaceSelector": "selector",
    "ipBlock": _BLOCK,
    _selects: {rules.has("ipBlock"): "Forbidden: may not specify both ipBlock and another peer"},
    rules.fails(_selects): {rules.lacks("ipBlock"): rules.always("Required value: must specify a peer")},
}
_BACKWARDS: Final = "Invalid value: {port}: must be greater than or equal to `port`"
_PORT: Final[Rows] = {
    "protocol": "TCP|UDP|SCTP",
    "port": "optional-port-or-name",
    rules.lacks("port"): {"endPort": "Invalid value: {}: may not be specified when `port` is not specified"},
    lambda port: isinstance(port.get("port"), str): {
        "endPort": "Invalid value: {}: may not be specified when `port` is non-numeric"
    },
    lambda port: isinstance(port.get("port"), int): {
        "endPort": "optional-port-or-name",
        lambda port: port.get("endPort", 2**31) < port["port"]: rules.always(_BACKWARDS, "endPort"),
    },
}
NETWORK_POLICY: Final[Rows] = {
    "spec": {
        "podSelector": "selector",
        "ingress[].ports[] egress[].ports[]": _PORT,
        "ingress[].from[] egress[].to[]": _PEER,
        "policyTypes": {
            lambda types: len(types) > 2: "Invalid value: {}: may not specify more than two policyTypes",
            lambda types: len(types) <= 2: {"[]": "Ingress|Egress"},
        },
    }
}


def _of_family(family: str) -> Rows:
    """The addresses of an endpoint are of the type of their slice."""

    def check(addresses: Any, _: Any) -> Iterator[FieldError]:
        for each in addresses:
            if parse_address(each) is not None and (":" in each) != (family == "IPv6"):
                yield refusal(f"Invalid value: {{}}: must be an {family} address", each)

    return {"endpoints": rules.changed({"[].addresses": check, "[].addresses[]": "full-external-address"})}


ENDPOINT_SLICE: Final[Rows] = (
    rules.frozen(),
    {
        "addressType": "needed |FQDN|IPv4|IPv6",
        rules.equals("addressType", "IPv4"): _of_family("IPv4"),
        rules.equals("addressType", "IPv6"): _of_family("IPv6"),
        "ports": rules.unique("name", empty=True),
        "ports[]": {"name": "label", "protocol": "PROTOCOL", "appProtocol": "full-key"},
        "endpoints": rules.changed(
            {"[].addresses": "Required value: must contain at least 1 address", "[].hostname": "full-label"}
        ),
    },
)
