"""Why the spec of a pod, or a template of pods, is invalid."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.labels import meets, requirements_of
from ruleop.localcluster.errors import duplicate, invalid_value, invalid_values, required, unsupported
from ruleop.localcluster.kinds.addresses import address_causes
from ruleop.localcluster.kinds.container_causes import container_causes, id_causes, init_container_causes
from ruleop.localcluster.kinds.label_selectors import label_selector_causes
from ruleop.localcluster.kinds.volume_causes import volume_causes
from ruleop.localcluster.objects.names import (
    annotation_causes,
    key_problems,
    label_causes,
    label_problems,
    label_value_problems,
    subdomain_problems,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists")
_COMPARISONS: Final = ("Equal", "Exists", "Lt", "Gt")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_LARGEST: Final = 2**31 - 1
_NAMED: Final[dict[str, Callable[[str], Iterable[str]]]] = {
    "serviceAccountName": subdomain_problems,
    "nodeName": subdomain_problems,
    "hostname": label_problems,
    "subdomain": label_problems,
    "priorityClassName": subdomain_problems,
}


def template_causes(template: Object, field: str, claims: Iterable[str] = ()) -> Iterator[Cause]:
    metadata = template.get("metadata") or {}
    yield from template_metadata_causes(metadata, field)
    yield from pod_spec_causes(template.get("spec") or {}, f"{field}.spec", claims)


def match_causes(selector: Object | None, template: Object, field: str) -> Iterator[Cause]:
    """Whether the selector of a workload, if it is valid, finds the pods of its template."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is not None and (any(label_selector_causes(selector, "")) or meets(labels, requirements_of(selector))):
        return
    shown = dict(sorted(labels.items())) or None
    yield invalid_value(f"{field}.metadata.labels", shown, "`selector` does not match template `labels`")


def template_metadata_causes(metadata: Object, field: str) -> Iterator[Cause]:
    yield from label_causes(metadata.get("labels") or {}, f"{field}.labels")
    yield from annotation_causes(metadata.get("annotations") or {}, f"{field}.annotations")


def pod_spec_causes(spec: Object, field: str, claims: Iterable[str] = (), *, is_pod: bool = False) -> Iterator[Cause]:
    """`claims`: volumes that a StatefulSet adds to its pods. A spec is checked once: a Deployment's is its
    ReplicaSet's, and often that of other Deployments."""
    names = tuple(claims)
    if not _is_valid(orjson.dumps(spec), names, is_pod=is_pod):
        yield from _spec_causes(spec, field, names, is_pod=is_pod)


@lru_cache(maxsize=256)
def _is_valid(spec: bytes, claims: tuple[str, ...], *, is_pod: bool) -> bool:
    return not any(_spec_causes(orjson.loads(spec), "", claims, is_pod=is_pod))


def _spec_causes(spec: Object, field: str, claims: tuple[str, ...], *, is_pod: bool) -> Iterator[Cause]:
    volumes, containers = set(claims), spec.get("containers") or ()
    own = [each for each in spec.get("volumes") or () if each.get("name") not in volumes]
    yield from volume_causes(own, f"{field}.volumes", volumes)
    yield from container_causes(containers, f"{field}.containers", volumes)
    yield from init_container_causes(spec.get("initContainers") or (), f"{field}.initContainers", volumes, containers)
    if spec.get("hostNetwork"):
        yield from _host_port_causes(containers, f"{field}.containers", is_pod=is_pod)
    for name, allowed in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        if (policy := spec.get(name)) is not None and policy not in allowed:
            yield unsupported(f"{field}.{name}", policy, allowed) if policy else required(f"{field}.{name}")
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        yield required(f"{field}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    yield from label_causes(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")
    yield from id_causes(
        spec.get("securityContext") or {}, f"{field}.securityContext", ("fsGroup", "runAsUser", "runAsGroup")
    )
    yield from _spread_causes(spec.get("topologySpreadConstraints") or (), f"{field}.topologySpreadConstraints")
    yield from _name_causes(spec, field)
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_causes(toleration, f"{field}.tolerations[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        at = f"{field}.hostAliases[{index}]"
        yield from address_causes(f"{at}.ip", alias.get("ip", ""))
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from invalid_values(f"{at}.hostnames[{number}]", name, subdomain_problems(name))


def _name_causes(spec: Object, field: str) -> Iterator[Cause]:
    for name, problems in _NAMED.items():
        if given := spec.get(name):
            yield from invalid_values(f"{field}.{name}", given, problems(given))
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _LARGEST:
        yield invalid_value(f"{field}.activeDeadlineSeconds", seconds, f"must be between 1 and {_LARGEST}, inclusive")


def _host_port_causes(containers: Sequence[Object], field: str, *, is_pod: bool) -> Iterator[Cause]:
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                at = f"{field}[{number}].ports[{index}].hostPort"
                yield invalid_value(at, host, "must match `containerPort` when `hostNetwork` is true")


def _spread_causes(constraints: Sequence[Object], field: str) -> Iterator[Cause]:
    keys = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    for index, (constraint, (key, action)) in enumerate(zip(constraints, keys, strict=True)):
        at = f"{field}[{index}]"
        if (skew := constraint.get("maxSkew", 0)) <= 0:
            yield invalid_value(f"{at}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{at}.topologyKey", "can not be empty")
        if action not in _UNSATISFIABLE:
            yield unsupported(f"{at}.whenUnsatisfiable", action, _UNSATISFIABLE)
        if (key, action) in keys[index + 1 :]:
            yield duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from label_selector_causes(constraint.get("labelSelector"), f"{at}.labelSelector")


def _toleration_causes(toleration: Object, field: str) -> Iterator[Cause]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        yield from invalid_values(f"{field}.key", key, key_problems(key))
    if not key and operator != "Exists":
        problem = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{field}.operator", operator, problem)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid_value(f"{field}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("Equal", ""):
        if problems := list(label_value_problems(value)):
            yield invalid_value(f"{field}.operator", value, ";".join(problems))
    elif operator == "Exists":
        if value:
            yield invalid_value(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield unsupported(f"{field}.operator", operator, _COMPARISONS if operator in _COMPARISONS else _OPERATORS)
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{field}.effect", effect, _EFFECTS)
