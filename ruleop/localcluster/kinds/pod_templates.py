"""Why the spec of a pod, or of a pod's template, is invalid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import NOT_LABEL, Cause, unsupported
from ruleop.localcluster.kinds.field_causes import duplicate, required
from ruleop.schema.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.kinds import Object

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def pod_spec_causes(spec: Object, field: str, claims: Iterable[str] = ()) -> Iterator[Cause]:
    """`claims`: volumes that a StatefulSet adds to its pods."""
    volumes, used = set[str](), set[str]()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _unique_name(volume, f"{field}.volumes[{index}]", volumes)
    volumes.update(claims)
    if not spec.get("containers"):
        yield required(f"{field}.containers")
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            at = f"{field}.{part}[{index}]"
            yield from _unique_name(container, at, used)
            yield from _container_causes(container, at, volumes)
    yield from _ports_on_hosts(spec.get("containers") or (), f"{field}.containers")
    policy = spec.get("restartPolicy", "Always")
    if policy not in _RESTART_POLICIES:
        yield unsupported(f"{field}.restartPolicy", policy, _RESTART_POLICIES)


def _container_causes(container: Object, field: str, volumes: set[str]) -> Iterator[Cause]:
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
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    for name, value in (resources.get("requests") or {}).items():
        amount, limit = parse_quantity(value), parse_quantity(limits.get(name))
        if amount is not None and limit is not None and amount > limit:
            message = f'Invalid value: "{value}": must be less than or equal to {name} limit of {limits[name]}'
            yield Cause("FieldValueInvalid", message, f"{field}.resources.requests")


def _port_causes(port: Object, field: str) -> Iterator[Cause]:
    number = port.get("containerPort")
    if not number:
        yield required(f"{field}.containerPort")
    elif not 1 <= number <= 65535:
        message = f"Invalid value: {number}: must be between 1 and 65535, inclusive"
        yield Cause("FieldValueInvalid", message, f"{field}.containerPort")
    protocol = port.get("protocol", "TCP")
    if protocol not in _PROTOCOLS:
        yield unsupported(f"{field}.protocol", protocol, _PROTOCOLS)


def _variable_causes(variable: Object, field: str) -> Iterator[Cause]:
    if not variable.get("name"):
        yield required(f"{field}.name")
    if variable.get("value") and variable.get("valueFrom"):
        message = 'Invalid value: "": may not be specified when `value` is not empty'
        yield Cause("FieldValueInvalid", message, f"{field}.valueFrom")


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
            yield Cause("FieldValueInvalid", f'Invalid value: "{path}": must be unique', f"{field}[{index}].mountPath")
        paths.add(path or "")


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


def _ports_on_hosts(containers: Sequence[Object], field: str) -> Iterator[Cause]:
    """A port of the host is one container's."""
    taken = set[tuple[Any, ...]]()
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            where = (port.get("protocol"), port.get("hostIP"), port.get("hostPort"))
            if where[2] and where in taken:
                shown = "/".join(str(each) for each in (where[0], where[1] or "", where[2]))
                yield duplicate(f"{field}[{number}].ports[{index}].hostPort", shown)
            taken.add(where)


def _unique_name(item: Object, field: str, used: set[str]) -> Iterator[Cause]:
    name = item.get("name") or ""
    if not name:
        yield required(f"{field}.name")
    elif not _LABEL.fullmatch(name):
        yield Cause("FieldValueInvalid", f'Invalid value: "{name}": {NOT_LABEL}', f"{field}.name")
    elif name in used:
        yield duplicate(f"{field}.name", name)
    used.add(name)


def below_zero(spec: Object, *names: str) -> Iterator[Cause]:
    for name in names:
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            message = f"Invalid value: {value}: must be greater than or equal to 0"
            yield Cause("FieldValueInvalid", message, f"spec.{name}")
