"""Metrics have the names of controller-runtime and client-go, can be parsed, and change when what they count
happens."""

from __future__ import annotations

import re

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from ruleop.operator.manager.ready_checks import COUNTERS, GAUGES, StateCollector
from ruleop.operator.queue import workers
from ruleop.operator.queue.work_queue import Request
from ruleop.operator.telemetry.metrics import Metrics
from tests.operator.queue.workers_harness import WorkersHarness
from tests.waiting import a_moment

FIELD = {
    "controller_runtime_reconcile_total": ("counter", {"controller", "result"}),
    "controller_runtime_reconcile_errors_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_panics_total": ("counter", {"controller"}),
    "controller_runtime_reconcile_time_seconds": ("histogram", {"controller"}),
    "controller_runtime_active_workers": ("gauge", {"controller"}),
    "controller_runtime_max_concurrent_reconciles": ("gauge", {"controller"}),
    "workqueue_depth": ("gauge", {"name"}),
    "workqueue_adds_total": ("counter", {"name"}),
    "workqueue_queue_duration_seconds": ("histogram", {"name"}),
    "workqueue_work_duration_seconds": ("histogram", {"name"}),
    "workqueue_unfinished_work_seconds": ("gauge", {"name"}),
    "workqueue_longest_running_processor_seconds": ("gauge", {"name"}),
    "workqueue_retries_total": ("counter", {"name"}),
    "rest_client_requests_total": ("counter", {"code", "method", "host"}),
    "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}),
    "leader_election_master_status": ("gauge", {"name"}),
}
"""Metrics of controller-runtime and client-go, with type and labels."""


def families(metrics):
    return {
        family.name: family for family in text_string_to_metric_families(generate_latest(metrics.registry).decode())
    }


def samples(metrics):
    """Values by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families(metrics).values()
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


def moved(before, after):
    return {series: value - before.get(series, 0) for series, value in after.items() if value != before.get(series, 0)}


@pytest.fixture
def busy(run):
    """Metrics of an operator with one watched kind, after something of everything that is counted happened."""

    async def scenario():
        harness = WorkersHarness()
        harness.happened()
        await harness.reconcile("a")
        harness.metrics.request_done("api:6443", "get", 200, 0.01)
        harness.metrics.leader.labels("ruleop").set(1)
        harness.metrics.shard_info.labels(0, 1).set(1)
        harness.metrics.lag.observe(0.1)
        harness.metrics.of(harness.title).wrote("create", "done")
        await harness.stop()
        return harness

    return run(scenario())


@pytest.mark.parametrize("name", FIELD)
def test_usual_metrics_have_their_names_and_labels(busy, name):
    type_, labels = FIELD[name]
    family = families(busy.metrics)[name.removesuffix("_total")]
    assert family.type == type_
    sample = name if type_ != "histogram" else f"{name}_count"
    assert {frozenset(each.labels) for each in family.samples if each.name == sample} == {frozenset(labels)}


def test_each_metric_has_a_help_text(busy):
    for family in families(busy.metrics).values():
        assert re.fullmatch(r"(controller_runtime|workqueue|rest_client|leader_election|ruleop)_[a-z_]+", family.name)
        assert family.documentation.endswith("."), "a sentence"
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
            assert [each for each in family.samples if each.name.endswith("_bucket") and each.labels["le"] == "+Inf"]
        assert family.samples, f"nothing happened at {family.name}"
        assert not [each for each in family.samples if each.name.endswith("_created")]


def test_no_label_is_the_name_of_an_object(busy):
    for family in families(busy.metrics).values():
        for sample in family.samples:
            assert set(sample.labels) <= {
                *("controller", "name", "kind", "child", "watch"),  # written in the rules
                *(
                    "result",
                    "outcome",
                    "action",
                    "state",
                    "reason",
                    "code",
                    "method",
                    "verb",
                    "host",
                    "phase",
                    "shard",
                    "count",
                    "le",
                ),  # their number is limited
            }


def test_a_request_is_counted_by_method_and_status():
    metrics = Metrics()
    for verb, status in (
        ("list", 200),
        ("watch", 200),
        ("create", 409),
        ("update", 200),
        ("patch", 200),
        ("delete", 404),
        ("get", 0),
    ):
        metrics.request_done("api:6443", verb, status, 0.2)
    counted = samples(metrics)
    counts = {
        (dict(series)["method"], dict(series)["code"]): value
        for (name, *series), value in counted.items()
        if name == "rest_client_requests_total"
    }
    assert counts == {
        ("GET", "200"): 2,
        ("POST", "409"): 1,
        ("PUT", "200"): 1,
        ("PATCH", "200"): 1,
        ("DELETE", "404"): 1,
        ("GET", "<error>"): 1,
    }
    assert counted["rest_client_request_duration_seconds_count", ("host", "api:6443"), ("verb", "watch")] == 1


def test_two_operators_in_one_process_have_metrics_of_their_own():
    one, two = Metrics(), Metrics()
    one.of("App").without_writes.inc()
    assert b'controller="App"' in generate_latest(one.registry)
    assert b'controller="App"' not in generate_latest(two.registry)


# -- the queue and the workers -----------------------------------------------------------------------------------------

BY_NAME, BY_CONTROLLER = ("name", "App.example.com"), ("controller", "App.example.com")


async def test_a_reconcile_is_counted_with_its_result():
    harness = WorkersHarness()
    before = samples(harness.metrics)
    for result in ("rest", "resync", "at once", "again", "failed", "bug"):
        await harness.reconcile(result.replace(" ", "-"), result)
    await harness.until(lambda: harness.ended == 7)  # one of them once more
    change = moved(before, samples(harness.metrics))
    assert {series: value for series, value in change.items() if not series[0].endswith("_sum")} == {
        ("workqueue_adds_total", BY_NAME): 6,
        ("workqueue_queue_duration_seconds_count", BY_NAME): 7,
        ("workqueue_work_duration_seconds_count", BY_NAME): 7,
        ("workqueue_retries_total", BY_NAME): 2,
        ("controller_runtime_reconcile_time_seconds_count", BY_CONTROLLER): 7,
        ("controller_runtime_reconcile_total", BY_CONTROLLER, ("result", "success")): 3,
        ("controller_runtime_reconcile_total", BY_CONTROLLER, ("result", "requeue")): 1,
        ("controller_runtime_reconcile_total", BY_CONTROLLER, ("result", "requeue_after")): 1,
        ("controller_runtime_reconcile_total", BY_CONTROLLER, ("result", "error")): 2,
        ("controller_runtime_reconcile_errors_total", BY_CONTROLLER): 2,
        ("controller_runtime_reconcile_panics_total", BY_CONTROLLER): 1,
        ("ruleop_failing", BY_CONTROLLER): 2,
    }
    await harness.stop()


def test_each_result_exists_from_the_start():
    """Then the first of each is an increase, and a rate can be computed."""
    found = samples(WorkersHarness().metrics)
    assert {
        result: found["controller_runtime_reconcile_total", BY_CONTROLLER, ("result", result)]
        for result in ("success", "requeue", "requeue_after", "error")
    } == {"success": 0, "requeue": 0, "requeue_after": 0, "error": 0}


async def test_queued_and_running_reconciles_are_measured():
    harness = WorkersHarness(limit=2)
    release = harness.hold()
    for name in "abc":
        harness.add(name)
    await harness.until(lambda: harness.running == 2)
    now = samples(harness.metrics)
    assert now["workqueue_depth", BY_NAME] == 1
    assert now["controller_runtime_active_workers", BY_CONTROLLER] == 2
    assert now["controller_runtime_max_concurrent_reconciles", BY_CONTROLLER] == 2
    await a_moment(0.01)
    later = samples(harness.metrics)
    longest = later["workqueue_longest_running_processor_seconds", BY_NAME]
    assert longest >= 0.01
    assert later["workqueue_unfinished_work_seconds", BY_NAME] > longest, "the sum of two"
    assert later["ruleop_longest_wait_seconds", BY_CONTROLLER] >= 0.01
    release()
    await harness.until(lambda: harness.ended == 3)
    after = samples(harness.metrics)
    assert after["workqueue_depth", BY_NAME] == after["controller_runtime_active_workers", BY_CONTROLLER] == 0
    assert after["workqueue_unfinished_work_seconds", BY_NAME] == 0
    assert after["workqueue_longest_running_processor_seconds", BY_NAME] == 0
    assert after["workqueue_queue_duration_seconds_sum", BY_NAME] >= 0.01, "c waited"
    await harness.stop()


def test_requests_of_a_standby_wait_from_when_it_leads(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(workers.time, "monotonic", lambda: now[0])

    def waits(harness):
        found = samples(harness.metrics)
        return found["workqueue_depth", BY_NAME], found["ruleop_longest_wait_seconds", BY_CONTROLLER]

    harness = WorkersHarness()
    harness.workers.add(Request("shop", "a"), "a test")
    now[0] += 3600
    assert waits(harness) == (0, 0), "nobody could have taken it"
    harness.workers.open(True)
    now[0] += 5
    assert waits(harness) == (1, 5)
    harness.workers.queue.take(now=now[0])
    assert samples(harness.metrics)["workqueue_queue_duration_seconds_sum", BY_NAME] == 5


async def test_a_removed_watch_leaves_no_series_even_if_a_reconcile_ends_later():
    harness = WorkersHarness()
    harness.happened()
    release = harness.hold("failed")
    harness.add("a")
    await harness.until(lambda: harness.running == 1)
    assert harness.title in generate_latest(harness.metrics.registry).decode()
    harness.remove()
    assert harness.title not in generate_latest(harness.metrics.registry).decode()
    release()
    await harness.until(lambda: harness.ended == 1)
    harness.metrics.of("Other")
    harness.reconciler_metrics.wrote("create", "done")
    assert harness.title not in generate_latest(harness.metrics.registry).decode()
    await harness.stop()


# -- what is counted when it is asked for ------------------------------------------------------------------------------


async def test_children_and_crs_are_counted_by_their_current_state():
    harness = WorkersHarness()
    for name in "abc":
        harness.stands(name, "Ready", ("ready", "ready"))
    harness.stands("d", "Waiting", ("ready", "waiting"), (("web", "child"),))
    harness.stands("e", "", ())  # not concluded yet
    now = {
        series: value
        for series, value in samples(harness.metrics).items()
        if series[0] in {"ruleop_children", "ruleop_resources", "ruleop_waits"}
    }
    assert now == {
        ("ruleop_children", BY_CONTROLLER, ("state", "ready")): 7,
        ("ruleop_children", BY_CONTROLLER, ("state", "waiting")): 1,
        ("ruleop_resources", BY_CONTROLLER, ("reason", "Ready")): 3,
        ("ruleop_resources", BY_CONTROLLER, ("reason", "Waiting")): 1,
        ("ruleop_waits", ("child", "web"), BY_CONTROLLER, ("reason", "child")): 1,
    }
    harness.stands("d", "Ready", ("ready", "ready"))
    harness.gone("a")
    now = samples(harness.metrics)
    assert now["ruleop_children", BY_CONTROLLER, ("state", "ready")] == 6
    assert ("ruleop_waits", ("child", "web"), BY_CONTROLLER, ("reason", "child")) not in now


async def test_deletions_that_are_held_back_are_counted():
    harness = WorkersHarness()
    harness.stands("a", "RenderFailed", ("failed",), held=2)
    harness.stands("b", "Ready", ("ready",))
    harness.stands("c", "ApplyFailed", ("failed",), held=1)
    assert samples(harness.metrics)["ruleop_deletions_held_back", BY_CONTROLLER] == 3


KIND = ("kind", "v1 ConfigMap")


async def test_stores_and_watches_are_counted_by_kind():
    harness = WorkersHarness()
    harness.watch("shop").brings("a", "b")
    harness.watch("bank").brings("c")
    harness.watch("dark")
    harness.unserved()
    harness.time += 70
    now = samples(harness.metrics)
    assert now["ruleop_store_objects", KIND] == 3
    assert now["ruleop_store_bytes", KIND] > 3 * 50
    assert now["ruleop_watches", KIND, ("state", "synced")] == 2
    assert now["ruleop_watches", KIND, ("state", "pending")] == 1
    assert now["ruleop_watches", ("kind", "cert-manager.io/v1 Certificate"), ("state", "unserved")] == 1
    assert now["ruleop_watch_silence_seconds", KIND] == 70
    assert now["ruleop_relists_total", KIND] == 0


async def test_each_relist_is_counted():
    harness = WorkersHarness()
    watch = harness.watch("shop")
    watch.brings("a")
    watch.brings("a")
    assert samples(harness.metrics)["ruleop_relists_total", KIND] == 1


async def test_internal_errors_are_counted():
    harness = WorkersHarness()
    watch = harness.watch("shop")
    watch.store.subscribe(lambda change: 1 / 0)
    watch.brings("a")
    watch.watcher.crashes += 1
    now = samples(harness.metrics)
    assert now["ruleop_listener_failures_total", KIND] == 1
    assert now["ruleop_watch_crashes_total", KIND] == 1


def test_events_are_counted_by_outcome():
    harness = WorkersHarness()
    harness.recorder.sent, harness.recorder.dropped, harness.recorder._correlator.suppressed = 3, 2, 1
    now = samples(harness.metrics)
    assert {
        outcome: now["ruleop_events_total", ("outcome", outcome)] for outcome in ("sent", "dropped", "suppressed")
    } == {
        "sent": 3,
        "dropped": 2,
        "suppressed": 1,
    }


def test_the_collector_declares_its_metrics():
    """Then duplicate names are found when the operator starts, and the documentation can be compared."""
    harness = WorkersHarness()
    assert {metric.name for metric in harness.collector.describe()} == {*GAUGES, *COUNTERS}
    with pytest.raises(ValueError, match="Duplicated"):
        harness.metrics.registry.register(
            StateCollector(
                controllers=(), informers=list, recorder=harness.recorder, on_loop=lambda function: function()
            )
        )
