"""Why a pod is invalid, and which of its fields may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import forbidden_value, invalid_value, required
from ruleop.localcluster.kinds.pod_templates import pod_spec_causes
from ruleop.schema.immutable_fields import immutable_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

# The scheduler of the local cluster writes `nodeName` with an update.
_FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = new.get("spec") or {}
    if old is not None and spec == old["spec"]:
        return
    yield from pod_spec_causes(spec, "spec", is_pod=True)
    if old is not None:
        yield from _update_causes(new, old)


def _update_causes(new: Object, old: Object) -> Iterator[Cause]:
    spec, before = new.get("spec") or {}, old["spec"]
    for part in ("containers", "initContainers"):
        containers = spec.get(part) or []
        if len(containers) != len(before.get(part) or []):
            yield forbidden_value(f"spec.{part}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(containers):
            yield from _image_causes(container.get("image", ""), f"spec.{part}[{index}].image")
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


def _image_causes(image: str, field: str) -> Iterator[Cause]:
    if not image:
        yield required(field)
    if image.strip() != image:
        yield invalid_value(field, image, "must not have leading or trailing whitespace")


def _without_seconds(toleration: Object) -> dict[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
