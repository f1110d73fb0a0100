"""Ingresses, IngressClasses, NetworkPolicies, EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes, value_at
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    parse_address,
    parse_network,
    required,
    subdomain_problems,
    too_long,
    unsupported,
    validate_cidr,
    validate_external_address,
)
from ruleop.kubernetes.validation.rules import (
    FieldRule,
    Rows,
    frozen,
    holds,
    is_changed,
    is_new,
    missing,
    needed,
    one_of,
    placed,
    rule,
    sub_table,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import At, Errors


_CLASS: Final = "kubernetes.io/ingress.class"


def _class(ingress: Any, _: At) -> Errors:
    annotated = (ingress["metadata"].get("annotations") or {}).get(_CLASS)
    if annotated in (None, (name := value_at(ingress, "spec.ingressClassName"))) or name is None:
        return ()
    words = "must match `ingressClassName` when both are specified"
    return (invalid_value(f"annotations.{_CLASS}", annotated, words),)


def _path(item: Any, at: At) -> Iterator[FieldError]:
    path, type_ = item.get("path", ""), item.get("pathType")
    if not path.startswith("/") and (path or type_ != "ImplementationSpecific"):
        yield invalid_value(at.child("path"), path, "must be an absolute path")
    if type_ != "ImplementationSpecific":
        for each in ("//", "/./", "/../", "%2f", "%2F"):
            if each in path:
                yield invalid_value(at.child("path"), path, f"must not contain '{each}'")
        for each in ("/..", "/."):
            if path.endswith(each):
                yield invalid_value(at.child("path"), path, f"cannot end with '{each}'")


def _backend(backend: Any, at: At) -> Iterator[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if (resource is None) == (service is None):
        words = (
            "resource or service backend is required"
            if resource is None
            else "cannot set both resource and service backends"
        )
        yield invalid_value(at.field, "", words)
    elif service is not None:
        port = service.get("port") or {}
        if port.get("name") and port.get("number"):
            yield invalid_value(at.field, "", "cannot set both port name & port number")
        elif not port.get("name") and not port.get("number"):
            yield required(at.field, "port name or number is required")


_PORT_OF: Final = sub_table(
    {"name": "port-name", "number": "port"}, when=lambda port, _: not (port.get("name") and port.get("number"))
)
_BACKEND: Final[Rows] = (
    _backend,
    sub_table(
        {
            "resource": {"apiGroup": "subdomain", "kind name": "segment"},
            "service.name": "needed label",
            "service.port": _PORT_OF,
        },
        when=lambda backend, _: None in (backend.get("resource"), backend.get("service")),
    ),
)
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")


def _path_type(value: Any, at: At) -> Errors:
    return (required(at.field, "pathType must be specified"),) if value is None else ()


_PATHS: Final[Rows] = (
    {"pathType": (missing(_path_type), one_of(*_PATH_TYPES))},
    sub_table(_path, when=lambda item, _: item.get("pathType") in _PATH_TYPES),
    sub_table({"backend!": _BACKEND}, when=lambda item, _: item.get("pathType") is not None),
)


def _default(spec: Any, at: At) -> Errors:
    words = "either `defaultBackend` or `rules` must be specified"
    is_given = spec.get("rules") or spec.get("defaultBackend") is not None
    return () if is_given else (invalid_value(at.field, spec.get("rules"), words),)


_NO_ADDRESS: Final = holds(lambda host: parse_address(host) is None, "must be a DNS name, not an IP address")
INGRESS: Final[Rows] = (
    sub_table(_class, when=is_new),
    {
        "spec!": (
            {
                "defaultBackend": _BACKEND,
                "rules[].host": (_NO_ADDRESS, "wildcard"),
                "rules[].http.paths": "needed",
                "rules[].http.paths[]": _PATHS,
                "tls[].hosts[]": "full-wildcard",
                "tls[].secretName": "subdomain",
                "ingressClassName": "full-subdomain",
            },
            _default,
        )
    },
)


def _controller(controller: Any, at: At) -> Iterator[FieldError]:
    if immutable_changes(at.root, at.old_root):
        yield immutable_value(at.field, controller)
    elif not controller:
        yield required(at.field)
    else:
        if len(controller) > 250:
            yield too_long(at.field, 250)
        domain, _, path = controller.partition("/")
        if domain and path:
            yield from invalid_values(at.field, domain, subdomain_problems(domain))
        else:
            yield invalid_value(at.field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')


INGRESS_CLASS: Final[Rows] = {"spec!.controller": FieldRule(_controller, missing=True, is_local=False)}


def _block(block: Any, at: At) -> Iterator[FieldError]:
    if not (cidr := block.get("cidr", "")):
        yield required(at.child("cidr"))
        return
    yield from validate_cidr(at.child("cidr"), cidr)
    whole: Any = parse_network(cidr)
    for index, each in enumerate(block.get("except") or () if whole is not None else ()):
        yield from validate_cidr(at.child(f"except[{index}]"), each)
        part: Any = parse_network(each)
        if part is not None and (part.version != whole.version or part == whole or not part.subnet_of(whole)):
            yield invalid_value(at.child(f"except[{index}]"), each, "must be a strict subset of `cidr`")


def _end_port(port: Any, at: At) -> Errors:
    number, end, field = port.get("port"), port.get("endPort"), at.child("endPort")
    if end is None:
        return
    if not isinstance(number, int):
        state = "not specified" if number is None else "non-numeric"
        yield invalid_value(field, end, f"may not be specified when `port` is {state}")
        return
    if end < number:
        yield invalid_value(field, number, "must be greater than or equal to `port`")
    yield from rule("port-or-name").check(end, at._replace(field=field))


def _peer(peer: Any, at: At) -> Iterator[FieldError]:
    selects = "podSelector" in peer or "namespaceSelector" in peer
    if "ipBlock" not in peer and not selects:
        yield required(at.field, "must specify a peer")
    elif "ipBlock" in peer and selects:
        yield forbidden_value(at.field, "may not specify both ipBlock and another peer")


_PEER: Final[Rows] = ({"podSelector namespaceSelector": "selector", "ipBlock": _block}, _peer)
_PORTS: Final[Rows] = ({"protocol": "TCP|UDP|SCTP", "port": "optional-port-or-name"}, _end_port)


def _types(types: Any, at: At) -> Iterator[FieldError]:
    known = ("Ingress", "Egress")
    if len(types) > len(known):
        yield invalid_value(at.field, types, "may not specify more than two policyTypes")
        return
    yield from (
        unsupported(f"{at.field}[{index}]", each, known) for index, each in enumerate(types) if each not in known
    )


NETWORK_POLICY: Final[Rows] = {
    "spec": {
        "podSelector": "selector",
        "ingress[].ports[] egress[].ports[]": _PORTS,
        "ingress[].from[] egress[].to[]": _PEER,
        "policyTypes": _types,
    }
}


def _addresses(addresses: Any, at: At) -> Iterator[FieldError]:
    """The addresses of an endpoint are of the type of their slice."""
    family = at.root.get("addressType")
    for index, each in enumerate(addresses if family in ("IPv4", "IPv6") else ()):
        errors = list(validate_external_address(f"{at.field}[{index}]", each))
        if (":" in each) != (family == "IPv6") and not any("must be a valid" in error.message for error in errors):
            yield invalid_value(at.field, each, f"must be an {family} address")
        yield from errors


ENDPOINT_SLICE: Final[Rows] = (
    frozen(),
    {
        "addressType": "needed |FQDN|IPv4|IPv6",
        "ports": unique("name", empty=True),
        "ports[]": {"name": "label", "protocol": "PROTOCOL", "appProtocol": "full-key"},
        "endpoints": sub_table(
            {
                "[].addresses": (needed("must contain at least 1 address"), placed(_addresses)),
                "[].hostname": "full-label",
            },
            when=is_changed,
        ),
    },
)
