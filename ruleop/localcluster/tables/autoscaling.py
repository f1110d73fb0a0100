"""Rows of HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.tables.cell_text import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    name,
    spec,
    status,
)
from ruleop.localcluster.tables.printer import printer

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object

_METRICS = ("External", "Pods", "Object", "Resource", "ContainerResource")


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


def _percent(value: Object, missing: str) -> str:
    share = value.get("averageUtilization")
    return missing if share is None else f"{share}%"


AUTOSCALING: Final = {
    ("autoscaling", "HorizontalPodAutoscaler"): printer(
        "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age", _autoscaler
    ),
}
