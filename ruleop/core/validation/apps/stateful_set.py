"""Validation of StatefulSets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.schema.builtin.immutable_fields import STATEFUL_MUTABLE, immutable_changes
from ruleop.core.validation.apps.workloads import (
    TEMPLATE,
    validate_changed_template,
    validate_given_selector,
    validate_lasting_pods,
    validate_pod_counts,
)
from ruleop.core.validation.core.persistent_volume_claim import storage_warnings, validate_claim_spec
from ruleop.core.validation.core.pod_spec import validate_template_labels, validate_template_metadata
from ruleop.core.validation.core.pod_warnings import of_template
from ruleop.core.validation.field_errors import forbidden_value, invalid_value, invalid_values, validate_one_of
from ruleop.core.validation.fields.field_names import label_problems
from ruleop.core.validation.fields.label_selectors import shown_selector, validate_label_selector
from ruleop.core.validation.fields.numbers import validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_RETENTIONS: Final = ("Retain", "Delete")


def _without_host_names(template: Object) -> Object:
    """The template without the names that the controller gives to its pods, which are not validated."""
    spec = {name: each for name, each in (template.get("spec") or {}).items() if name not in ("hostname", "subdomain")}
    return {**template, "spec": spec}


def validate_stateful_set(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec, template = new["spec"], new["spec"].get("template") or {}
    claims = spec.get("volumeClaimTemplates") or ()
    if (policy := spec.get("podManagementPolicy", "OrderedReady")) not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _validate_stateful_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    for name, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        yield from validate_one_of(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, _RETENTIONS)
    if old is None:
        for index, claim in enumerate(claims):
            yield from validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from validate_nonnegative(spec, "replicas", "minReadySeconds")
    yield from validate_nonnegative(spec.get("ordinals") or {}, "start", field="spec.ordinals")
    if old is None and (name := spec.get("serviceName")):
        yield from invalid_values("spec.serviceName", name, label_problems(name))
    yield from validate_given_selector(spec.get("selector"), "statefulset")
    if any(validate_label_selector(spec.get("selector"), "")):
        yield invalid_value("spec.selector", shown_selector(spec["selector"]))
    else:
        yield from validate_template_labels(spec.get("selector"), template, TEMPLATE)
        yield from validate_changed_template(
            _without_host_names(template), old, [(each.get("metadata") or {}).get("name", "") for each in claims]
        )
        yield from validate_template_metadata(template.get("metadata") or {}, TEMPLATE)
    yield from validate_lasting_pods(template, "StatefulSet")
    if immutable_changes(new, old):
        *names, last = [f"'{each}'" for each in STATEFUL_MUTABLE]
        yield forbidden_value(
            "spec", f"updates to statefulset spec for fields other than {', '.join(names)} and {last} are forbidden"
        )


def validate_stateful_set_status(new: Object, _old: Object | None) -> Iterator[FieldError]:
    limited = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    return validate_pod_counts(new, limited, "status.readyReplicas")


def _validate_stateful_strategy(strategy: Object, field: str) -> Iterator[FieldError]:
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ == "OnDelete":
        if rolling is not None:
            shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
            yield invalid_value(f"{field}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif type_ != "RollingUpdate":
        yield invalid_value(field, {"Type": type_, "RollingUpdate": rolling}, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        yield from validate_nonnegative(rolling, "partition", field=f"{field}.rollingUpdate")


def stateful_set_warnings(new: Object, old: Object | None) -> list[str]:
    found = of_template("spec", "template")(new, old)
    if old is None:
        for index, claim in enumerate(new["spec"].get("volumeClaimTemplates") or ()):
            found += storage_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]")
    return found
