"""Rows of Deployments, ReplicaSets, StatefulSets and DaemonSets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.tables.cell_text import (
    NONE,
    age,
    containers,
    label_selector,
    labels,
    name,
    spec,
    status,
)
from ruleop.localcluster.tables.printer import OF_TEMPLATE, printer

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object


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


APPS: Final = {
    ("apps", "Deployment"): printer(f"Name|Ready|Up-to-date|Available|Age|{OF_TEMPLATE}", _deployment),
    ("apps", "ReplicaSet"): printer(
        f"Name|Desired:integer|Current:integer|Ready:integer|Age|{OF_TEMPLATE}", _replica_set
    ),
    ("apps", "StatefulSet"): printer("Name|Ready|Age|Containers+|Images+", _stateful_set),
    ("apps", "DaemonSet"): printer(
        "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age|"
        + OF_TEMPLATE,
        _daemon_set,
    ),
}
