"""A CR that no rule matches keeps its children and loses ruleop's finalizer, after a delay."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.rules.keys.model import Selection
from ruleop.operator.passes.reconciler import Reconciler
from ruleop.operator.queue.work_queue import Request
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.planning import Failed, Failure, Outcome, RemoveFinalizer
from ruleop.planning.model.marks import PAUSED

APP = Kind("example.com", "v1", "App")
OURS = "ruleop.dev/ruleop"
OWNER = ObjectKey("example.com", "App", "shop", "web")
COMPLAINT = "finalizer cannot be removed; will retry"


class Play:
    """A kind without rules, and what is done about its CRs."""

    def __init__(self, *finalizers, dry_run=False):
        metadata = {
            "name": "web",
            "namespace": "shop",
            "uid": "u",
            "resourceVersion": "1",
            "finalizers": list(finalizers),
        }
        self.resource = {"apiVersion": "example.com/v1", "kind": "App", "metadata": metadata}
        self.done, self.failed = [], {}
        world = SimpleNamespace(resource=lambda _key, _version="": self.resource, seen_from=lambda _namespace: world)
        environment = SimpleNamespace(
            cache=world,
            executor=self,
            metrics=Metrics(),
            finalizer=OURS,
            own=frozenset(),
            other_operators=SimpleNamespace(remove=lambda _key: None),
            owns=None,
            dry_run=dry_run,
            clock=None,
            debounce=None,
        )
        self.reconciler = Reconciler(APP, (), environment, workers=None)

    async def execute(self, actions, _resource):
        self.done += actions
        return Outcome(done=[] if self.failed else list(actions), failed=dict(self.failed))

    def reconcile(self):
        with capture_logs() as logs:
            verdict = asyncio.run(self.reconciler.reconcile(Request("shop", "web")))
        return verdict, [log["event"] for log in logs]


def test_an_unmatched_cr_loses_only_ruleops_finalizer():
    play = Play("somebody.else/one", OURS)
    verdict, lines = play.reconcile()
    assert play.done == [RemoveFinalizer(OWNER, OURS)]
    assert lines == ["finalizer removed"]
    assert not verdict.failed


def test_a_paused_unmatched_cr_keeps_the_finalizer_while_its_kind_has_rules():
    play = Play(OURS)
    play.resource["metadata"]["annotations"] = {PAUSED: "true"}
    play.reconciler.rules = (SimpleNamespace(kind=APP, selection=Selection(namespaces=("elsewhere",))),)
    play.reconcile()
    assert play.done == []
    play.resource["metadata"]["annotations"] = {}
    play.reconcile()
    assert play.done == [RemoveFinalizer(OWNER, OURS)]


def test_a_pause_does_not_keep_the_finalizer_of_a_kind_without_rules():
    """Nothing would remove it afterwards."""
    play = Play(OURS)
    play.resource["metadata"]["annotations"] = {PAUSED: "true"}
    play.reconcile()
    assert play.done == [RemoveFinalizer(OWNER, OURS)]


def test_an_unmatched_cr_without_the_finalizer_is_left_alone():
    play = Play("somebody.else/one")
    play.reconcile()
    assert play.done == []


def test_a_dry_run_removes_no_finalizer():
    play = Play(OURS, dry_run=True)
    play.reconcile()
    assert play.done == []


def test_the_finalizer_is_kept_shortly_after_a_reload():
    play = Play(OURS)
    play.reconciler.held_until = "2026-01-01T12:00:30Z"
    verdict, _ = play.reconcile()
    assert (play.done, verdict.failed) == ([], False)
    play.reconciler.held_until = ""
    play.reconcile()
    assert play.done == [RemoveFinalizer(OWNER, OURS)]


def test_a_failure_is_logged_once_until_a_removal_succeeds():
    play = Play(OURS)
    play.failed = {ObjectKey.of(play.resource): Failed(Failure.FORBIDDEN, "patch apps.example.com: forbidden")}
    assert play.reconcile()[1] == [COMPLAINT]
    verdict, logged = play.reconcile()
    assert (verdict.failed, logged) == (True, [])
    play.failed = {ObjectKey.of(play.resource): Failed(Failure.OTHER, "no answer")}
    assert play.reconcile()[1] == [COMPLAINT], "another reason is news"
    play.failed = {}
    assert play.reconcile() == (type(verdict)(), ["finalizer removed"])
    play.failed = {ObjectKey.of(play.resource): Failed(Failure.FORBIDDEN, "patch apps.example.com: forbidden")}
    assert play.reconcile()[1] == [COMPLAINT]
