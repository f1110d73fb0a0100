"""The monitoring of an operator: a Grafana dashboard, alerts for Prometheus, and the files that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.scaffold import rules_text
from ruleop.printable import json_document
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.operator_choices import Choices


# -- dashboard ---------------------------------------------------------------------------------------------------------
# A Grafana dashboard of an operator: whether it works, what its resources wait for, and what it costs.

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


# -- alerts ------------------------------------------------------------------------------------------------------------
# Alerts for Prometheus on the metrics of an operator. Only this module defines them; the page on operations lists them
# from here.

JOB: Final = "JOB"
"""In an expression, the selector of the operator's own series."""
_CALM: Final = "Ready|Progressing|Waiting|Forbidden|Paused|Deleting|Finalizing|Finalized"


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    expression: str
    lasting: str  # how long it must be true before it fires; empty for at once
    severity: str
    summary: str  # what is wrong, with labels as Prometheus writes them
    remedy: str


ALERTS: Final = (
    Alert(
        "RuleopNotLeading",
        "sum(leader_election_master_status{JOB}) < 1 or absent(leader_election_master_status{JOB})",
        "2m",
        "critical",
        "No process of the operator is leader, so nothing is reconciled.",
        (
            "Check that pods are running, can reach the API server and may write the Lease. Without `--leader-elect`, "
            "alert on `up` instead."
        ),
    ),
    Alert(
        "RuleopRulesRefused",
        "max(ruleop_reload_failed{JOB}) == 1",
        "5m",
        "warning",
        "The rules on disk have a mistake; the previous ones are in force.",
        "`/readyz?verbose` shows the mistake; `ruleop check` finds it before a rollout.",
    ),
    Alert(
        "RuleopRolloutStopped",
        'max by (watch) (ruleop_rollouts{JOB,phase="Stopped"}) == 1',
        "",
        "critical",
        "The rollout of the rules of {{ $labels.watch }} is stopped: CRs failed with the new rules.",
        (
            "`ruleop rollout status` lists the failures. Correct the rules, or go back with `ruleop rollout undo`, or "
            "continue with `ruleop rollout resume`. The other CRs have the rules before."
        ),
    ),
    Alert(
        "RuleopResourcesBroken",
        f'sum by (controller, reason) (ruleop_resources{{JOB,reason!~"{_CALM}"}}) > 0',
        "15m",
        "warning",
        "{{ $value }} resources of {{ $labels.controller }} are not ready: {{ $labels.reason }}.",
        "The condition Ready of these CRs says why and what to do; `ruleop explain` shows more.",
    ),
    Alert(
        "RuleopPermissionMissing",
        (
            'sum by (controller) (ruleop_resources{JOB,reason="Forbidden"}) > 0'
            ' or sum by (kind) (ruleop_watches{JOB,state="forbidden",kind!~".* CustomResourceDefinition"}) > 0'
        ),
        "5m",
        "warning",
        "The operator lacks a permission for {{ $labels.controller }}{{ $labels.kind }}.",
        (
            "With the label `controller`: the condition Ready of its CRs names the permission, or quotes the admission "
            "policy or quota. With the label `kind`: the log line `not permitted to watch` names it in its `grant`."
        ),
    ),
    Alert(
        "RuleopWaitsTooLong",
        "sum by (controller, child, reason) (ruleop_waits{JOB}) > 0",
        "1h",
        "info",
        "{{ $value }} resources of {{ $labels.controller }} wait with {{ $labels.child }}: {{ $labels.reason }}.",
        (
            "The condition Ready of CRs with reason Waiting names the missing value or object. If your rules wait for "
            "people, use a longer time or exclude a `child`."
        ),
    ),
    Alert(
        "RuleopWatchSilent",
        "max by (kind) (ruleop_watch_silence_seconds{JOB}) > 180",
        "5m",
        "warning",
        "The watch of {{ $labels.kind }} has had no event for {{ $value | humanizeDuration }}.",
        "Look for `watch interrupted` in the log. Check the API server, or the aggregated API that serves the kind.",
    ),
    Alert(
        "RuleopSlow",
        "max by (controller) (ruleop_longest_wait_seconds{JOB}) > 60",
        "10m",
        "warning",
        "Resources of {{ $labels.controller }} wait {{ $value | humanizeDuration }} for a reconcile.",
        (
            "If `rest_client_request_duration_seconds` is high, the API server is slow; if `ruleop_plan_seconds` is "
            "high, a template is. Otherwise raise `--max-concurrent-reconciles`."
        ),
    ),
    Alert(
        "RuleopResourcesUnowned",
        "max(ruleop_unowned_buckets{JOB}) > 0 or max(ruleop_unowned_resources{JOB}) > 0",
        "2m",
        "critical",
        "Custom resources have no process: one is missing, or their labels match no selector.",
        (
            "With shards, `/readyz?verbose` of one names the pod that is missing. Look why it does not run; on a lost "
            "node, delete the pod by force, so that the StatefulSet replaces it. With selectors, the log of a process "
            "names some of the CRs, and `ruleop explain` says which process one has: start it, or edit the labels."
        ),
    ),
    Alert(
        "RuleopBug",
        (
            "sum(increase(controller_runtime_reconcile_panics_total{JOB}[1h]))"
            " + sum(increase(ruleop_watch_crashes_total{JOB}[1h]))"
            " + sum(increase(ruleop_listener_failures_total{JOB}[1h])) > 0"
        ),
        "",
        "warning",
        "The operator had an internal error.",
        "The log has it with a traceback. Please report it.",
    ),
)


def rules_file(job: str, namespace: str = "") -> Object:
    """The rules of Prometheus for the series of a job, or of its pods in one namespace."""
    selector = f'job="{job}"' + (f',namespace="{namespace}"' if namespace else "")
    return {"groups": [{"name": "ruleop", "rules": [_rule(each, selector) for each in ALERTS]}]}


def prometheus_rule(choices: Choices, spec: Object) -> Object:
    """The same for the Prometheus operator."""
    metadata = {
        "name": choices.name,
        "namespace": choices.namespace,
        "labels": {"app.kubernetes.io/name": choices.name},
    }
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata, "spec": spec}


def _rule(alert: Alert, selector: str) -> dict[str, JSON]:
    return {
        "alert": alert.name,
        "expr": alert.expression.replace(JOB, selector),
        **({"for": alert.lasting} if alert.lasting else {}),
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "description": alert.remedy},
    }


# -- files -------------------------------------------------------------------------------------------------------------

_HEADER: Final = f"{MARK} dashboard`.\n"


def monitoring_files(choices: Choices, job: str) -> dict[str, str]:
    """The texts by their names. `job`: the label of the metrics."""
    shown = json_document(dict(dashboard(choices, job)))
    return {
        "alerts.yaml": _HEADER + rules_text(prometheus_rule(choices, rules_file(job))),
        "dashboard.json": shown,
        "dashboard-configmap.yaml": _HEADER + rules_text(dashboard_config_map(choices, shown)),
    }


def monitoring_objects(choices: Choices) -> dict[str, Object]:
    """The alerts and the dashboard of an operator whose metrics are found by a ServiceMonitor."""
    job = metrics_job(choices)
    shown = json_document(dict(dashboard(choices, job)))
    return {
        "alerts": prometheus_rule(choices, rules_file(job, choices.namespace)),
        "dashboard": dashboard_config_map(choices, shown),
    }


def metrics_job(choices: Choices) -> str:
    """The Prometheus operator names it like the Service."""
    return f"{choices.name}-metrics"


def alerting_rules(job: str) -> str:
    return _HEADER + rules_text(rules_file(job))
