"""Workloads to create, as `about` (version, kind, plural) and spec."""

from __future__ import annotations

from typing import Any

LABELS = {"app": "a"}


def container(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {"name": "a", "image": "a", **fields}.items() if value is not None}


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": list(containers or [container()]), **spec}}


def deployment(pods: Any, **spec: Any) -> tuple[str, dict[str, Any]]:
    return "apps/v1 Deployment deployments", {"selector": {"matchLabels": LABELS}, "template": pods, **spec}


def of_container(**fields: Any) -> tuple[str, dict[str, Any]]:
    return deployment(template(container(**fields)))


def volume(**source: Any) -> tuple[str, dict[str, Any]]:
    return deployment(template(volumes=[{"name": "a", **source}]))


def selector(**fields: Any) -> tuple[str, dict[str, Any]]:
    return deployment(template(), selector=fields)


def expression(operator: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return selector(matchExpressions=[{"key": "app", "operator": operator, **fields}])


def rolling(**fields: Any) -> tuple[str, dict[str, Any]]:
    return deployment(template(), strategy={"rollingUpdate": fields})


def stateful_set(**spec: Any) -> tuple[str, dict[str, Any]]:
    given = {"serviceName": "a", "selector": {"matchLabels": LABELS}, "template": template(), **spec}
    return "apps/v1 StatefulSet statefulsets", given


def daemon_set(**strategy: Any) -> tuple[str, dict[str, Any]]:
    given = {"selector": {"matchLabels": LABELS}, "template": template(), "updateStrategy": strategy}
    return "apps/v1 DaemonSet daemonsets", given


def daemon_set_of(**selector: Any) -> tuple[str, dict[str, Any]]:
    return "apps/v1 DaemonSet daemonsets", {"selector": selector, "template": template()}


def job(pods: Any, **spec: Any) -> tuple[str, dict[str, Any]]:
    return "batch/v1 Job jobs", {"template": pods, **spec}


def cron_job(schedule: str, **spec: Any) -> tuple[str, dict[str, Any]]:
    pods = template(restartPolicy="Never")
    return "batch/v1 CronJob cronjobs", {"schedule": schedule, "jobTemplate": {"spec": {"template": pods}}, **spec}


def pod(*containers: dict[str, Any], **spec: Any) -> tuple[str, dict[str, Any]]:
    return "v1 Pod pods", {"containers": list(containers), **spec}
