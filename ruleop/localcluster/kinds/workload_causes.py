"""Why a Deployment, a ReplicaSet, a DaemonSet or a StatefulSet is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.errors import (
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
)
from ruleop.localcluster.kinds.claims import claim_spec_causes
from ruleop.localcluster.kinds.label_selectors import label_selector_causes, shown_selector
from ruleop.localcluster.kinds.numbers import above_all_causes, below_zero, share_causes
from ruleop.localcluster.kinds.pod_templates import match_causes, template_causes, template_metadata_causes
from ruleop.localcluster.objects.names import label_problems
from ruleop.schema.immutable_fields import STATEFUL_MUTABLE, immutable_changes, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_TEMPLATE: Final = "spec.template"
_COUNTS: Final = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "unavailableReplicas",
)
_STRATEGIES: Final = ("Recreate", "RollingUpdate")
_RETENTIONS: Final = ("Retain", "Delete")
_DAEMON_STRATEGIES: Final = ("RollingUpdate", "OnDelete")


def deployment_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = new["spec"]
    yield from below_zero(spec, "replicas")
    yield from _selecting_causes(spec, old, "deployment")
    yield from _strategy_causes(spec.get("strategy") or {}, "spec.strategy")
    yield from below_zero(spec, "minReadySeconds")
    yield from below_zero(spec, "revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    yield from below_zero(spec, "progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from _fixed_selector_causes(new, old)


def replica_set_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = new["spec"]
    yield from below_zero(spec, "replicas")
    yield from below_zero(spec, "minReadySeconds")
    yield from _selecting_causes(spec, old, "deployment")
    yield from _fixed_selector_causes(new, old)


def deployment_status_causes(new: Object, _old: Object | None) -> Iterator[Cause]:
    return _status_causes(new, ("updatedReplicas", "readyReplicas", "availableReplicas"), "readyReplicas")


def stateful_set_status_causes(new: Object, _old: Object | None) -> Iterator[Cause]:
    limited = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    return _status_causes(new, limited, "status.readyReplicas")


def _status_causes(new: Object, limited: Iterable[str], ready: str) -> Iterator[Cause]:
    """Of numbers of pods in a status."""
    status = new.get("status") or {}
    for name in ("observedGeneration", *_COUNTS):
        yield from below_zero(status, name, field="status")
    for name in limited:
        if (number := status.get(name, 0)) > status.get("replicas", 0):
            yield invalid_value(f"status.{name}", number, "cannot be greater than status.replicas")
    if (number := status.get("availableReplicas", 0)) > status.get("readyReplicas", 0):
        yield invalid_value("status.availableReplicas", number, f"cannot be greater than {ready}")


def daemon_set_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = new["spec"]
    yield from _fixed_selector_causes(new, old)
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from label_selector_causes(selector, "spec.selector")
    yield from match_causes(selector, template, _TEMPLATE)
    if selector is not None and not _is_selecting(selector):
        yield invalid_value("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from _template_causes(template, old)
    yield from _lasting_causes(template, "DaemonSet")
    yield from below_zero(spec, "minReadySeconds")
    yield from _daemon_strategy_causes(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    yield from below_zero(spec, "revisionHistoryLimit")


def stateful_set_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    spec, template = new["spec"], new["spec"].get("template") or {}
    claims = spec.get("volumeClaimTemplates") or ()
    if (policy := spec.get("podManagementPolicy", "OrderedReady")) not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _stateful_strategy_causes(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    for name, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        if value not in _RETENTIONS:
            yield unsupported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, _RETENTIONS)
    if old is None:
        for index, claim in enumerate(claims):
            yield from claim_spec_causes(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from below_zero(spec, "replicas", "minReadySeconds")
    if old is None and (name := spec.get("serviceName")):
        yield from invalid_values("spec.serviceName", name, label_problems(name))
    yield from _given_selector_causes(spec.get("selector"), "statefulset")
    if any(label_selector_causes(spec.get("selector"), "")):
        yield invalid_value("spec.selector", shown_selector(spec["selector"]))
    else:
        yield from match_causes(spec.get("selector"), template, _TEMPLATE)
        yield from _template_causes(template, old, [(each.get("metadata") or {}).get("name", "") for each in claims])
        yield from template_metadata_causes(template.get("metadata") or {}, _TEMPLATE)
    yield from _lasting_causes(template, "StatefulSet")
    if old is not None and immutable_changes(new, old):
        *names, last = [f"'{each}'" for each in STATEFUL_MUTABLE]
        yield forbidden_value(
            "spec", f"updates to statefulset spec for fields other than {', '.join(names)} and {last} are forbidden"
        )


def _selecting_causes(spec: Object, old: Object | None, what: str) -> Iterator[Cause]:
    """Of selector and template."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from _given_selector_causes(selector, what)
    if any(label_selector_causes(selector, "")):
        yield invalid_value("spec.selector", selector, "invalid label selector")
        return
    yield from match_causes(selector, template, _TEMPLATE)
    yield from _template_causes(template, old)
    yield from _lasting_causes(template, "ReplicaSet")


def _template_causes(template: Object, old: Object | None, claims: Iterable[str] = ()) -> Iterator[Cause]:
    if old is None or template != old["spec"].get("template"):
        yield from template_causes(template, _TEMPLATE, claims)


def _given_selector_causes(selector: Object | None, what: str) -> Iterator[Cause]:
    if selector is None:
        yield required("spec.selector")
        return
    yield from label_selector_causes(selector, "spec.selector")
    if not _is_selecting(selector):
        yield invalid_value("spec.selector", selector, f"empty selector is invalid for {what}")


def _is_selecting(selector: Object) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _fixed_selector_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    for path in immutable_changes(new, old) if old is not None else ():
        yield immutable_value(path, value_at(new, path))


def _lasting_causes(template: Object, kind: str) -> Iterator[Cause]:
    """Of pods that run until they are deleted."""
    spec = template.get("spec") or {}
    if (policy := spec.get("restartPolicy", "Always")) != "Always":
        yield unsupported(f"{_TEMPLATE}.spec.restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        yield forbidden_value(
            f"{_TEMPLATE}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported"
        )


def _strategy_causes(strategy: Object, field: str) -> Iterator[Cause]:
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ == "Recreate":
        if rolling is not None:
            yield forbidden_value(f"{field}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif type_ != "RollingUpdate":
        yield unsupported(field, {"Type": type_, "RollingUpdate": rolling}, _STRATEGIES)
    elif rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
        at = f"{field}.rollingUpdate"
        yield from share_causes(unavailable, f"{at}.maxUnavailable")
        yield from share_causes(surge, f"{at}.maxSurge")
        if _amount(unavailable) == 0 == _amount(surge):
            yield invalid_value(f"{at}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
        yield from above_all_causes(unavailable, f"{at}.maxUnavailable")


def _daemon_strategy_causes(strategy: Object, field: str) -> Iterator[Cause]:
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ not in _DAEMON_STRATEGIES:
        yield unsupported(field, {"Type": type_, "RollingUpdate": rolling}, _DAEMON_STRATEGIES)
        return
    if type_ == "OnDelete":
        return
    if rolling is None:
        yield required(f"{field}.rollingUpdate")
        return
    at, values = f"{field}.rollingUpdate", {each: rolling.get(each, 0) for each in ("maxUnavailable", "maxSurge")}
    for check in (share_causes, above_all_causes):
        for name, value in values.items():
            yield from check(value, f"{at}.{name}")
    unavailable, surge = (_amount(each) for each in values.values())
    if unavailable and surge:
        yield invalid_value(f"{at}.maxSurge", values["maxSurge"], "may not be set when maxUnavailable is non-zero")
    elif not unavailable and not surge:
        yield required(f"{at}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _stateful_strategy_causes(strategy: Object, field: str) -> Iterator[Cause]:
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ == "OnDelete":
        if rolling is not None:
            shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
            yield invalid_value(f"{field}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif type_ != "RollingUpdate":
        yield invalid_value(field, {"Type": type_, "RollingUpdate": rolling}, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        yield from below_zero(rolling, "partition", field=f"{field}.rollingUpdate")


def _amount(value: str | int) -> int:
    """Of a number or a percentage."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdigit() else 0
