"""The alerts and the dashboard's queries by promtool: they are valid, each alert fires, and all is calm otherwise."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.programs import program

from ruleop.authoring.generate.monitoring import ALERTS, rules_file
from tests.authoring.generate.test_monitoring import panels

pytestmark = pytest.mark.real_server("promtool is built with the control plane")

JOB = "ruleop-metrics"
CALM = {
    "leader_election_master_status": "1x300",
    "ruleop_reload_failed": "0x300",
    'ruleop_rollouts{watch="App",phase="Stopped"}': "0x300",
    "ruleop_unowned_buckets": "0x300",
    "ruleop_unowned_resources": "0x300",
    'ruleop_resources{controller="App",reason="Ready"}': "5x300",
    'ruleop_resources{controller="App",reason="Paused"}': "1x300",
    'ruleop_resources{controller="App",reason="ApplyFailed"}': "0x300",
    'ruleop_watches{kind="v1 Service",state="synced"}': "1x300",
    'ruleop_watches{kind="apiextensions.k8s.io/v1 CustomResourceDefinition",state="forbidden"}': "1x300",
    'ruleop_waits{controller="App",child="web",reason="child"}': "0x300",
    'ruleop_watch_silence_seconds{kind="v1 Service"}': "20x300",
    'ruleop_longest_wait_seconds{controller="App"}': "0.1x300",
    'controller_runtime_reconcile_panics_total{controller="App"}': "0x300",
    'ruleop_watch_crashes_total{kind="v1 Service"}': "0x300",
    'ruleop_listener_failures_total{kind="v1 Service"}': "0x300",
}
"""Series of an operator that has nothing to complain of, each minute."""
FIRES: dict[str, dict[str, str]] = {
    "RuleopNotLeading": {"leader_election_master_status": "0x300"},
    "RuleopRulesRefused": {"ruleop_reload_failed": "1x300"},
    "RuleopRolloutStopped": {'ruleop_rollouts{watch="App",phase="Stopped"}': "1x300"},
    "RuleopResourcesBroken": {'ruleop_resources{controller="App",reason="ApplyFailed"}': "2x300"},
    "RuleopPermissionMissing": {'ruleop_watches{kind="v1 Service",state="forbidden"}': "1x300"},
    "RuleopWaitsTooLong": {'ruleop_waits{controller="App",child="web",reason="child"}': "1x300"},
    "RuleopWatchSilent": {'ruleop_watch_silence_seconds{kind="v1 Service"}': "200x300"},
    "RuleopSlow": {'ruleop_longest_wait_seconds{controller="App"}': "90x300"},
    "RuleopResourcesUnowned": {"ruleop_unowned_buckets": "32x300"},
    "RuleopBug": {'ruleop_watch_crashes_total{kind="v1 Service"}': "0+1x300"},
}


def promtool(*arguments: str) -> str:
    command = [str(program("promtool")), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(rules_file(JOB)))
    return file


def with_job(series: str) -> str:
    name, _, labels = series.partition("{")
    return f'{name}{{job="{JOB}"{"," if labels else ""}{labels or "}"}'


def tried(rules: Path, changed: dict[str, str], expected: dict[str, list[dict[str, Any]]]) -> None:
    """`promtool test rules`: after two hours with these series, these alerts fire and no others."""
    series = [{"series": with_job(name), "values": values} for name, values in {**CALM, **changed}.items()]
    asked = [{"eval_time": "2h", "alertname": each.name, "exp_alerts": expected.get(each.name, [])} for each in ALERTS]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": asked}
    file = rules.parent / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [rules.name], "evaluation_interval": "1m", "tests": [test]}))
    promtool("test", "rules", str(file))


def test_the_rules_are_valid(rules: Path) -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", "--lint-fatal", str(rules))


def test_nothing_fires_while_all_is_well(rules: Path) -> None:
    tried(rules, {}, {})


def test_every_alert_is_tried() -> None:
    assert list(FIRES) == [each.name for each in ALERTS]


OF_SELECTORS = ("RuleopResourcesUnowned", {"ruleop_unowned_resources": "3x300"})


@pytest.mark.parametrize(("name", "changed"), [*FIRES.items(), OF_SELECTORS])
def test_an_alert_fires_alone(rules: Path, name: str, changed: dict[str, str]) -> None:
    alert = next(each for each in ALERTS if each.name == name)
    ran = _failure(rules, changed)
    assert f"alertname: {name}," in ran
    assert "got:" in ran
    others = [each.name for each in ALERTS if each.name != name]
    assert not [other for other in others if f"alertname: {other}," in ran]
    assert alert.severity in ran


def _failure(rules: Path, changed: dict[str, str]) -> str:
    """What promtool says to the claim that no alert fires."""
    with pytest.raises(AssertionError) as failed:
        tried(rules, changed, {})
    return str(failed.value)


def test_all_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    queries = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    known = [
        each.replace("$__rate_interval", "5m").replace("$job", "x").replace("$controller", ".*") for each in queries
    ]
    recorded = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(known)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    assert f"SUCCESS: {len(queries)} rules found" in promtool("check", "rules", str(file))
