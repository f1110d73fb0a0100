"""The files of an operator's monitoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.installation.dashboard import dashboard, dashboard_config_map
from ruleop.authoring.scaffold import rules_text
from ruleop.printable import json_document

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.operator_choices import Choices


# -- alerts ------------------------------------------------------------------------------------------------------------
#
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


# -- monitoring --------------------------------------------------------------------------------------------------------


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
