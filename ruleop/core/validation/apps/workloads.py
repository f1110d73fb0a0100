"""Parts that Deployments, ReplicaSets, DaemonSets and StatefulSets have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.schema.builtin.immutable_fields import immutable_changes, value_at
from ruleop.core.validation.core.pod_spec import validate_template, validate_template_labels
from ruleop.core.validation.field_errors import (
    forbidden_value,
    immutable_value,
    invalid_value,
    required,
    validate_one_of,
)
from ruleop.core.validation.fields.label_selectors import validate_label_selector
from ruleop.core.validation.fields.numbers import validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


TEMPLATE: Final = "spec.template"
_COUNTS: Final = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "unavailableReplicas",
)


def validate_pod_counts(new: Object, limited: Iterable[str], ready: str) -> Iterator[FieldError]:
    """Validates numbers of pods in a status."""
    status = new.get("status") or {}
    yield from validate_nonnegative(status, "observedGeneration", *_COUNTS, field="status")
    for name in limited:
        if (number := status.get(name, 0)) > status.get("replicas", 0):
            yield invalid_value(f"status.{name}", number, "cannot be greater than status.replicas")
    if (number := status.get("availableReplicas", 0)) > status.get("readyReplicas", 0):
        yield invalid_value("status.availableReplicas", number, f"cannot be greater than {ready}")


def validate_selector_and_template(spec: Object, old: Object | None) -> Iterator[FieldError]:
    """Validates selector and template of a Deployment or a ReplicaSet."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from validate_given_selector(selector, "deployment")
    if any(validate_label_selector(selector, "")):
        yield invalid_value("spec.selector", selector, "invalid label selector")
        return
    yield from validate_template_labels(selector, template, TEMPLATE)
    yield from validate_changed_template(template, old)
    yield from validate_lasting_pods(template, "ReplicaSet")


def validate_changed_template(template: Object, old: Object | None, claims: Iterable[str] = ()) -> Iterator[FieldError]:
    if old is None or template != old["spec"].get("template"):
        yield from validate_template(template, TEMPLATE, claims)


def validate_given_selector(selector: Object | None, what: str) -> Iterator[FieldError]:
    if selector is None:
        yield required("spec.selector")
        return
    yield from validate_label_selector(selector, "spec.selector")
    if not is_selecting(selector):
        yield invalid_value("spec.selector", selector, f"empty selector is invalid for {what}")


def is_selecting(selector: Object) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def validate_fixed_selector(new: Object, old: Object | None) -> Iterator[FieldError]:
    for path in immutable_changes(new, old):
        yield immutable_value(path, value_at(new, path))


def validate_lasting_pods(template: Object, kind: str) -> Iterator[FieldError]:
    """Validates pods that run until they are deleted."""
    spec = template.get("spec") or {}
    yield from validate_one_of(f"{TEMPLATE}.spec.restartPolicy", spec.get("restartPolicy", "Always"), ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        yield forbidden_value(
            f"{TEMPLATE}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported"
        )


def amount_of(value: str | int) -> int:
    """The value of a number or a percentage."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdigit() else 0
