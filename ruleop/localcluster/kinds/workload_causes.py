"""Why workloads are invalid, and which of their fields may not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zoneinfo import available_timezones

import orjson

from ruleop.localcluster.errors import Cause, invalid_value, required, unsupported
from ruleop.localcluster.kinds.cron import schedule_problem
from ruleop.localcluster.kinds.label_selectors import label_selector_causes
from ruleop.localcluster.kinds.numbers import below_zero, share_causes
from ruleop.localcluster.kinds.pod_templates import pod_spec_causes
from ruleop.localcluster.kinds.storage import claim_spec_causes
from ruleop.localcluster.objects.names import label_causes, label_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kinds import Object

_STRATEGIES: Final = ("Recreate", "RollingUpdate")
_UPDATES: Final = ("RollingUpdate", "OnDelete")
_RETENTIONS: Final = ("Retain", "Delete")
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_NONE: Final = (0, "0%")
_JOB_NUMBERS: Final = (
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
)
_OF_SCHEDULING: Final = ("affinity", "nodeSelector", "tolerations", "schedulingGates", "schedulingGroup")
_JOB_ENUMS: Final = {
    "completionMode": ("NonIndexed", "Indexed"),
    "podReplacementPolicy": ("Failed", "TerminatingOrFailed"),
}


def immutable_value(field: str, value: Any) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {orjson.dumps(value).decode()}: field is immutable", field)


def selector_causes(new: Object, old: Object | None) -> list[Cause]:
    """Of Deployments, ReplicaSets and DaemonSets."""
    spec = new.get("spec") or {}
    selector = spec.get("selector")
    if old is None or selector == old["spec"].get("selector"):
        return [*_selector_causes(spec), *_match_causes(spec), *_scaling_causes(new, old)]
    changed = [immutable_value("spec.selector", selector)]
    if new["kind"] == "DaemonSet":
        return [*changed, *_match_causes(spec)]
    return [*_match_causes(spec), *changed]


def deployment_causes(new: Object, old: Object | None) -> list[Cause]:
    return [*selector_causes(new, old), *_strategy_causes(new["spec"])]


def daemon_set_causes(new: Object, old: Object | None) -> list[Cause]:
    causes, strategy = selector_causes(new, old), new["spec"].get("updateStrategy") or {}
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate") or {}
    if type_ not in _UPDATES:
        shown = {"Type": type_, "RollingUpdate": strategy.get("rollingUpdate")}
        causes.append(unsupported("spec.updateStrategy", shown, _UPDATES))
    elif rolling and all(rolling.get(name) in _NONE for name in ("maxSurge", "maxUnavailable")):
        field = "spec.updateStrategy.rollingUpdate.maxUnavailable"
        causes.append(required(field, "cannot be 0 when maxSurge is 0"))
    return causes


def _selector_causes(spec: Object) -> Iterator[Cause]:
    selector = spec.get("selector")
    problems = list(label_selector_causes(selector, "spec.selector"))
    if problems:
        yield from problems
        yield invalid_value("spec.selector", selector, "invalid label selector")


def _strategy_causes(spec: Object) -> Iterator[Cause]:
    yield from below_zero(spec, "revisionHistoryLimit", "progressDeadlineSeconds")
    ready, deadline = spec.get("minReadySeconds", 0), spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= ready:
        message = f"Invalid value: {deadline}: must be greater than minReadySeconds"
        yield Cause("FieldValueInvalid", message, "spec.progressDeadlineSeconds")
    strategy = spec.get("strategy") or {}
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ not in _STRATEGIES:
        yield unsupported("spec.strategy", {"Type": type_, "RollingUpdate": rolling}, _STRATEGIES)
    elif type_ == "Recreate" and rolling is not None:
        message = "Forbidden: may not be specified when strategy `type` is 'Recreate'"
        yield Cause("FieldValueForbidden", message, "spec.strategy.rollingUpdate")
    elif rolling:
        field = "spec.strategy.rollingUpdate"
        yield from share_causes(rolling.get("maxSurge"), f"{field}.maxSurge")
        yield from share_causes(rolling.get("maxUnavailable"), f"{field}.maxUnavailable", at_most_all=True)
        if all(rolling.get(name) in _NONE for name in ("maxSurge", "maxUnavailable")):
            yield invalid_value(f"{field}.maxUnavailable", 0, "may not be 0 when `maxSurge` is 0")


def _scaling_causes(new: Object, old: Object | None) -> list[Cause]:
    """Of replicas and the template of what keeps pods running."""
    spec = new.get("spec") or {}
    return [*below_zero(spec, "replicas", "minReadySeconds"), *_template_causes(spec, old, ("Always",))]


def _template_causes(spec: Object, old: Object | None, policies: tuple[str, ...]) -> Iterator[Cause]:
    template = spec.get("template") or {}
    if old is not None and template == old["spec"].get("template"):
        return
    pod = template.get("spec") or {}
    claims = [(each.get("metadata") or {}).get("name", "") for each in spec.get("volumeClaimTemplates") or ()]
    yield from label_causes((template.get("metadata") or {}).get("labels") or {}, "spec.template.labels")
    yield from pod_spec_causes(pod, "spec.template.spec", claims)
    policy = pod.get("restartPolicy", "Always")
    if policy not in policies:
        yield unsupported("spec.template.spec.restartPolicy", policy, policies)


def _match_causes(spec: Object) -> list[Cause]:
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if selector is None:
        return [
            Cause("FieldValueRequired", "Required value", "spec.selector"),
            _mismatch(labels),
        ]
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return [
            Cause("FieldValueInvalid", "Invalid value: {}: empty selector is invalid for deployment", "spec.selector")
        ]
    expected = (selector.get("matchLabels") or {}).items()
    if expected <= labels.items() or any(label_selector_causes(selector, "")):  # that one cannot be compared
        return []
    return [_mismatch(labels)]


def _mismatch(labels: Mapping[str, str]) -> Cause:
    shown = orjson.dumps(labels or None, option=orjson.OPT_SORT_KEYS).decode()
    message = f"Invalid value: {shown}: `selector` does not match template `labels`"
    return Cause("FieldValueInvalid", message, "spec.template.metadata.labels")


_STATEFUL_MAY_CHANGE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def stateful_set_causes(new: Object, old: Object | None) -> list[Cause]:
    causes = [*_match_causes(new["spec"]), *_scaling_causes(new, old), *_stateful_causes(new["spec"])]
    if old is None:
        for index, claim in enumerate(new["spec"].get("volumeClaimTemplates") or ()):
            causes += claim_spec_causes(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
        return causes
    before, after = (_without(each["spec"], _STATEFUL_MAY_CHANGE) for each in (old, new))
    if before == after:
        return causes
    *names, last = [f"'{each}'" for each in _STATEFUL_MAY_CHANGE]
    message = (
        f"Forbidden: updates to statefulset spec for fields other than {', '.join(names)} and {last} are forbidden"
    )
    return [*causes, Cause("FieldValueForbidden", message, "spec")]


def _stateful_causes(spec: Object) -> Iterator[Cause]:
    policy = spec.get("podManagementPolicy", "OrderedReady")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    if name := spec.get("serviceName"):
        yield from (invalid_value("spec.serviceName", name, each) for each in label_problems(name))
    for name, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        if value not in _RETENTIONS:
            yield unsupported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, _RETENTIONS)
    strategy = spec.get("updateStrategy") or {}
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ not in _UPDATES:
        shown = {"Type": type_, "RollingUpdate": rolling}
        yield invalid_value("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling and type_ == "OnDelete":
        shown = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
        problem = "only allowed for updateStrategy 'RollingUpdate'"
        yield invalid_value("spec.updateStrategy.rollingUpdate", shown, problem)
    else:
        yield from below_zero(rolling or {}, "partition", field="spec.updateStrategy.rollingUpdate")


def _without(spec: Object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in names}


# -- jobs --------------------------------------------------------------------------------------------------------------


def job_causes(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    if old is None:
        pod = (spec.get("template") or {}).get("spec") or {}
        return [
            *below_zero(spec, *_JOB_NUMBERS),
            *_job_enum_causes(spec),
            *pod_spec_causes(pod, "spec.template.spec"),
            *_restart_causes(pod, "spec.template.spec.restartPolicy"),
        ]
    before, causes = old["spec"], [*below_zero(spec, *_JOB_NUMBERS)] * 2  # the server checks them twice
    if spec.get("selector") != before.get("selector"):
        causes.append(immutable_value("spec.selector", spec.get("selector")))
    if spec.get("template") != before.get("template"):
        causes += _template_changes(spec["template"], before["template"], suspended=bool(before.get("suspend")))
    if spec.get("completions") != before.get("completions") and spec.get("completionMode") != "Indexed":
        causes.append(immutable_value("spec.completions", spec.get("completions")))
    if spec.get("completionMode") != before.get("completionMode"):
        causes.append(immutable_value("spec.completionMode", spec.get("completionMode")))
    return causes


def _template_changes(new: Object, old: Object, *, suspended: bool) -> Iterator[Cause]:
    """While a Job is suspended, it may still change where its pods run."""
    if not suspended:
        yield immutable_value("spec.template", new)
    elif _without(new["spec"], _OF_SCHEDULING) != _without(old["spec"], _OF_SCHEDULING):
        yield immutable_value("spec.template.spec", new["spec"])


def _job_enum_causes(spec: Object) -> Iterator[Cause]:
    for name, known in _JOB_ENUMS.items():
        if spec.get(name, known[0]) not in known:
            yield unsupported(f"spec.{name}", spec[name], known)
    limit = spec.get("backoffLimitPerIndex")
    if limit is not None and spec.get("completionMode") != "Indexed":
        yield invalid_value("spec.backoffLimitPerIndex", limit, "requires indexed completion mode")


def _restart_causes(pod: Object, field: str) -> Iterator[Cause]:
    if pod.get("restartPolicy", "Always") == "Always":
        yield required(field, 'valid values: "OnFailure", "Never"')


def cron_job_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    schedule, zone, causes = spec.get("schedule") or "", spec.get("timeZone"), list[Cause]()
    if not schedule:
        causes.append(required("spec.schedule"))
    elif problem := schedule_problem(schedule):
        causes.append(Cause("FieldValueInvalid", f'Invalid value: "{schedule}": {problem}', "spec.schedule"))
    if zone is not None and zone not in available_timezones():
        message = f'Invalid value: "{zone}": unknown time zone {zone}'
        causes.append(Cause("FieldValueInvalid", message, "spec.timeZone"))
    policy = spec.get("concurrencyPolicy", "Allow")
    if policy not in _CONCURRENCY:
        causes.append(unsupported("spec.concurrencyPolicy", policy, _CONCURRENCY))
    causes += below_zero(spec, "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    causes += _restart_causes(template.get("spec") or {}, "spec.jobTemplate.spec.template.spec.restartPolicy")
    return causes
