"""Validation of the spec of a pod, and of templates of pods."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.core.labels import meets, requirements_of
from ruleop.core.validation.core.containers import validate_containers, validate_ids, validate_init_containers
from ruleop.core.validation.core.volumes import validate_volumes
from ruleop.core.validation.field_errors import (
    duplicate,
    forbidden_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
    validate_one_of,
)
from ruleop.core.validation.fields.addresses import validate_address
from ruleop.core.validation.fields.field_names import (
    key_problems,
    label_problems,
    label_value_problems,
    subdomain_problems,
    validate_annotations,
    validate_labels,
)
from ruleop.core.validation.fields.label_selectors import validate_label_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

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


def validate_template(template: Object, field: str, claims: Iterable[str] = ()) -> Iterator[FieldError]:
    metadata = template.get("metadata") or {}
    yield from validate_template_metadata(metadata, field)
    spec = template.get("spec") or {}
    yield from validate_pod_spec(spec, f"{field}.spec", claims)
    if spec.get("ephemeralContainers"):
        yield forbidden_value(f"{field}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def validate_template_labels(selector: Object | None, template: Object, field: str) -> Iterator[FieldError]:
    """The selector of a workload, if it is valid, finds the pods of its template."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is not None and (
        any(validate_label_selector(selector, "")) or meets(labels, requirements_of(selector))
    ):
        return
    shown = dict(sorted(labels.items())) or None
    yield invalid_value(f"{field}.metadata.labels", shown, "`selector` does not match template `labels`")


def validate_template_metadata(metadata: Object, field: str) -> Iterator[FieldError]:
    yield from validate_labels(metadata.get("labels") or {}, f"{field}.labels")
    yield from validate_annotations(metadata.get("annotations") or {}, f"{field}.annotations")


def validate_pod_spec(
    spec: Object, field: str, claims: Iterable[str] = (), *, is_pod: bool = False
) -> Iterator[FieldError]:
    """`claims`: volumes that a StatefulSet adds to its pods. A spec is checked once: a Deployment's is its
    ReplicaSet's, and often that of other Deployments."""
    names = tuple(claims)
    if not _is_valid(orjson.dumps(spec), names, is_pod=is_pod):
        yield from _validate_spec(spec, field, names, is_pod=is_pod)


@lru_cache(maxsize=256)
def _is_valid(spec: bytes, claims: tuple[str, ...], *, is_pod: bool) -> bool:
    return not any(_validate_spec(orjson.loads(spec), "", claims, is_pod=is_pod))


def _validate_spec(spec: Object, field: str, claims: tuple[str, ...], *, is_pod: bool) -> Iterator[FieldError]:
    volumes, containers = set(claims), spec.get("containers") or ()
    own = [each for each in spec.get("volumes") or () if each.get("name") not in volumes]
    yield from validate_volumes(own, f"{field}.volumes", volumes)
    yield from validate_containers(containers, f"{field}.containers", volumes)
    yield from validate_init_containers(
        spec.get("initContainers") or (), f"{field}.initContainers", volumes, containers
    )
    if spec.get("hostNetwork"):
        yield from _validate_host_port(containers, f"{field}.containers", is_pod=is_pod)
    for name, allowed in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        if (policy := spec.get(name)) is not None and policy not in allowed:
            yield unsupported(f"{field}.{name}", policy, allowed) if policy else required(f"{field}.{name}")
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        yield required(f"{field}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    yield from validate_labels(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")
    yield from validate_ids(
        spec.get("securityContext") or {}, f"{field}.securityContext", ("fsGroup", "runAsUser", "runAsGroup")
    )
    yield from _validate_spread(spec.get("topologySpreadConstraints") or (), f"{field}.topologySpreadConstraints")
    yield from _validate_name(spec, field)
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _validate_toleration(toleration, f"{field}.tolerations[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        at = f"{field}.hostAliases[{index}]"
        yield from validate_address(f"{at}.ip", alias.get("ip", ""))
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from invalid_values(f"{at}.hostnames[{number}]", name, subdomain_problems(name))


def _validate_name(spec: Object, field: str) -> Iterator[FieldError]:
    for name, problems in _NAMED.items():
        if given := spec.get(name):
            yield from invalid_values(f"{field}.{name}", given, problems(given))
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _LARGEST:
        yield invalid_value(f"{field}.activeDeadlineSeconds", seconds, f"must be between 1 and {_LARGEST}, inclusive")


def _validate_host_port(containers: Sequence[Object], field: str, *, is_pod: bool) -> Iterator[FieldError]:
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                at = f"{field}[{number}].ports[{index}].hostPort"
                yield invalid_value(at, host, "must match `containerPort` when `hostNetwork` is true")


def _validate_spread(constraints: Sequence[Object], field: str) -> Iterator[FieldError]:
    keys = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    for index, (constraint, (key, action)) in enumerate(zip(constraints, keys, strict=True)):
        at = f"{field}[{index}]"
        if (skew := constraint.get("maxSkew", 0)) <= 0:
            yield invalid_value(f"{at}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{at}.topologyKey", "can not be empty")
        yield from validate_one_of(f"{at}.whenUnsatisfiable", action, _UNSATISFIABLE)
        if (key, action) in keys[index + 1 :]:
            yield duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector")


def _validate_toleration(toleration: Object, field: str) -> Iterator[FieldError]:
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
    if effect:
        yield from validate_one_of(f"{field}.effect", effect, _EFFECTS)
