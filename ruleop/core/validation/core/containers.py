"""Validation of the containers of a pod."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ruleop.core.schema.quantity import parse_quantity
from ruleop.core.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden_value,
    invalid_value,
    invalid_values,
    required,
    validate_one_of,
    validate_required,
)
from ruleop.core.validation.fields.field_names import (
    config_key_problems,
    label_problems,
    port_name_problems,
    subdomain_problems,
)
from ruleop.core.validation.fields.numbers import validate_nonnegative, validate_port, validate_port_or_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.core.kinds import Object

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_SCHEMES: Final = ("HTTP", "HTTPS")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_NO_ENVIRONMENT_NAME: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_POD_FIELDS: Final = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
_POD_ENTRY: Final = re.compile(r"metadata\.(labels|annotations)\['.+'\]")
_LARGEST_ID: Final = 2**31 - 1


def validate_containers(containers: Sequence[Object], field: str, volumes: set[str]) -> Iterator[FieldError]:
    """Validates all containers of a pod but those that run before the others."""
    if not containers:
        yield required(field)
    names = set[str]()
    for index, container in enumerate(containers):
        at, name = f"{field}[{index}]", container.get("name", "")
        yield from _validate_common(container, at, volumes)
        if name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)
        yield from _validate_lifecycle(container, at)
        policy = container.get("restartPolicy")
        yield from validate_one_of(f"{at}.restartPolicy", policy, _RESTART_POLICIES, optional=True)
    yield from _validate_ports_on_hosts(containers, field)


_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")


def validate_init_containers(
    containers: Sequence[Object], field: str, volumes: set[str], others: Sequence[Object]
) -> Iterator[FieldError]:
    names = {each.get("name", "") for each in others}
    for index, container in enumerate(containers):
        at, name = f"{field}[{index}]", container.get("name", "")
        yield from _validate_common(container, at, volumes)
        if name in names:
            yield duplicate(f"{at}.name", name)
        elif name:
            names.add(name)
        yield from _validate_ports_on_hosts([container], field)
        if container.get("restartPolicy") == "Always":
            yield from _validate_lifecycle(container, at)
            continue
        for part in ("lifecycle", *_PROBES):
            if container.get(part) is not None:
                yield forbidden_value(f"{at}.{part}", "may not be set for init containers without restartPolicy=Always")


def _validate_common(container: Object, field: str, volumes: set[str]) -> Iterator[FieldError]:
    yield from validate_required(f"{field}.name", container.get("name"), label_problems)
    if not container.get("image"):
        yield required(f"{field}.image")
    policy = container.get("terminationMessagePolicy", "File")
    yield from validate_one_of(f"{field}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    yield from _validate_port(container.get("ports") or (), f"{field}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        yield from _validate_variable(variable, f"{field}.env[{index}]")
    yield from _validate_imported_variable(container.get("envFrom") or (), f"{field}.envFrom")
    yield from _validate_mount(container.get("volumeMounts") or (), f"{field}.volumeMounts", volumes)
    yield from _validate_device(container.get("volumeDevices") or (), f"{field}.volumeDevices")
    yield from validate_one_of(f"{field}.imagePullPolicy", container.get("imagePullPolicy", "Always"), _PULL_POLICIES)
    yield from validate_resources(container.get("resources") or {}, f"{field}.resources")
    yield from _validate_security(container.get("securityContext") or {}, f"{field}.securityContext")


def _validate_port(ports: Sequence[Object], field: str) -> Iterator[FieldError]:
    names = set[str]()
    for index, port in enumerate(ports):
        at = f"{field}[{index}]"
        if name := port.get("name"):
            problems = list(port_name_problems(name))
            yield from invalid_values(f"{at}.name", name, problems)
            if not problems and name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        if not (number := port.get("containerPort")):
            yield required(f"{at}.containerPort")
        else:
            yield from validate_port(number, f"{at}.containerPort")
        if number := port.get("hostPort"):
            yield from validate_port(number, f"{at}.hostPort")
        yield from validate_one_of(f"{at}.protocol", port.get("protocol", "TCP"), _PROTOCOLS)


def _validate_ports_on_hosts(containers: Sequence[Object], field: str) -> Iterator[FieldError]:
    """A port of the host is one container's."""
    taken = set[str]()
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            where = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if where in taken:
                yield duplicate(f"{field}[{number}].ports[{index}].hostPort", where)
            taken.add(where)


def _validate_variable(variable: Object, field: str) -> Iterator[FieldError]:
    name = variable.get("name")
    if not name:
        yield required(f"{field}.name")
    elif not name.isascii() or not name.isprintable() or "=" in name:
        yield invalid_value(f"{field}.name", name, _NO_ENVIRONMENT_NAME)
    source = variable.get("valueFrom")
    if source is None:
        return
    at, given = f"{field}.valueFrom", [each for each in _SOURCES if source.get(each) is not None]
    for each in given:
        yield from _validate_source(each, source[each], f"{at}.{each}")
    if not given:
        *most, last = [f"`{each}`" for each in _SOURCES]
        yield invalid_value(at, "", f"must specify one of: {', '.join(most)} or {last}")
    elif variable.get("value"):
        yield invalid_value(at, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid_value(at, "", "may not have more than one field specified at a time")


def _validate_source(kind: str, source: Object, field: str) -> Iterator[FieldError]:
    if kind in ("configMapKeyRef", "secretKeyRef"):
        name = source.get("name", "")
        yield from invalid_values(f"{field}.name", name, subdomain_problems(name))
        yield from validate_required(f"{field}.key", source.get("key"), config_key_problems)
    elif kind == "fieldRef":
        yield from _validate_pod_field(f"{field}.fieldPath", source.get("fieldPath", ""))
    elif kind == "resourceFieldRef" and not source.get("resource"):
        yield required(f"{field}.resource")


def _validate_pod_field(field: str, path: str) -> Iterator[FieldError]:
    """Validates a field of the pod that becomes a variable."""
    if not path:
        yield required(field)
    elif path not in _POD_FIELDS and not _POD_ENTRY.fullmatch(path):
        yield invalid_value(field, path, f"error converting fieldPath: field label not supported: {path}")


def _validate_imported_variable(sources: Sequence[Object], field: str) -> Iterator[FieldError]:
    for index, source in enumerate(sources):
        given = [each for each in ("configMapRef", "secretRef") if source.get(each) is not None]
        for each in given:
            yield from validate_required(f"{field}[{index}].{each}.name", source[each].get("name"), subdomain_problems)
        if not given:
            yield invalid_value(field, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid_value(field, "", "may not have more than one field specified at a time")


def _validate_mount(mounts: Sequence[Object], field: str, volumes: set[str]) -> Iterator[FieldError]:
    paths = set[str]()
    for index, mount in enumerate(mounts):
        at, name, path = f"{field}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield FieldError("FieldValueNotFound", f'Not found: "{name}"', f"{at}.name")
        if not path:
            yield required(f"{at}.mountPath")
        if path in paths:
            yield invalid_value(f"{at}.mountPath", path, "must be unique")
        paths.add(path)
        for part in ("subPath", "subPathExpr"):
            yield from validate_path(f"{field}.{part}", mount.get(part, ""))


def validate_path(field: str, path: str) -> Iterator[FieldError]:
    """Validates a path below a volume."""
    if path.startswith("/"):
        yield invalid_value(field, path, "must be a relative path")
    if ".." in path.split("/"):
        yield invalid_value(field, path, "must not contain '..'")


def _validate_device(devices: Sequence[Object], field: str) -> Iterator[FieldError]:
    names = set[str]()
    for index, device in enumerate(devices):
        if device.get("name") in names:
            yield FieldError("FieldValueInvalid", "Invalid value: must be unique", f"{field}[{index}].name")
        names.add(device.get("name", ""))


def validate_resource_name(name: str, field: str) -> Iterator[FieldError]:
    if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
        yield invalid_value(field, name, "must be a standard resource type or fully qualified")
        yield invalid_value(field, name, "must be a standard resource for containers")


def validate_resources(resources: Object, field: str) -> Iterator[FieldError]:
    limits = resources.get("limits") or {}
    for part in ("limits", "requests"):
        for name, value in (resources.get(part) or {}).items():
            at = f"{field}.{part}[{name}]"
            yield from validate_resource_name(name, at)
            amount, limit = parse_quantity(value), parse_quantity(limits.get(name)) if part == "requests" else None
            if amount is not None and amount < 0:
                yield invalid_value(at, value, "must be greater than or equal to 0")
            if part == "requests" and _is_exact(name):
                if limit is None:
                    yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
                elif amount != limit:
                    problem = f"must be equal to {name} limit of {limits[name]}"
                    yield invalid_value(f"{field}.requests", value, problem)
            elif amount is not None and limit is not None and amount > limit:
                problem = f"must be less than or equal to {name} limit of {limits[name]}"
                yield invalid_value(f"{field}.requests", value, problem)


def _is_exact(name: str) -> bool:
    """Whether a container gets as much of a resource as it requests: huge pages, and those of devices."""
    prefix, slash, _ = name.partition("/")
    return name.startswith("hugepages-") or bool(slash and not prefix.endswith("kubernetes.io"))


def _validate_security(context: Object, field: str) -> Iterator[FieldError]:
    yield from validate_ids(context, field, ("runAsUser", "runAsGroup"))
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        problem = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield FieldError("FieldValueInvalid", f"Invalid value: {problem}", field)


def validate_ids(context: Object, field: str, names: Sequence[str]) -> Iterator[FieldError]:
    """Validates numbers of users and groups."""
    for name in names:
        number = context.get(name)
        if number is not None and not 0 <= number <= _LARGEST_ID:
            yield invalid_value(f"{field}.{name}", number, f"must be between 0 and {_LARGEST_ID}, inclusive")


def _validate_lifecycle(container: Object, field: str) -> Iterator[FieldError]:
    for part, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, dict):
            yield from _validate_handler(handler, f"{field}.lifecycle.{part}")
    for part in _PROBES:
        if (probe := container.get(part)) is not None:
            yield from _validate_probe(probe, f"{field}.{part}", part)


def _validate_probe(probe: Object, field: str, part: str) -> Iterator[FieldError]:
    yield from _validate_handler(probe, field)
    yield from validate_nonnegative(probe, *_PROBE_NUMBERS, field=field)
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid_value(f"{field}.terminationGracePeriodSeconds", seconds, "must be greater than 0")
    if part == "readinessProbe":
        if seconds is not None:
            problem = "must not be set for readinessProbes"
            yield invalid_value(f"{field}.terminationGracePeriodSeconds", seconds, problem)
    elif probe.get("successThreshold", 1) != 1:
        yield invalid_value(f"{field}.successThreshold", probe["successThreshold"], "must be 1")


def _validate_handler(handler: Object, field: str) -> Iterator[FieldError]:
    given = [each for each in _HANDLERS if handler.get(each) is not None]
    for each in given[1:]:
        yield forbidden_value(f"{field}.{each}", "may not specify more than 1 handler type")
    if not given:
        yield required(field, "must specify a handler type")
        return
    kind, action = given[0], handler[given[0]]
    at = f"{field}.{kind}"
    if kind == "exec" and not action.get("command"):
        yield required(f"{at}.command")
    if kind == "httpGet" and not action.get("path", "/"):
        yield required(f"{at}.path")
    if kind in ("httpGet", "tcpSocket"):
        yield from validate_port_or_name(action.get("port", 0), f"{at}.port")
    if kind == "httpGet":
        yield from validate_one_of(f"{at}.scheme", action.get("scheme", "HTTP"), _SCHEMES)
