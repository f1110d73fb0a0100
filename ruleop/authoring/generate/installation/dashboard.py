"""A Grafana dashboard of an operator: whether it works, what its resources wait for, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.operator_choices import Choices

_WIDTH: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_CONTROLLER: Final = 'job="$job",controller=~"$controller"'
_JOB: Final = '{job="$job"}'
_OF_KIND: Final = f"{{{_CONTROLLER}}}"
_NAME: Final = 'job="$job",name=~"$controller"'


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]  # expressions and legends
    about: str = ""
    kind: str = "timeseries"
    width: int = 8
    bad: float | None = None  # a stat is red from this value on


def _stat(title: str, query: str, about: str, *, unit: str = "short", bad: float | None = None) -> Panel:
    return Panel(title, unit, ((query, ""),), about, kind="stat", width=4, bad=bad)


def _graph(title: str, unit: str, *queries: tuple[str, str], about: str = "") -> Panel:
    return Panel(title, unit, queries, about)


def _sum(by: str, series: str, legend: str = "", *, over: str = "sum") -> tuple[str, str]:
    """The sum of series by some labels, which are its legend too where none is given."""
    return f"{over} by ({by}) ({series})", legend or " ".join(f"{{{{{label}}}}}" for label in by.split(", "))


def _rate(by: str, series: str, legend: str = "") -> tuple[str, str]:
    return _sum(by, f"rate({series}[$__rate_interval])", legend)


def _quantiles(metric: str, labels: str, by: str = "") -> tuple[tuple[str, str], ...]:
    of = f"sum by (le{', ' + by if by else ''}) (rate({metric}_bucket{{{labels}}}[$__rate_interval]))"
    legend = f"{{{{{by}}}}} " if by else ""
    return tuple((f"histogram_quantile({each / 100}, {of})", f"{legend}p{each}") for each in (50, 99))


_WORKS: Final = (
    _stat("Leaders", f"sum(leader_election_master_status{_JOB})", "One process works."),
    _stat(
        "Rules refused",
        f"max(ruleop_reload_failed{_JOB})",
        "1: the rules on disk have a mistake, and the previous ones are in force.",
        bad=1,
    ),
    _stat("Failing", f"sum(ruleop_failing{_JOB})", "CRs whose last reconcile failed.", bad=1),
    _stat(
        "Watches not synced",
        'sum(ruleop_watches{job="$job",state!="synced"}) or vector(0)',
        "Kinds that are not listed yet, not served or forbidden.",
        bad=1,
    ),
    _stat(
        "Longest wait",
        f"max(ruleop_longest_wait_seconds{_JOB})",
        "Age of the oldest item in the queues.",
        unit="s",
        bad=60,
    ),
    _stat(
        "Internal errors",
        f"sum(increase(controller_runtime_reconcile_panics_total{_JOB}[1h]))",
        "Within an hour. The log has tracebacks.",
        bad=1,
    ),
)
_RESOURCES: Final = (
    _graph("Custom resources by reason of Ready", "short", _sum("reason", f"ruleop_resources{_OF_KIND}")),
    _graph("Children by state", "short", _sum("state", f"ruleop_children{_OF_KIND}")),
    _graph(
        "Waiting children",
        "short",
        _sum("controller, child, reason", f"ruleop_waits{_OF_KIND}", "{{child}}: {{reason}}"),
        about="What they wait for.",
    ),
    _graph(
        "Writes",
        "ops",
        _rate("action, outcome", f"ruleop_writes_total{_OF_KIND}"),
        about="Nothing is written when nothing changed.",
    ),
    _graph(
        "Drift and field conflicts",
        "ops",
        _rate("controller", f"ruleop_drift_reverted_total{_OF_KIND}", "{{controller}} reverted"),
        _rate("controller", f"ruleop_field_conflicts_total{_OF_KIND}", "{{controller}} conflict"),
        about="Changes of children by others.",
    ),
    _graph("Events", "ops", _rate("outcome", f"ruleop_events_total{_JOB}")),
)
_PASSES: Final = (
    _graph("Reconciles", "ops", _rate("controller, result", f"controller_runtime_reconcile_total{_OF_KIND}")),
    _graph("Duration of a reconcile", "s", *_quantiles("controller_runtime_reconcile_time_seconds", _CONTROLLER)),
    _graph("Duration of a plan", "s", *_quantiles("ruleop_plan_seconds", _CONTROLLER), about="Rendering and merging."),
    _graph("Queue", "short", _sum("name", f"workqueue_depth{{{_NAME}}}")),
    _graph("Time in the queue", "s", *_quantiles("workqueue_queue_duration_seconds", _NAME)),
    _graph(
        "Running reconciles",
        "short",
        _sum("controller", f"controller_runtime_active_workers{_OF_KIND}"),
        _sum("controller", f"controller_runtime_max_concurrent_reconciles{_OF_KIND}", "{{controller}} at most"),
    ),
)
_PROCESS: Final = (
    _graph("Requests", "reqps", _rate("method, code", f"rest_client_requests_total{_JOB}")),
    _graph(
        "Duration of a request",
        "s",
        *_quantiles("rest_client_request_duration_seconds", 'job="$job",verb!="watch"', "verb"),
    ),
    _graph("Silence of watches", "s", _sum("kind", f"ruleop_watch_silence_seconds{_JOB}", over="max")),
    _graph("Objects in the stores", "short", _sum("kind", f"ruleop_store_objects{_JOB}")),
    _graph("Bytes in the stores", "bytes", _sum("kind", f"ruleop_store_bytes{_JOB}")),
    _graph(
        "Delay of the event loop",
        "s",
        *_quantiles("ruleop_event_loop_lag_seconds", 'job="$job"'),
        about="High: the process lacks CPU time, or one resource is expensive.",
    ),
)
ROWS: Final[Mapping[str, tuple[Panel, ...]]] = {
    "Does it work?": _WORKS,
    "Resources": _RESOURCES,
    "Reconciles": _PASSES,
    "API server and process": _PROCESS,
}


def dashboard(choices: Choices, job: str) -> Object:
    """As Grafana imports it."""
    return {
        "title": f"ruleop: {choices.name}",
        "uid": f"ruleop-{choices.name}"[:40],
        "description": "Made by `ruleop generate dashboard`.",
        "tags": ["ruleop"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": list(_variables(job))},
        "panels": list(_panels()),
    }


def dashboard_config_map(choices: Choices, text: str) -> Object:
    """Grafana's sidecar finds it by its label."""
    metadata = {
        "name": f"{choices.name}-dashboard",
        "namespace": choices.namespace,
        "labels": {"grafana_dashboard": "1"},
    }
    data = {f"{choices.name}.json": text}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _variables(job: str) -> Iterator[Object]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    chosen = {"text": job, "value": job}
    yield _query_variable("job", "Operator", "label_values(ruleop_watches, job)") | {"current": chosen}
    query = 'label_values(controller_runtime_active_workers{job="$job"}, controller)'
    every = {"text": "All", "value": "$__all"}
    yield _query_variable("controller", "Kind", query) | {
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": every,
    }


def _query_variable(name: str, label: str, query: str) -> dict[str, JSON]:
    found = {"name": name, "label": label, "type": "query", "datasource": _SOURCE, "refresh": 2, "sort": 1}
    return {**found, "query": {"query": query, "refId": "A"}}


def _panels() -> Iterator[Object]:
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": _place(0, top, _WIDTH, 1), "panels": []}
        top += 1
        left, height = 0, 0
        for panel in panels:
            number += 1
            if left + panel.width > _WIDTH:
                left, top = 0, top + height
            height = 4 if panel.kind == "stat" else 8
            yield _panel(number, panel, _place(left, top, panel.width, height))
            left += panel.width
        top += height


def _panel(number: int, panel: Panel, place: dict[str, int]) -> Object:
    steps: list[JSON] = [{"color": "green", "value": None}]
    if panel.bad is not None:
        steps.append({"color": "red", "value": panel.bad})
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    options: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
    options["tooltip"] = {"mode": "multi", "sort": "desc"}
    if panel.kind == "stat":
        options = {"colorMode": "value", "graphMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        **({"description": panel.about} if panel.about else {}),
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _place(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}
