"""A Grafana dashboard of an operator: whether it works, what its resources wait for, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.generate.installation.operator_choices import Choices
    from ruleop.core.kinds import JSON, Object

_WIDTH: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_CONTROLLER: Final = 'job="$job",controller=~"$controller"'
_RECONCILES: Final = "controller_runtime_reconcile_total"


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]  # expressions and legends
    about: str = ""
    kind: str = "timeseries"
    width: int = 8
    bad: float | None = None  # a stat is red from this value on


def _stat(title: str, query: str, *, about: str, unit: str = "short", bad: float | None = None) -> Panel:
    return Panel(title, unit, ((query, ""),), about, kind="stat", width=4, bad=bad)


def _quantiles(metric: str, labels: str, by: str = "") -> tuple[tuple[str, str], ...]:
    of = f"sum by (le{', ' + by if by else ''}) (rate({metric}_bucket{{{labels}}}[$__rate_interval]))"
    legend = f"{{{{{by}}}}} " if by else ""
    return tuple((f"histogram_quantile({each / 100}, {of})", f"{legend}p{each}") for each in (50, 99))


ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    (
        "Does it work?",
        (
            _stat("Leaders", 'sum(leader_election_master_status{job="$job"})', about="One process works."),
            _stat(
                "Rules refused",
                'max(ruleop_reload_failed{job="$job"})',
                about="1: the rules on disk have a mistake, and the previous ones are in force.",
                bad=1,
            ),
            _stat("Failing", 'sum(ruleop_failing{job="$job"})', about="CRs whose last reconcile failed.", bad=1),
            _stat(
                "Watches not synced",
                'sum(ruleop_watches{job="$job",state!="synced"}) or vector(0)',
                about="Kinds that are not listed yet, not served or forbidden.",
                bad=1,
            ),
            _stat(
                "Longest wait",
                'max(ruleop_longest_wait_seconds{job="$job"})',
                about="Age of the oldest item in the queues.",
                unit="s",
                bad=60,
            ),
            _stat(
                "Internal errors",
                'sum(increase(controller_runtime_reconcile_panics_total{job="$job"}[1h]))',
                about="Within an hour. The log has tracebacks.",
                bad=1,
            ),
        ),
    ),
    (
        "Resources",
        (
            Panel(
                "Custom resources by reason of Ready",
                "short",
                ((f"sum by (reason) (ruleop_resources{{{_CONTROLLER}}})", "{{reason}}"),),
            ),
            Panel("Children by state", "short", ((f"sum by (state) (ruleop_children{{{_CONTROLLER}}})", "{{state}}"),)),
            Panel(
                "Waiting children",
                "short",
                ((f"sum by (controller, child, reason) (ruleop_waits{{{_CONTROLLER}}})", "{{child}}: {{reason}}"),),
                "What they wait for.",
            ),
            Panel(
                "Writes",
                "ops",
                (
                    (
                        f"sum by (action, outcome) (rate(ruleop_writes_total{{{_CONTROLLER}}}[$__rate_interval]))",
                        "{{action}} {{outcome}}",
                    ),
                ),
                "Nothing is written when nothing changed.",
            ),
            Panel(
                "Drift and field conflicts",
                "ops",
                (
                    (
                        f"sum by (controller) (rate(ruleop_drift_reverted_total{{{_CONTROLLER}}}[$__rate_interval]))",
                        "{{controller}} reverted",
                    ),
                    (
                        f"sum by (controller) (rate(ruleop_field_conflicts_total{{{_CONTROLLER}}}[$__rate_interval]))",
                        "{{controller}} conflict",
                    ),
                ),
                "Changes of children by others.",
            ),
            Panel(
                "Events",
                "ops",
                (('sum by (outcome) (rate(ruleop_events_total{job="$job"}[$__rate_interval]))', "{{outcome}}"),),
            ),
        ),
    ),
    (
        "Reconciles",
        (
            Panel(
                "Reconciles",
                "ops",
                (
                    (
                        f"sum by (controller, result) (rate({_RECONCILES}{{{_CONTROLLER}}}[$__rate_interval]))",
                        "{{controller}} {{result}}",
                    ),
                ),
            ),
            Panel("Duration of a reconcile", "s", _quantiles("controller_runtime_reconcile_time_seconds", _CONTROLLER)),
            Panel("Duration of a plan", "s", _quantiles("ruleop_plan_seconds", _CONTROLLER), "Rendering and merging."),
            Panel(
                "Queue",
                "short",
                (('sum by (name) (workqueue_depth{job="$job",name=~"$controller"})', "{{name}}"),),
            ),
            Panel(
                "Time in the queue",
                "s",
                _quantiles("workqueue_queue_duration_seconds", 'job="$job",name=~"$controller"'),
            ),
            Panel(
                "Running reconciles",
                "short",
                (
                    (f"sum by (controller) (controller_runtime_active_workers{{{_CONTROLLER}}})", "{{controller}}"),
                    (
                        f"sum by (controller) (controller_runtime_max_concurrent_reconciles{{{_CONTROLLER}}})",
                        "{{controller}} at most",
                    ),
                ),
            ),
        ),
    ),
    (
        "API server and process",
        (
            Panel(
                "Requests",
                "reqps",
                (
                    (
                        'sum by (method, code) (rate(rest_client_requests_total{job="$job"}[$__rate_interval]))',
                        "{{method}} {{code}}",
                    ),
                ),
            ),
            Panel(
                "Duration of a request",
                "s",
                _quantiles("rest_client_request_duration_seconds", 'job="$job",verb!="watch"', "verb"),
            ),
            Panel(
                "Silence of watches",
                "s",
                (('max by (kind) (ruleop_watch_silence_seconds{job="$job"})', "{{kind}}"),),
            ),
            Panel(
                "Objects in the stores",
                "short",
                (('sum by (kind) (ruleop_store_objects{job="$job"})', "{{kind}}"),),
            ),
            Panel("Bytes in the stores", "bytes", (('sum by (kind) (ruleop_store_bytes{job="$job"})', "{{kind}}"),)),
            Panel(
                "Delay of the event loop",
                "s",
                _quantiles("ruleop_event_loop_lag_seconds", 'job="$job"'),
                "High: the process lacks CPU time, or one resource is expensive.",
            ),
        ),
    ),
)


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
    for title, panels in ROWS:
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
