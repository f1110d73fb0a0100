"""The checks of `/readyz`, and which of them make the operator unready."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.operator.cache.informers import Informer, WatchSpec
from ruleop.operator.manager import ready_checks as checks
from ruleop.operator.telemetry.probes import Check
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.watch.reflector import SILENCE
from tests.operator.queue.workers_harness import CONFIG_MAP, WorkersHarness

REFUSED = ApiError(Problem.FORBIDDEN, verb="list", resource="configmaps", text="no")
AWAY = ApiError(Problem.TIMEOUT, verb="watch", resource="configmaps", text="nobody is there")


@pytest.fixture
def harness():
    return WorkersHarness()


async def test_a_synced_and_fresh_watch_is_ok(
    harness,
):
    harness.watch("shop").brings("a", "b")
    harness.watch("bank").brings("c")
    harness.time += 14
    assert checks.of_watch(harness.informer) == Check("watch v1 ConfigMap", True, "3 objects, last event 14 s ago")


async def test_a_watch_without_its_first_list_makes_the_operator_unready(
    harness,
):
    harness.watch("shop").brings("a")
    pending = harness.watch("bank")
    assert checks.of_watch(harness.informer) == Check("watch v1 ConfigMap", False, "not listed yet")
    pending.fails(AWAY)
    found = checks.of_watch(harness.informer)
    assert (found.ok, found.counts) == (False, True)
    assert "nobody is there" in found.message


async def test_a_forbidden_kind_is_listed_and_does_not_count(
    harness,
):
    harness.watch("shop").fails(REFUSED)
    found = checks.of_watch(harness.informer)
    assert (found.ok, found.counts) == (False, False)
    assert "list" in found.message
    assert "configmaps" in found.message


def test_a_kind_that_is_not_served_is_listed_and_does_not_count():
    found = checks.of_watch(Informer(WatchSpec(Kind("x.io", "v1", "Thing"))))
    assert found == Check("watch x.io/v1 Thing", False, "not served by the cluster", counts=False)


async def test_a_silent_watch_makes_the_operator_unready_until_the_server_answers(
    harness,
):
    watch = harness.watch("shop").brings("a")
    watch.fails(AWAY)
    harness.time += SILENCE
    assert checks.of_watch(harness.informer).ok, "as long as between two bookmarks"
    harness.time += 1
    found = checks.of_watch(harness.informer)
    assert (found.ok, found.counts) == (False, True)
    assert found.message.startswith("no event for 91 s: ")
    assert "nobody is there" in found.message
    watch.brings("a")
    assert checks.of_watch(harness.informer).ok


def test_two_watches_of_a_kind_have_different_names():
    one = Informer(WatchSpec(CONFIG_MAP, labels="ruleop.dev/part-of"))
    other = Informer(WatchSpec(CONFIG_MAP, fields="metadata.name=ca", namespace="kube-public", metadata_only=True))
    assert checks.of_watch(one).name == "watch v1 ConfigMap where ruleop.dev/part-of"
    assert checks.of_watch(other).name == "watch v1 ConfigMap in kube-public where metadata.name=ca metadata only"


def controller_set(harness, *, leading=True, rejected=""):
    for controller in harness.controllers:
        controller.rules = ("a rule", "another")
        controller.needs = frozenset({harness.informer.need})
    return SimpleNamespace(
        leading=leading,
        rejected=rejected,
        informers=SimpleNamespace(informers={harness.informer.need: harness.informer}),
        controllers=harness.controllers,
    )


def test_rejected_rules_are_listed_and_do_not_count(harness):
    assert checks.of_rules(controller_set(harness)) == Check("rules", True, "2 in force", counts=False)
    assert checks.of_rules(controller_set(harness, rejected="watches.yaml:1: no")) == Check(
        "rules", False, "watches.yaml:1: no", counts=False
    )


def test_a_standby_is_ready_and_names_the_leader():
    assert checks.of_election(True, "me") == Check("leader election", True, "leader")
    assert checks.of_election(False, "other_1") == Check("leader election", True, "standby; the leader is other_1")
    assert checks.of_election(False, "") == Check("leader election", True, "standby; the leader is unknown")


async def test_a_controller_reports_its_queue_or_what_it_waits_for(
    harness,
):
    book = controller_set(harness)
    name = "controller App.example.com"
    (controller,) = harness.controllers
    harness.watch("shop")
    assert checks.of_controller(controller, book) == Check(name, False, "waiting for v1 ConfigMap")
    harness.informer.watchers.clear()
    assert checks.of_controller(controller, book) == Check(
        name, False, "waiting for schemas of the kinds that it writes"
    )
    book.leading = False
    assert checks.of_controller(controller, book) == Check(name, True, "standby")
    release = harness.hold("failed")
    harness.add("a")
    await harness.until(lambda: harness.running)
    harness.workers.open(True)
    assert checks.of_controller(controller, book) == Check(name, True, "1 running, 0 queued, 0 failing")
    release()
    await harness.until(lambda: harness.ended)
    assert checks.of_controller(controller, book) == Check(name, True, "0 running, 0 queued, 1 failing")
    await harness.stop()
