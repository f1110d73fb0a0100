"""Why a container of a pod is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.errors import Cause, duplicate, forbidden_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.numbers import below_zero, port_causes
from ruleop.localcluster.objects.names import port_name_problems
from ruleop.schema.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ruleop.kinds import Object

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NOT_VARIABLE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)


def container_causes(container: Object, field: str, volumes: set[str]) -> Iterator[Cause]:
    if not container.get("image"):
        yield required(f"{field}.image")
    policy = container.get("imagePullPolicy", "Always")
    if policy not in _PULL_POLICIES:
        yield unsupported(f"{field}.imagePullPolicy", policy, _PULL_POLICIES)
    for part, causes in _PARTS.items():
        for index, each in enumerate(container.get(part) or ()):
            yield from causes(each, f"{field}.{part}[{index}]")
    yield from _repeated_ports(container.get("ports") or (), f"{field}.ports")
    yield from _mount_causes(container.get("volumeMounts") or (), f"{field}.volumeMounts", volumes)
    yield from _device_causes(container.get("volumeDevices") or (), f"{field}.volumeDevices")
    yield from _environment_causes(container.get("envFrom") or (), f"{field}.envFrom")
    yield from _probe_causes(container, field)
    policy = container.get("terminationMessagePolicy", "File")
    if policy not in _MESSAGES:
        yield unsupported(f"{field}.terminationMessagePolicy", policy, _MESSAGES)
    yield from _resource_causes(container.get("resources") or {}, f"{field}.resources")


def _resource_causes(resources: Object, field: str) -> Iterator[Cause]:
    for part in ("limits", "requests"):
        for name, value in (resources.get(part) or {}).items():
            amount = parse_quantity(value)
            if amount is not None and amount < 0:
                yield invalid_value(f"{field}.{part}[{name}]", value, "must be greater than or equal to 0")
    limits = resources.get("limits") or {}
    for name, value in (resources.get("requests") or {}).items():
        amount, limit = parse_quantity(value), parse_quantity(limits.get(name))
        if amount is not None and limit is not None and amount > limit:
            message = f'Invalid value: "{value}": must be less than or equal to {name} limit of {limits[name]}'
            yield Cause("FieldValueInvalid", message, f"{field}.requests")


def _port_causes(port: Object, field: str) -> Iterator[Cause]:
    number = port.get("containerPort")
    if not number:
        yield required(f"{field}.containerPort")
    else:
        yield from port_causes(number, f"{field}.containerPort")
    if name := port.get("name"):
        yield from (invalid_value(f"{field}.name", name, each) for each in port_name_problems(name))
    protocol = port.get("protocol", "TCP")
    if protocol not in _PROTOCOLS:
        yield unsupported(f"{field}.protocol", protocol, _PROTOCOLS)


def _variable_causes(variable: Object, field: str) -> Iterator[Cause]:
    if not variable.get("name"):
        yield required(f"{field}.name")
    elif not all("\x20" <= letter < "\x7f" and letter != "=" for letter in variable["name"]):
        yield invalid_value(f"{field}.name", variable["name"], _NOT_VARIABLE)
    source = variable.get("valueFrom")
    if source is None:
        return
    given = [name for name in _SOURCES if source.get(name) is not None]
    if not given:
        *names, last = [f"`{name}`" for name in _SOURCES]
        yield invalid_value(f"{field}.valueFrom", "", f"must specify one of: {', '.join(names)} or {last}")
    elif variable.get("value"):
        yield invalid_value(f"{field}.valueFrom", "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid_value(f"{field}.valueFrom", "", "may not have more than one field specified at a time")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in given and not source[name].get("key"):
            yield required(f"{field}.valueFrom.{name}.key")


_PARTS: Final[dict[str, Callable[[Object, str], Iterator[Cause]]]] = {"ports": _port_causes, "env": _variable_causes}


def _mount_causes(mounts: Sequence[Object], field: str, volumes: set[str]) -> Iterator[Cause]:
    paths = set[str]()
    for index, mount in enumerate(mounts):
        name, path = mount.get("name"), mount.get("mountPath")
        if not name:
            yield required(f"{field}[{index}].name")
        elif name not in volumes:
            yield Cause("FieldValueNotFound", f'Not found: "{name}"', f"{field}[{index}].name")
        if not path:
            yield required(f"{field}[{index}].mountPath")
        elif path in paths:
            yield invalid_value(f"{field}[{index}].mountPath", path, "must be unique")
        paths.add(path or "")
        inner = mount.get("subPath") or ""
        if inner.startswith("/"):
            yield invalid_value(f"{field}.subPath", inner, "must be a relative path")
        elif ".." in inner.split("/"):
            yield invalid_value(f"{field}.subPath", inner, "must not contain '..'")


def _device_causes(devices: Sequence[Object], field: str) -> Iterator[Cause]:
    names = set[str]()
    for index, device in enumerate(devices):
        if device.get("name") in names:
            yield Cause("FieldValueInvalid", "Invalid value: must be unique", f"{field}[{index}].name")
        names.add(device.get("name", ""))


def _repeated_ports(ports: Sequence[Object], field: str) -> Iterator[Cause]:
    names = set[str]()
    for index, port in enumerate(ports):
        if (name := port.get("name")) and name in names:
            yield duplicate(f"{field}[{index}].name", name)
        names.add(name or "")


def _environment_causes(sources: Sequence[Object], field: str) -> Iterator[Cause]:
    for each in sources:
        if not (each.get("configMapRef") or each.get("secretRef")):
            yield invalid_value(field, "", "must specify one of: `configMapRef` or `secretRef`")


def _probe_causes(container: Object, field: str) -> Iterator[Cause]:
    for name in PROBES:
        probe = container.get(name)
        if probe is None:
            continue
        yield from _handler_causes(probe, f"{field}.{name}")
        yield from below_zero(probe, *_COUNTS, field=f"{field}.{name}")
        successes = probe.get("successThreshold", 1)
        if name != "readinessProbe" and successes > 1:
            yield invalid_value(f"{field}.{name}.successThreshold", successes, "must be 1")
    for name, hook in (container.get("lifecycle") or {}).items():
        if name in ("postStart", "preStop"):
            yield from _handler_causes(hook, f"{field}.lifecycle.{name}")


def _handler_causes(holder: Object, field: str) -> Iterator[Cause]:
    given = [name for name in _HANDLERS if holder.get(name) is not None]
    if not given:
        yield required(field, "must specify a handler type")
    for name in given[1:]:
        yield forbidden_value(f"{field}.{name}", "may not specify more than 1 handler type")
    for name in given[:1]:
        handler = holder[name]
        port = handler.get("port")
        yield from port_causes(port, f"{field}.{name}.port")
        if isinstance(port, str):
            yield from (invalid_value(f"{field}.{name}.port", port, each) for each in port_name_problems(port))
        if name == "exec" and not handler.get("command"):
            yield required(f"{field}.exec.command")
