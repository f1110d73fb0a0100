"""The cells of Deployments, Jobs and the other kinds that make pods, and of what scales and protects these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kinds import Kind
from ruleop.localcluster.clock import seconds_of
from ruleop.localcluster.tables.printer import printer
from ruleop.localcluster.tables.text import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    boolean,
    containers,
    human_duration,
    is_being_deleted,
    is_true,
    label_selector,
    labels,
    name,
    since,
    spec,
    status,
)

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object

_OF_TEMPLATE = "Containers+|Images+|Selector+"


def _deployment(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    return [
        name(obj),
        f"{of.get('readyReplicas', 0)}/{desired.get('replicas', 1)}",
        of.get("updatedReplicas", 0),
        of.get("availableReplicas", 0),
        age(obj, now),
        *containers(desired.get("template")),
        label_selector(desired.get("selector")),
    ]


def _replica_set(obj: Object, now: float) -> list[JSON]:
    return [*_replicas(obj, now), label_selector(spec(obj).get("selector")) or NONE]


def _replication_controller(obj: Object, now: float) -> list[JSON]:
    return [*_replicas(obj, now), labels(spec(obj).get("selector"))]


def _replicas(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    numbers = (desired.get("replicas", 1), of.get("replicas", 0), of.get("readyReplicas", 0))
    return [name(obj), *numbers, age(obj, now), *containers(desired.get("template"))]


def _stateful_set(obj: Object, now: float) -> list[JSON]:
    ready = f"{status(obj).get('readyReplicas', 0)}/{spec(obj).get('replicas', 1)}"
    return [name(obj), ready, age(obj, now), *containers(spec(obj).get("template"))]


def _daemon_set(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    numbers = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name(obj),
        *(of.get(number, 0) for number in numbers),
        labels(spec(desired.get("template") or {}).get("nodeSelector")),
        age(obj, now),
        *containers(desired.get("template")),
        label_selector(desired.get("selector")) or NONE,
    ]


def _job(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    succeeded, parallelism = of.get("succeeded", 0), desired.get("parallelism") or 0
    if desired.get("completions") is not None:
        completions = f"{succeeded}/{desired['completions']}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    duration = ""
    if of.get("startTime"):
        end = seconds_of(of["completionTime"]) if of.get("completionTime") else now
        duration = human_duration(end - seconds_of(of["startTime"]))
    return [
        name(obj),
        _job_status(obj),
        completions,
        duration,
        age(obj, now),
        *containers(desired.get("template")),
        label_selector(desired.get("selector")) or NONE,
    ]


def _job_status(obj: Object) -> str:
    for of_type in ("Complete", "Failed"):
        if is_true(obj, of_type):
            return of_type
    if is_being_deleted(obj):
        return "Terminating"
    kept = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((of_type for of_type in kept if is_true(obj, of_type)), "Running")


def _cron_job(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    job = spec(desired.get("jobTemplate") or {})
    return [
        name(obj),
        desired.get("schedule", ""),
        desired.get("timeZone", NONE),
        boolean(desired.get("suspend")),
        len(of.get("active") or ()),
        since(of["lastScheduleTime"], now) if of.get("lastScheduleTime") else NONE,
        age(obj, now),
        *containers(job.get("template")),
        label_selector(job.get("selector")) or NONE,
    ]


def _controller_revision(obj: Object, now: float) -> list[JSON]:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    controller = NONE
    if owner is not None:
        controller = f"{str(Kind.parse(owner['apiVersion'], owner['kind']).versionless).lower()}/{owner['name']}"
    return [name(obj), controller, obj.get("revision", 0), age(obj, now)]


def _pod_template(obj: Object, _: float) -> list[JSON]:
    template = obj.get("template") or {}
    return [name(obj), *containers(template), labels((template.get("metadata") or {}).get("labels"))]


def _disruption_budget(obj: Object, now: float) -> list[JSON]:
    limits = (str(spec(obj).get(limit, "N/A")) for limit in ("minAvailable", "maxUnavailable"))
    return [name(obj), *limits, status(obj).get("disruptionsAllowed", 0), age(obj, now)]


def _autoscaler(obj: Object, now: float) -> list[JSON]:
    desired = spec(obj)
    target = desired.get("scaleTargetRef") or {}
    return [
        name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(obj),
        str(desired.get("minReplicas", UNSET)),
        desired.get("maxReplicas", 0),
        status(obj).get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(obj: Object) -> str:
    metrics, current = spec(obj).get("metrics") or [], status(obj).get("currentMetrics") or []
    share = spec(obj).get("targetCPUUtilizationPercentage")
    if share is not None:  # autoscaling/v1
        used = status(obj).get("currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if used is None else f'{used}%'}/{share}%"
    texts = [_metric(each, current[index] if index < len(current) else {}) for index, each in enumerate(metrics)]
    return ", ".join(texts[:2]) + (f" + {len(texts) - 2} more..." if len(texts) > 2 else "") or NONE


def _metric(metric: Object, of: Object) -> str:
    member = {kind: f"{kind[:1].lower()}{kind[1:]}" for kind in _METRICS}.get(metric.get("type", ""))
    if member is None:
        return "<unknown type>"
    source, current = metric.get(member) or {}, (of.get(member) or {}).get("current") or {}
    target = source.get("target") or {}
    average = target.get("averageValue")
    if member in ("resource", "containerResource"):
        if average is not None:
            return f"{source.get('name')}: {current.get('averageValue', UNKNOWN)}/{average}"
        return f"{source.get('name')}: {_percent(current, UNKNOWN)}/{_percent(target, '<auto>')}"
    if member == "pods":
        return f"{current.get('averageValue', UNKNOWN)}/{average}"
    if average is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{average} (avg)"
    return f"{current.get('value', UNKNOWN)}/{target.get('value')}"


_METRICS = ("External", "Pods", "Object", "Resource", "ContainerResource")


def _percent(value: Object, missing: str) -> str:
    share = value.get("averageUtilization")
    return missing if share is None else f"{share}%"


WORKLOADS = {
    ("apps", "Deployment"): printer(f"Name|Ready|Up-to-date|Available|Age|{_OF_TEMPLATE}", _deployment),
    ("apps", "ReplicaSet"): printer(
        f"Name|Desired:integer|Current:integer|Ready:integer|Age|{_OF_TEMPLATE}", _replica_set
    ),
    ("", "ReplicationController"): printer(
        f"Name|Desired:integer|Current:integer|Ready:integer|Age|{_OF_TEMPLATE}", _replication_controller
    ),
    ("apps", "StatefulSet"): printer("Name|Ready|Age|Containers+|Images+", _stateful_set),
    ("apps", "DaemonSet"): printer(
        "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age|"
        + _OF_TEMPLATE,
        _daemon_set,
    ),
    ("apps", "ControllerRevision"): printer("Name|Controller|Revision|Age", _controller_revision),
    ("", "PodTemplate"): printer("Name|Containers|Images|Pod Labels", _pod_template),
    ("batch", "Job"): printer(f"Name|Status|Completions|Duration|Age|{_OF_TEMPLATE}", _job),
    ("batch", "CronJob"): printer(
        f"Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|{_OF_TEMPLATE}", _cron_job
    ),
    ("policy", "PodDisruptionBudget"): printer(
        "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age", _disruption_budget
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): printer(
        "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age", _autoscaler
    ),
}
