"""Metrics and probes of a running operator: its metrics change with what it does, and `/readyz?verbose` can be read."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane, free_ports
from controlplane.fixtures import Kubectl
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import Operator, eventually
from tests.cluster.test_examples import APP

TITLE = f"{APP.kind}.{APP.api_version.partition('/')[0]}"


class Measured(LiveExample):
    port: int

    def metrics(self) -> dict[str, float]:
        """The samples without the buckets, as they are written: `name{label="value"}`, labels in order."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                found[f"{sample.name}{{{labels}}}"] = sample.value
        return found

    def said(self) -> list[str]:
        return self.operator.probe("/readyz?verbose")[1].splitlines()


@pytest.fixture
def live_example(control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl) -> Iterator[Measured]:
    control_plane.define(APP.crd)
    (port,) = free_ports(1)
    with Operator(
        control_plane, APP.project, APP.permissions, tmp_path / "log", "--metrics-bind-address", f"127.0.0.1:{port}"
    ) as operator:
        live_example = Measured(APP, operator, namespace, kubectl)
        live_example.port = port
        yield live_example
        operator.check()
    control_plane.kubectl("delete", f"--filename={APP.crd}", "--wait=true", "--ignore-not-found")


def test_requests_of_an_operator_are_measured(live_example: Measured) -> None:
    before = live_example.metrics()
    mark = live_example.operator.mark()
    live_example.apply()
    live_example.wait_until_settled()

    def at_rest() -> dict[str, float] | None:
        now = live_example.metrics()
        ready = now.get(f"ruleop_resources{{controller={TITLE},reason=Ready}}") == 1
        said = now["ruleop_events_total{outcome=sent}"] > before.get("ruleop_events_total{outcome=sent}", 0)
        return now if ready and said and now["ruleop_event_loop_lag_seconds_count{}"] else None

    now = eventually("the CR to be counted as ready", at_rest, timeout=60)
    change = {series: value - before.get(series, 0) for series, value in now.items()}
    host = live_example.operator.plane.server.partition("://")[2]
    made = [each for each in live_example.operator.requests(mark) if each["verb"] == "create"]
    assert change[f"rest_client_requests_total{{code=201,host={host},method=POST}}"] == len(made)
    assert change[f"rest_client_request_duration_seconds_count{{host={host},verb=create}}"] == len(made)
    assert change[f"ruleop_writes_total{{action=create,controller={TITLE},outcome=done}}"] == 2
    assert change[f"ruleop_children{{controller={TITLE},state=ready}}"] == 2
    assert change[f"ruleop_plan_seconds_count{{controller={TITLE}}}"] >= 1
    assert change[f"ruleop_reconciles_without_writes_total{{controller={TITLE}}}"] >= 1
    assert change[f"controller_runtime_reconcile_time_seconds_count{{controller={TITLE}}}"] >= 1
    assert change[f"workqueue_adds_total{{name={TITLE}}}"] >= 1
    assert change[f"workqueue_queue_duration_seconds_count{{name={TITLE}}}"] >= 1
    assert now["ruleop_store_objects{kind=apps/v1 Deployment}"] >= 1, "others' may still be there"
    assert now["ruleop_store_bytes{kind=apps/v1 Deployment}"] > 0
    assert now["ruleop_watches{kind=apps/v1 Deployment,state=synced}"] == 1
    assert now["ruleop_relists_total{kind=apps/v1 Deployment}"] == 0
    assert now[f"controller_runtime_reconcile_panics_total{{controller={TITLE}}}"] == 0


def test_readiness_lists_each_part(live_example: Measured) -> None:
    live_example.apply()
    live_example.wait_until_settled()
    name = f"[+] controller {TITLE}: 0 running, 0 queued, 0 failing"
    lines = eventually(
        "the controller to be at rest", lambda: said if name in (said := live_example.said()) else None, timeout=60
    )
    assert lines[0] == "[+] rules: 2 in force"
    assert lines[-1] == "ready"
    for watch in ("myapp.k8s.io/v1 App", "apps/v1 Deployment where ruleop.dev/part-of"):
        assert [
            line
            for line in lines
            if re.fullmatch(rf"\[\+\] watch {re.escape(watch)}: [1-9]\d* objects?, last event \d+ s ago", line)
        ], watch
    assert live_example.operator.probe("/healthz") == (200, "ok")
