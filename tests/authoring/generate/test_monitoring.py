"""The dashboard and the alerts are about metrics that the operator has."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ruleop.authoring.generate.monitoring import ALERTS, dashboard
from ruleop.cli.program import program
from ruleop.language.rules.operator_choices import Choices
from tests.docs.messages import ROOT
from tests.docs.metrics import declared

LABELS = {
    f"{name}{suffix}": {"job", *labels, *(["le"] if suffix else [])}
    for name, kind, labels, _ in declared()
    for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
}
"""Of each series that the operator exposes."""
GRAFANA_UNITS = {"short", "s", "ops", "reqps", "bytes"}


def generated(*arguments: str) -> str:
    ran = CliRunner().invoke(program, ["generate", "dashboard", "-C", str(ROOT), *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def panels() -> list[dict[str, Any]]:
    return list(dashboard(Choices(), "ruleop-metrics")["panels"])


def expressions() -> Iterator[str]:
    yield from (each.expression.replace("JOB", 'job="x"') for each in ALERTS)
    yield from (target["expr"] for panel in panels() for target in panel.get("targets", ()))


@pytest.mark.parametrize("expression", [*expressions()])
def test_each_series_and_label_exists(expression: str) -> None:
    series = re.findall(r"([a-z_]+)\{([^}]*)\}", expression)
    assert series
    for name, selector in series:
        assert name in LABELS
        assert set(re.findall(r'([a-z]+)[=!]~?"', selector)) <= LABELS[name]
    known = set.union(*(LABELS[name] for name, _ in series))
    grouped = {label.strip() for found in re.findall(r"by \(([^)]*)\)", expression) for label in found.split(",")}
    assert grouped <= known


def test_panels_show_labels_that_their_queries_keep() -> None:
    for panel in panels():
        for target in panel.get("targets", ()):
            kept = {
                each.strip() for found in re.findall(r"by \(([^)]*)\)", target["expr"]) for each in found.split(",")
            }
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, panel["title"]


def test_panels_do_not_overlap_and_have_known_units() -> None:
    every = panels()
    assert len({each["id"] for each in every}) == len(every)
    for one, other in itertools.combinations((each["gridPos"] for each in every), 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert apart or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    assert all(each["gridPos"]["x"] + each["gridPos"]["w"] <= 24 for each in every)
    units = {each["fieldConfig"]["defaults"]["unit"] for each in every if each["type"] != "row"}
    assert units == GRAFANA_UNITS


def test_alerts_are_printed_for_prometheus_and_for_its_operator() -> None:
    rules = yaml.safe_load(generated("-o", "rules"))
    alerts = yaml.safe_load(generated("-o", "alerts", "--name", "ruleop"))
    assert alerts["spec"] == rules
    assert [each["alert"] for each in rules["groups"][0]["rules"]] == [each.name for each in ALERTS]
    assert 'job="elsewhere"' in generated("-o", "rules", "--job", "elsewhere")


def test_files_are_written_and_current(tmp_path: Path) -> None:
    generated("--out", str(tmp_path))
    assert json.loads((tmp_path / "dashboard.json").read_text()) == json.loads(generated())
    stored = yaml.safe_load((tmp_path / "dashboard-configmap.yaml").read_text())
    assert stored["data"]["ruleop.json"] == (tmp_path / "dashboard.json").read_text()
    assert "not current" not in generated("--out", str(tmp_path), "--check")


def test_a_job_cannot_leave_its_quotes() -> None:
    ran = CliRunner().invoke(program, ["generate", "dashboard", "-C", str(ROOT), "--job", 'a"} or vector(1) #'])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "--job must be letters, digits" in ran.stderr
