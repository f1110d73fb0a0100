"""Why the spec of a pod, or of a pod's template, is invalid."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.errors import duplicate, forbidden_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.container_causes import PROBES, container_causes
from ruleop.localcluster.kinds.volume_causes import volume_causes
from ruleop.localcluster.objects.names import label_causes, label_problems, subdomain_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_OPERATORS: Final = ("Equal", "Exists")


def pod_spec_causes(spec: Object, field: str, claims: Iterable[str] = ()) -> Iterator[Cause]:
    """`claims`: volumes that a StatefulSet adds to its pods. A spec is checked once: a Deployment's is its
    ReplicaSet's, and often that of other Deployments."""
    names = tuple(claims)
    if not _is_valid(orjson.dumps(spec), names):
        yield from _spec_causes(spec, field, names)


@lru_cache(maxsize=256)
def _is_valid(spec: bytes, claims: tuple[str, ...]) -> bool:
    return not any(_spec_causes(orjson.loads(spec), "", claims))


def _spec_causes(spec: Object, field: str, claims: tuple[str, ...]) -> Iterator[Cause]:
    volumes, used = set[str](), set[str]()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _unique_name(volume, f"{field}.volumes[{index}]", volumes)
        yield from volume_causes(volume, f"{field}.volumes[{index}]")
    volumes.update(claims)
    if not spec.get("containers"):
        yield required(f"{field}.containers")
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            at = f"{field}.{part}[{index}]"
            yield from _unique_name(container, at, used)
            yield from container_causes(container, at, volumes)
            if part == "initContainers" and container.get("restartPolicy") != "Always":
                yield from _init_causes(container, at)
    yield from _ports_on_hosts(spec.get("containers") or (), f"{field}.containers")
    policy = spec.get("restartPolicy", "Always")
    if policy not in _RESTART_POLICIES:
        yield unsupported(f"{field}.restartPolicy", policy, _RESTART_POLICIES)
    yield from _dns_causes(spec, field)
    if name := spec.get("serviceAccountName"):
        yield from (invalid_value(f"{field}.serviceAccountName", name, each) for each in subdomain_problems(name))
    if name := spec.get("hostname"):
        yield from (invalid_value(f"{field}.hostname", name, each) for each in label_problems(name))
    yield from label_causes(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")
    for index, each in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_causes(each, f"{field}.tolerations[{index}].operator")


def _init_causes(container: Object, field: str) -> Iterator[Cause]:
    for name in ("lifecycle", *PROBES):
        if container.get(name) is not None:
            problem = "may not be set for init containers without restartPolicy=Always"
            yield forbidden_value(f"{field}.{name}", problem)


def _dns_causes(spec: Object, field: str) -> Iterator[Cause]:
    policy = spec.get("dnsPolicy", "ClusterFirst")
    if policy not in _DNS_POLICIES:
        yield unsupported(f"{field}.dnsPolicy", policy, _DNS_POLICIES)
    elif policy == "None" and not spec.get("dnsConfig"):
        yield required(f"{field}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")


def _toleration_causes(toleration: Object, field: str) -> Iterator[Cause]:
    given = toleration.get("operator", "")
    operator = given or "Equal"
    if not toleration.get("key") and operator != "Exists":
        problem = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(field, given, problem)
    if operator not in _OPERATORS:
        yield unsupported(field, operator, _OPERATORS)
    elif operator == "Exists" and toleration.get("value"):
        yield invalid_value(field, toleration["value"], "value must be empty when `operator` is 'Exists'")


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
    elif problems := label_problems(name):
        yield from (invalid_value(f"{field}.name", name, each) for each in problems)
    elif name in used:
        yield duplicate(f"{field}.name", name)
    used.add(name)
