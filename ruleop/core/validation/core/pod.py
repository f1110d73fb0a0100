"""Pods: their defaults, validation, and the fields that may change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.schema.builtin.immutable_fields import immutable_changes
from ruleop.core.validation.core.pod_spec import validate_pod_spec
from ruleop.core.validation.field_errors import forbidden_value, invalid_value, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_MIRROR: Final = "kubernetes.io/config.mirror"
_INTEGER: Final = re.compile(r"-?[1-9][0-9]{0,9}|0")
# The scheduler of the local cluster writes `nodeName` with an update.
_FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_pod(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    if old is not None and spec == old["spec"]:
        return
    yield from _validate_annotations(new)
    yield from validate_pod_spec(spec, "spec", is_pod=True)
    for part in ("containers", "initContainers"):  # not checked in templates
        for index, image in enumerate(each.get("image", "") for each in spec.get(part) or ()):
            if image.strip() != image:
                problem = "must not have leading or trailing whitespace"
                yield invalid_value(f"spec.{part}[{index}].image", image, problem)
    if old is not None:
        yield from _validate_update(new, old)


def _validate_annotations(pod: Object) -> Iterator[FieldError]:
    annotations = pod["metadata"].get("annotations") or {}
    cost = annotations.get(_COST)
    if cost is not None and not (_INTEGER.fullmatch(cost) and -(2**31) <= int(cost) < 2**31):
        yield invalid_value(f"metadata.annotations[{_COST}]", cost, "must be a 32bit integer")
    if _MIRROR in annotations and not pod["spec"].get("nodeName"):
        problem = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid_value(f"metadata.annotations[{_MIRROR}]", annotations[_MIRROR], problem)


def _validate_update(new: Object, old: Object) -> Iterator[FieldError]:
    spec, before = new.get("spec") or {}, old["spec"]
    for part in ("containers", "initContainers"):
        containers = spec.get(part) or []
        if len(containers) != len(before.get(part) or []):
            yield forbidden_value(f"spec.{part}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(containers):
            if not container.get("image"):
                yield required(f"spec.{part}[{index}].image")
    deadline, earlier = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if deadline is not None and earlier is not None and deadline > earlier:
        yield invalid_value("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value")
        return
    if deadline is None and earlier is not None:
        problem = "must not update from a positive integer to nil value"
        yield invalid_value("spec.activeDeadlineSeconds", None, problem)
    tolerations = [_without_seconds(each) for each in spec.get("tolerations") or ()]
    if not all(_without_seconds(each) in tolerations for each in before.get("tolerations") or ()):
        problem = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_value("spec.tolerations", problem)
    if immutable_changes(new, old):
        yield forbidden_value("spec", _FIXED)


def _without_seconds(toleration: Object) -> dict[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def with_pod_defaults(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod has defaults that its template does not have yet."""
    spec = {"enableServiceLinks": True, **pod.get("spec", {})}
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [_container(each, host=bool(spec.get("hostNetwork"))) for each in spec[name]]
    found = {**pod, "spec": spec}
    if "status" in pod and "qosClass" not in pod["status"]:
        found["status"] = {"qosClass": service_class(spec), **pod["status"]}
    return found


def _container(container: Object, *, host: bool) -> dict[str, Any]:
    found = {**container}
    resources = found.get("resources") or {}
    if limits := resources.get("limits"):
        found["resources"] = {**resources, "requests": {**limits, **(resources.get("requests") or {})}}
    if "imagePullPolicy" not in found:
        named, digest = str(found.get("image", "")).partition("@")[::2]
        tag = named.rpartition("/")[2].partition(":")[2]
        found["imagePullPolicy"] = "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
    if host and "ports" in found:
        found["ports"] = [
            {**each, "hostPort": each.get("hostPort") or each["containerPort"]} for each in found["ports"]
        ]
    return found


def service_class(spec: Object) -> str:
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    pairs = [
        (name, (each.get("resources") or {}).get(name) or {}) for each in containers for name in ("requests", "limits")
    ]
    if not any(name in found for _, found in pairs for name in ("cpu", "memory")):
        return "BestEffort"
    for each in containers:
        resources = each.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"
