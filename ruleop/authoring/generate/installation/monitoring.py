"""The files of an operator's monitoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.generate.crd.generated_crds import MARK
from ruleop.authoring.generate.installation.alerts import prometheus_rule, rules_file
from ruleop.authoring.generate.installation.dashboard import dashboard, dashboard_config_map
from ruleop.authoring.scaffold.yaml_layout import rules_text
from ruleop.printable import json_document

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules.loading.operator_choices import Choices

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
