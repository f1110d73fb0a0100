"""Ingresses and IngressClasses: why one is invalid, and what is warned of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import immutable_value, invalid_value, invalid_values, required, too_long, unsupported
from ruleop.localcluster.kinds.addresses import address_causes, parse_address
from ruleop.localcluster.kinds.numbers import port_or_name_causes
from ruleop.localcluster.objects.names import label_problems, path_segment_causes, subdomain_problems, wildcard_problems
from ruleop.schema.immutable_fields import immutable_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_CLASS: Final = "kubernetes.io/ingress.class"
_LONGEST_CONTROLLER: Final = 250
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS: Final = ("/..", "/.")


def ingress_causes(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    return [*_spec_causes(spec, (old or {}).get("spec") or {}), *(_class_causes(new, spec) if old is None else ())]


def ingress_warnings(new: Object, old: Object | None) -> list[str]:
    annotations = new["metadata"].get("annotations") or {}
    if old is not None or _CLASS not in annotations or (new.get("spec") or {}).get("ingressClassName") is not None:
        return []
    return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def ingress_status_causes(new: Object, old: Object | None) -> list[Cause]:
    return list(balancer_causes(new, old))


def balancer_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    """Of the addresses of a load balancer, in the status of an Ingress or a Service."""
    known = {each.get("ip") for each in _points(old)}
    for index, each in enumerate(_points(new)):
        field = f"status.loadBalancer.ingress[{index}]"
        if address := each.get("ip"):
            yield from address_causes(f"{field}.ip", address, known)
        if host := each.get("hostname"):
            yield from invalid_values(f"{field}.hostname", host, subdomain_problems(host))
            if parse_address(host) is not None:
                yield invalid_value(f"{field}.hostname", host, "must be a DNS name, not an IP address")


def _points(obj: Object | None) -> list[Any]:
    return (((obj or {}).get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def class_causes(new: Object, old: Object | None) -> list[Cause]:
    """Of an IngressClass."""
    controller = (new.get("spec") or {}).get("controller", "")
    if old is not None and immutable_changes(new, old):
        return [immutable_value("spec.controller", controller)]
    return list(_controller_causes("spec.controller", controller))


def _controller_causes(field: str, controller: str) -> Iterator[Cause]:
    if not controller:
        yield required(field)
        return
    if len(controller) > _LONGEST_CONTROLLER:
        yield too_long(field, _LONGEST_CONTROLLER)
    domain, _, path = controller.partition("/")
    if domain and path:
        yield from invalid_values(field, domain, subdomain_problems(domain))
    else:
        yield invalid_value(field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')


def _class_causes(ingress: Object, spec: Object) -> Iterator[Cause]:
    named, annotated = spec.get("ingressClassName"), (ingress["metadata"].get("annotations") or {}).get(_CLASS)
    if named is not None and annotated is not None and named != annotated:
        problem = "must match `ingressClassName` when both are specified"
        yield invalid_value(f"annotations.{_CLASS}", annotated, problem)


def _spec_causes(spec: Object, old: Object) -> Iterator[Cause]:
    rules, default = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and default is None:
        yield invalid_value("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if default is not None:
        yield from _backend_causes("spec.defaultBackend", default)
    tolerant = any("*" in each.get("host", "") and any(_rule_causes("", each)) for each in old.get("rules") or ())
    for index, rule in enumerate(rules):
        field, host = f"spec.rules[{index}]", rule.get("host", "")
        yield from _host_causes(f"{field}.host", host)
        if not (tolerant and "*" in host):  # the old version had such a rule already
            yield from _rule_causes(field, rule)
    known_secrets = not any(any(_secret_problems(each)) for each in old.get("tls") or ())
    for index, tls in enumerate(spec.get("tls") or ()):
        field = f"spec.tls[{index}]"
        for number, host in enumerate(tls.get("hosts") or ()):
            problems = wildcard_problems(host)
            yield from invalid_values(f"{field}.hosts[{number}]", host, problems)
        if known_secrets:
            yield from invalid_values(f"{field}.secretName", tls.get("secretName", ""), _secret_problems(tls))
    if (name := spec.get("ingressClassName")) is not None:
        yield from invalid_values("spec.ingressClassName", name, subdomain_problems(name))


def _secret_problems(tls: Object) -> Iterator[str]:
    if name := tls.get("secretName"):
        yield from subdomain_problems(name)


def _host_causes(field: str, host: str) -> Iterator[Cause]:
    if not host:
        return
    if parse_address(host) is not None:
        yield invalid_value(field, host, "must be a DNS name, not an IP address")
    yield from invalid_values(field, host, wildcard_problems(host))


def _rule_causes(field: str, rule: Object) -> Iterator[Cause]:
    http = rule.get("http")
    if http is None:
        return
    paths = http.get("paths") or []
    if not paths:
        yield required(f"{field}.http.paths")
    for index, each in enumerate(paths):
        yield from _path_causes(f"{field}.http.paths[{index}]", each)


def _path_causes(field: str, item: Object) -> Iterator[Cause]:
    path, type_ = item.get("path", ""), item.get("pathType")
    if type_ is None:
        yield required(f"{field}.pathType", "pathType must be specified")
        return
    if type_ not in _PATH_TYPES:
        yield unsupported(f"{field}.pathType", type_, _PATH_TYPES)
    else:
        yield from invalid_values(f"{field}.path", path, _path_problems(path, exact=type_ != "ImplementationSpecific"))
    yield from _backend_causes(f"{field}.backend", item.get("backend") or {})


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


def _backend_causes(field: str, backend: Object) -> Iterator[Cause]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield invalid_value(field, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _resource_causes(f"{field}.resource", resource)
    elif service is not None:
        yield from _service_causes(field, service)
    else:
        yield invalid_value(field, "", "resource or service backend is required")


def _resource_causes(field: str, resource: Object) -> Iterator[Cause]:
    if (group := resource.get("apiGroup")) is not None:
        yield from invalid_values(f"{field}.apiGroup", group, subdomain_problems(group))
    for name in ("kind", "name"):
        yield from path_segment_causes(f"{field}.{name}", resource.get(name, ""))


def _service_causes(field: str, service: Object) -> Iterator[Cause]:
    port = service.get("port") or {}
    if name := service.get("name"):
        yield from invalid_values(f"{field}.service.name", name, label_problems(name))
    else:
        yield required(f"{field}.service.name")
    named, number = port.get("name"), port.get("number")
    if named and number:
        yield invalid_value(field, "", "cannot set both port name & port number")
    elif named:
        yield from port_or_name_causes(named, f"{field}.service.port.name")
    elif number:
        yield from port_or_name_causes(number, f"{field}.service.port.number")
    else:
        yield required(field, "port name or number is required")
