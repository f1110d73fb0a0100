"""Warnings for authors of pods and of templates of pods."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.core.schema.builtin.immutable_fields import value_at
from ruleop.core.schema.quantity import parse_quantity
from ruleop.core.validation.fields.field_names import label_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.core.kinds import Object

_WHOLE_BYTES: Final = ("memory", "ephemeral-storage")
_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")
_TERMS: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")


def pod_warnings(pod: Object, old: Object | None) -> list[str]:
    if old is not None:
        return []
    return [*_name_warnings(pod, "the Pod's hostname"), *_spec_warnings(pod.get("spec") or {}, "spec")]


def named_after(*path: str) -> Callable[[Object, Object | None], list[str]]:
    """The warnings of a kind with a template there, whose pods get its name."""
    warnings = of_template(*path)

    def found(new: Object, old: Object | None) -> list[str]:
        own = _name_warnings(new, "Pod names and hostnames") if old is None else ()
        return [*own, *warnings(new, old)]

    return found


def of_template(*path: str) -> Callable[[Object, Object | None], list[str]]:
    """The warnings of a kind with a template there."""
    field = ".".join((*path, "spec"))

    def found(new: Object, old: Object | None) -> list[str]:
        if old is not None and new.get("spec") == old.get("spec"):
            return []
        return list(_spec_warnings(value_at(new, field) or {}, field))

    return found


def _name_warnings(obj: Object, used: str) -> Iterator[str]:
    if problems := list(label_problems(obj["metadata"].get("name", ""))):
        yield (
            f"metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is "
            f"recommended: [{' '.join(problems)}]"
        )


def _spec_warnings(spec: Object, field: str) -> Iterator[str]:
    """A spec is looked through once, as most have no warnings: a Deployment's is its ReplicaSet's."""
    if _has_warnings(orjson.dumps(spec)):
        yield from _all_warnings(spec, field)


@lru_cache(maxsize=256)
def _has_warnings(spec: bytes) -> bool:
    return any(_all_warnings(orjson.loads(spec), ""))


def _all_warnings(spec: Object, field: str) -> Iterator[str]:
    for index, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        if each.get("labelSelector") is None:
            yield _selects_nothing(f"{field}.topologySpreadConstraints[{index}]")
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("gitRepo") is not None:
            yield f"{field}.volumes[{index}].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"
    yield from _repeated(spec, f"{field}.hostAliases", "ip")
    yield from _repeated(spec, f"{field}.imagePullSecrets", "name")
    for index, each in enumerate(spec.get("imagePullSecrets") or ()):
        if not each.get("name"):
            yield f'{field}.imagePullSecrets[{index}].name: invalid empty name ""'
    containers = [
        (f"{field}.{part}[{index}]", each)
        for part in ("initContainers", "containers")
        for index, each in enumerate(spec.get(part) or ())
    ]
    for at, container in containers:
        yield from _resource_warnings(container.get("resources") or {}, f"{at}.resources")
        yield from _variable_warnings(container, f"{at}.env")
    ports = [
        (f"{at}.ports[{index}]", port) for at, each in containers for index, port in enumerate(each.get("ports") or ())
    ]
    yield from _port_warnings(ports)
    yield from _port_name_warnings(ports)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        seconds = f"{field}.terminationGracePeriodSeconds"
        yield f"{seconds}: must be >= 0; negative values are invalid and will be treated as 1"
    yield from _affinity_warnings(spec.get("affinity") or {}, f"{field}.affinity")


def _selects_nothing(field: str) -> str:
    return f"{field}.labelSelector: a null labelSelector results in matching no pod"


def _repeated(spec: Object, field: str, key: str) -> Iterator[str]:
    seen = set[str]()
    for index, each in enumerate(spec.get(field.rpartition(".")[2]) or ()):
        value = each.get(key, "")
        if value in seen:
            yield f'{field}[{index}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def _resource_warnings(resources: Object, field: str) -> Iterator[str]:
    for name in _WHOLE_BYTES:
        for part in ("limits", "requests"):
            value = (resources.get(part) or {}).get(name)
            amount = parse_quantity(value)
            if amount is not None and amount % 1:
                yield f'{field}.{part}[{name}]: fractional byte value "{value}" is invalid, must be an integer'


def _variable_warnings(container: Object, field: str) -> Iterator[str]:
    seen = set[str]()
    for index, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        hides = variable.get("valueFrom") is not None or value == reference or reference not in value
        if name in seen and hides:
            yield f'{field}[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _port_warnings(ports: list[tuple[str, Object]]) -> Iterator[str]:
    taken: defaultdict[tuple[Any, Any], list[tuple[str, Object]]] = defaultdict(list)
    for at, port in ports:
        others = taken[port.get("containerPort"), port.get("protocol", "TCP")]
        for other_at, other in others:
            if how := _overlap(port, other):
                yield f"{at}: {how} port definition with {other_at}"
        others.append((at, port))


def _overlap(port: Object, other: Object) -> str:
    host, others_host = port.get("hostPort", 0), other.get("hostPort", 0)
    address, others_address = port.get("hostIP", ""), other.get("hostIP", "")
    if (host, address) == (others_host, others_address):
        return "duplicate"
    if not host or not others_host:
        return "overlapping"
    return "dangerously ambiguous" if host == others_host and bool(address) != bool(others_address) else ""


def _port_name_warnings(ports: list[tuple[str, Object]]) -> Iterator[str]:
    first = dict[str, str]()
    for at, port in ports:
        if name := port.get("name"):
            if name in first:
                other = first[name]
                yield (
                    f'{at}: duplicate port name "{name}" with {other}, services and probes that select ports by name '
                    f"will use {other}"
                )
            first.setdefault(name, at)


def _affinity_warnings(affinity: Object, field: str) -> Iterator[str]:
    for kind in _AFFINITIES:
        for terms in _TERMS:
            for index, term in enumerate((affinity.get(kind) or {}).get(terms) or ()):
                is_weighted = terms == _TERMS[1]
                chosen = term.get("podAffinityTerm") or {} if is_weighted else term
                if chosen.get("labelSelector") is None:
                    at = f"{field}.{kind}.{terms}[{index}]"
                    yield _selects_nothing(f"{at}.podAffinityTerm" if is_weighted else at)
