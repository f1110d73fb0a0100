"""`ruleop generate dashboard`."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from ruleop.authoring.generate.crd.generated_crds import MARK
from ruleop.authoring.generate.installation.monitoring import alerting_rules, metrics_job, monitoring_files
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.program import Command, UsageError

_PLAIN: Final = re.compile(r"[\w.:/-]+", re.ASCII)


@click.command(cls=Command, example="ruleop generate dashboard --out monitoring/")
@project_options
@choice_options("name", "namespace")
@click.option("--job", default="", metavar="JOB", help="Label `job` of the metrics. Default: NAME-metrics.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["dashboard", "alerts", "rules"]),
    default="dashboard",
    show_default=True,
    help="What is printed: the dashboard, the alerts as a PrometheusRule, or as a file for Prometheus.",
)
@generated_options
@force_option
def command(folder: str, *, job: str, output: str, out: str, check: bool, force: bool, **flags: Any) -> int:
    """Print a Grafana dashboard of the operator, or its alerts.

    --out writes both, the dashboard also as a ConfigMap that Grafana's sidecar finds. Exit status 0: done. 1:
    ruleop.yaml has mistakes, or --check found a file that is missing or not current. 2: wrong usage, or a file cannot
    be read or written.
    """
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
    job = job or metrics_job(choices)
    if not _PLAIN.fullmatch(job):
        raise UsageError(f'--job must be letters, digits and any of "_.:/-", not "{job}"')
    files = monitoring_files(choices, job)
    printed = {"dashboard": files["dashboard.json"], "alerts": files["alerts.yaml"], "rules": alerting_rules(job)}
    made = Made("" if force else MARK, first="alerts.yaml")  # JSON has no comments
    return print_or_write(files, printed[output], out=out, check=check, made=made)
