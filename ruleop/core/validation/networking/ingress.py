"""Ingresses: validation and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.validation.field_errors import invalid_value, invalid_values, required, unsupported, validate_required
from ruleop.core.validation.fields.addresses import parse_address
from ruleop.core.validation.fields.field_names import (
    label_problems,
    subdomain_problems,
    validate_path_segment,
    wildcard_problems,
)
from ruleop.core.validation.fields.numbers import validate_port_or_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_CLASS: Final = "kubernetes.io/ingress.class"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS: Final = ("/..", "/.")


def ingress_warnings(new: Object, old: Object | None) -> list[str]:
    annotations = new["metadata"].get("annotations") or {}
    if old is not None or _CLASS not in annotations or (new.get("spec") or {}).get("ingressClassName") is not None:
        return []
    return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _validate_class(ingress: Object, spec: Object) -> Iterator[FieldError]:
    named, annotated = spec.get("ingressClassName"), (ingress["metadata"].get("annotations") or {}).get(_CLASS)
    if named is not None and annotated is not None and named != annotated:
        problem = "must match `ingressClassName` when both are specified"
        yield invalid_value(f"annotations.{_CLASS}", annotated, problem)


def validate_ingress(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    rules, default = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and default is None:
        yield invalid_value("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if default is not None:
        yield from _validate_backend("spec.defaultBackend", default)
    tolerant = any("*" in each.get("host", "") and any(_validate_rule("", each)) for each in before.get("rules") or ())
    for index, rule in enumerate(rules):
        field, host = f"spec.rules[{index}]", rule.get("host", "")
        yield from _validate_host(f"{field}.host", host)
        if not (tolerant and "*" in host):  # the old version had such a rule already
            yield from _validate_rule(field, rule)
    known_secrets = not any(any(_secret_problems(each)) for each in before.get("tls") or ())
    for index, tls in enumerate(spec.get("tls") or ()):
        field = f"spec.tls[{index}]"
        for number, host in enumerate(tls.get("hosts") or ()):
            problems = wildcard_problems(host)
            yield from invalid_values(f"{field}.hosts[{number}]", host, problems)
        if known_secrets:
            yield from invalid_values(f"{field}.secretName", tls.get("secretName", ""), _secret_problems(tls))
    if (name := spec.get("ingressClassName")) is not None:
        yield from invalid_values("spec.ingressClassName", name, subdomain_problems(name))
    if old is None:
        yield from _validate_class(new, spec)


def _secret_problems(tls: Object) -> Iterator[str]:
    if name := tls.get("secretName"):
        yield from subdomain_problems(name)


def _validate_host(field: str, host: str) -> Iterator[FieldError]:
    if not host:
        return
    if parse_address(host) is not None:
        yield invalid_value(field, host, "must be a DNS name, not an IP address")
    yield from invalid_values(field, host, wildcard_problems(host))


def _validate_rule(field: str, rule: Object) -> Iterator[FieldError]:
    http = rule.get("http")
    if http is None:
        return
    paths = http.get("paths") or []
    if not paths:
        yield required(f"{field}.http.paths")
    for index, each in enumerate(paths):
        yield from _validate_path(f"{field}.http.paths[{index}]", each)


def _validate_path(field: str, item: Object) -> Iterator[FieldError]:
    path, type_ = item.get("path", ""), item.get("pathType")
    if type_ is None:
        yield required(f"{field}.pathType", "pathType must be specified")
        return
    if type_ not in _PATH_TYPES:
        yield unsupported(f"{field}.pathType", type_, _PATH_TYPES)
    else:
        yield from invalid_values(f"{field}.path", path, _path_problems(path, exact=type_ != "ImplementationSpecific"))
    yield from _validate_backend(f"{field}.backend", item.get("backend") or {})


def _path_problems(path: str, *, exact: bool) -> Iterator[str]:
    if not path.startswith("/") and (path or exact):
        yield "must be an absolute path"
    if not exact:
        return
    for each in _FORBIDDEN_PARTS:
        if each in path:
            yield f"must not contain '{each}'"
    for each in _FORBIDDEN_ENDS:
        if path.endswith(each):
            yield f"cannot end with '{each}'"


def _validate_backend(field: str, backend: Object) -> Iterator[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield invalid_value(field, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _validate_resource(f"{field}.resource", resource)
    elif service is not None:
        yield from _validate_service(field, service)
    else:
        yield invalid_value(field, "", "resource or service backend is required")


def _validate_resource(field: str, resource: Object) -> Iterator[FieldError]:
    if (group := resource.get("apiGroup")) is not None:
        yield from invalid_values(f"{field}.apiGroup", group, subdomain_problems(group))
    for name in ("kind", "name"):
        yield from validate_path_segment(f"{field}.{name}", resource.get(name, ""))


def _validate_service(field: str, service: Object) -> Iterator[FieldError]:
    port = service.get("port") or {}
    yield from validate_required(f"{field}.service.name", service.get("name"), label_problems)
    named, number = port.get("name"), port.get("number")
    if named and number:
        yield invalid_value(field, "", "cannot set both port name & port number")
    elif named:
        yield from validate_port_or_name(named, f"{field}.service.port.name")
    elif number:
        yield from validate_port_or_name(number, f"{field}.service.port.number")
    else:
        yield required(field, "port name or number is required")
