"""What Prometheus and probes are told by an operator at work: its metrics move with what it does, and `/readyz?verbose` can be read."""

from __future__ import annotations

import re
import urllib.request
from typing import TYPE_CHECKING

import pytest
from controlplane.cluster import free_ports
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.operator import Operator, eventually
from tests.cluster.seeds import Life
from tests.cluster.test_seed_app import APP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane.cluster import ControlPlane
    from controlplane.fixtures import Kubectl

TITLE = f"{APP.kind}.{APP.api_version.partition('/')[0]}"


class Measured(Life):
    port: int

    def metrics(self) -> dict[str, float]:
        """As they are written, without the buckets: `name{label="value"}`, labels in order."""
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
def life(control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl) -> Iterator[Measured]:
    control_plane.define(APP.crd)
    (port,) = free_ports(1)
    with Operator(control_plane, APP.project, APP.rights, tmp_path / "log", "--metrics-bind-address", f"127.0.0.1:{port}") as operator:
        life = Measured(APP, operator, namespace, kubectl)
        life.port = port
        yield life
        operator.check()
    control_plane.kubectl("delete", f"--filename={APP.crd}", "--wait=true", "--ignore-not-found")


def test_what_an_operator_does_is_measured(life: Measured) -> None:
    before = life.metrics()
    mark = life.operator.mark()
    life.apply()
    life.settled()

    def at_rest() -> dict[str, float] | None:
        now = life.metrics()
        ready = now.get(f"ruleop_resources{{controller={TITLE},reason=Ready}}") == 1
        said, beaten = now["ruleop_events_total{outcome=sent}"], now["ruleop_event_loop_lag_seconds_count{}"]
        return now if ready and said and beaten else None

    now = eventually("the CR to be counted as ready", at_rest, timeout=60)
    change = {series: value - before.get(series, 0) for series, value in now.items()}
    host = life.operator.plane.server.partition("://")[2]
    made = [each for each in life.operator.requests(mark) if each["verb"] == "create"]
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


def test_readiness_tells_of_each_part(life: Measured) -> None:
    life.apply()
    life.settled()
    name = f"[+] controller {TITLE}: 0 running, 0 queued, 0 failing"
    lines = eventually("the controller to be at rest", lambda: said if name in (said := life.said()) else None, timeout=60)
    assert lines[0] == "[+] rules: 2 in force"
    assert lines[-1] == "ready"
    for watch in ("myapp.k8s.io/v1 App", "apps/v1 Deployment where ruleop.dev/part-of"):
        assert [
            line for line in lines if re.fullmatch(rf"\[\+\] watch {re.escape(watch)}: [1-9]\d* objects?, last event \d+ s ago", line)
        ], watch
    assert life.operator.probe("/healthz") == (200, "ok")
