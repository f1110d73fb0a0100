"""The records of a history: what a pass adds to it, and how long it is kept."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import (
    Condition,
    Conditions,
    Create,
    Delete,
    Failed,
    Failure,
    FixedObjects,
    History,
    Outcome,
    Patch,
    Plan,
)
from ruleop.planning.changes.differences import NOTHING, Difference
from ruleop.planning.changes.drift import ENOUGH, Reverted
from ruleop.planning.changes.writes import Verb
from ruleop.planning.history import CONFLICT_CAP, REFUSED_CAP, ConflictingObject, Refusal, Writes
from ruleop.planning.model.actions import ChildReport, FieldConflict, ObjectReport, State
from tests.planning.harness import Harness

A, B = (ObjectKey("", "ConfigMap", "shop", name) for name in "ab")
IMMUTABLE = Failed(Failure.IMMUTABLE, "it cannot change", "digest")
KINDS = Harness.of("children: {}")
PLAN = Plan(ObjectKey("example.com", "App", "shop", "web"), "cr-1", "App.example.com")


def obj(value, key=A):
    metadata = {"name": key.name, "namespace": key.namespace, "resourceVersion": "7", "uid": key.name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": value}}


def patch(key, value="1", why="changed"):
    return Patch(key, key.name, {"data": {"v": value}}, obj("before", key), obj(value, key), "digest", why)


def after(history, *actions, failed=None, written=None, conflicting=None, now=100.0, **plan):
    """The history after a plan with these actions, some of which failed."""
    outcome = Outcome(
        done=[action for action in actions if action.key not in (failed or {})],
        failed=dict(failed or {}),
        conflicting=dict(conflicting or {}),
    )
    for key, (sent, answer) in (written or {}).items():
        outcome.wrote(replace(patch(key), sent=sent), answer, KINDS.info)
    return history.after(replace(PLAN, actions=actions, synced=history.synced, **plan), outcome, now)


def concluded(history, *desired, now=100.0, **plan):
    """The history after a plan without actions, of a CR with these children."""
    report = ChildReport("a", State.READY, "a.yaml", objects=tuple(ObjectReport(key, State.READY) for key in desired))
    plan = {"synced": history.synced, **plan}
    return history.after(replace(PLAN, children=(report,), complete=True, **plan), None, now)


def test_an_answer_of_the_server_is_learned_and_unlearned():
    history = after(History.NONE, patch(A), patch(B), written={A: (obj("1000m"), obj("1")), B: (obj("1"), obj("1"))})
    assert set(history.learned) == {A}
    history = after(history, patch(A), written={A: (obj("1"), obj("1"))})
    assert not history.learned, "an old answer would hide somebody's change"


def test_a_permanent_rejection_is_kept_while_other_objects_are_written():
    history = after(History.NONE, patch(A), failed={A: IMMUTABLE})
    history = after(history, patch(B))
    assert history.refusals == {A: Refusal(IMMUTABLE, "7", 100.0)}


def test_a_permanent_rejection_ends_when_the_object_is_written():
    history = after(History.NONE, patch(A), failed={A: IMMUTABLE})
    history = after(history, patch(A), patch(B), failed={B: IMMUTABLE})
    assert history.refusals == {B: Refusal(IMMUTABLE, "7", 100.0)}


def test_a_permanent_rejection_lasts_some_seconds_and_until_the_object_changes_or_the_period_ends():
    refusal = Refusal(IMMUTABLE, "7", 100.0)
    assert refusal.is_active("8", 104.0, 0.0)
    assert not refusal.is_active("8", 105.0, 0.0)
    assert refusal.is_active("7", 1e9, 0.0)
    assert refusal.is_active("7", 699.0, 600.0)
    assert not refusal.is_active("7", 700.0, 600.0)
    assert refusal.is_active("7", 101.0, 1.0), "a short period does not hurry"


def test_an_object_rejected_repeatedly_backs_off_and_a_changed_one_starts_again():
    history, waits = History.NONE, []
    for _ in range(12):
        history = after(history, patch(A), failed={A: IMMUTABLE})
        waits.append(history.refusals[A].wait)
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, REFUSED_CAP, REFUSED_CAP]
    history = after(history, patch(A), failed={A: replace(IMMUTABLE, desired_digest="another")})
    assert history.refusals[A].wait == 5


@pytest.mark.parametrize(
    "failure", [failure for failure in Failure if failure not in {Failure.IMMUTABLE, Failure.HELD}]
)
def test_other_failures_are_retried_without_a_memory(failure):
    history = after(History.NONE, patch(A), failed={A: Failed(failure, "no", "digest")})
    assert not history.refusals
    assert history.failure(A).failure is failure, "but it is reported in this pass"
    assert history.before_writes().failure(A) is None


def test_a_recreated_object_is_recorded_with_the_rejected_digest():
    history = after(History.NONE, patch(A), failed={A: IMMUTABLE})
    history = after(history, Delete(A, "a", obj("1"), "recreate", after_writes=False))
    assert history.recreated == {A: "digest"}


def test_a_conflicting_object_is_read_less_and_less_often():
    history = after(History.NONE, conflicting={A: obj("theirs")})
    assert history.conflicting[A] == ConflictingObject(obj("theirs"), 101.0, 1.0)
    waits, found = [], history.conflicting[A]
    for _ in range(8):
        found = found.reread(obj("still theirs"), 200.0)
        waits.append(found.wait)
        assert found.due == 200.0 + found.wait
    assert waits == [2, 4, 8, 16, 32, CONFLICT_CAP, CONFLICT_CAP, CONFLICT_CAP]
    history = history.with_conflicting(A, found.read_failed("no answer", 250.0))
    assert history.conflicting[A].due == 250.0 + CONFLICT_CAP, "nor does one that cannot be read"
    history = after(history, conflicting={A: obj("met again")}, now=300.0)
    assert history.conflicting[A] == ConflictingObject(obj("met again"), 360.0, CONFLICT_CAP), (
        "meeting it again does not hurry"
    )


def test_written_and_cached_objects_are_no_longer_conflicting():
    history = after(History.NONE, conflicting={A: obj("theirs"), B: obj("theirs", B)})
    assert set(after(history, patch(A), written={A: (obj("1"), obj("1"))}).conflicting) == {B}
    assert set(history.at_pass_start(FixedObjects([obj("known", B)]), 100.0).conflicting) == {A}


def test_records_of_undesired_objects_are_dropped():
    history = after(History.NONE, written={A: (obj("1000m"), obj("1")), B: (obj("1000m", B), obj("1", B))})
    history = after(
        history, patch(A), patch(B), failed={A: IMMUTABLE, B: IMMUTABLE}, conflicting={A: obj("x"), B: obj("x", B)}
    )
    history = replace(history, recreated={A: "digest", B: "digest"})
    kept = concluded(history, B)
    assert [set(part) for part in (kept.learned, kept.conflicting, kept.refusals, kept.recreated)] == [{B}] * 4
    unknown = history.after(replace(PLAN, synced=history.synced, complete=False), None, 100.0)
    assert set(unknown.recreated) == {A, B}, "where not all is known, nothing is forgotten"


def test_a_pass_with_the_same_conclusions_keeps_the_history_object():
    history = concluded(History.NONE, A, conditions=Conditions.of("Ready", ready=True))
    assert history.reason == "Ready"
    assert concluded(history, A, conditions=Conditions.of("Ready", ready=True)) is history
    assert history.at_pass_start(FixedObjects(), 1e9) is history


def test_the_plan_after_the_writes_has_their_results():
    history = after(History.NONE, patch(A), patch(B), failed={B: IMMUTABLE}, written={A: (obj("1"), obj("1"))})
    assert history.writes == Writes({B: IMMUTABLE}, {A: patch(A).desired_digest}, frozenset({B}))
    assert history.written == 1
    history = concluded(history, A, B)
    assert (history.writes, history.written) == (None, 0)


# -- drift -------------------------------------------------------------------------------------------------------------


def test_a_difference_is_drift_only_if_the_same_was_in_sync_before():
    once = after(History.NONE, patch(A))
    assert not once.drift
    assert set(after(once, patch(A)).drift) == {A}
    assert not after(once, replace(patch(A), desired_digest="another")).drift


def test_an_object_that_was_created_twice_has_drifted():
    create = Create(A, "a", obj("1"), "digest")
    assert set(after(after(History.NONE, create), create).drift) == {A}


def test_deletions_and_releases_by_ruleop_are_not_drift():
    history = after(after(History.NONE, patch(A), patch(B)), patch(A), patch(B))
    assert set(after(history, Delete(A, "a", obj("1"), "pruned")).drift) == {B}
    assert set(after(history, patch(A, why="released")).drift) == {B}


def test_a_noticed_conflict_is_kept_until_it_is_over():
    history = replace(History.NONE, drift={A: Reverted("digest", frozenset({"data.v"}), (99.0,) * ENOUGH)})
    conflict = FieldConflict(A, "a", frozenset({"data.v"}), "in conflict", new=True)
    history = concluded(history, A, field_conflicts=(conflict,))
    drift = history.drift[A]
    assert (drift.message, drift.drifted, drift.due) == ("in conflict", True, 110.0)
    assert history.at_pass_start(FixedObjects(), 229.0).drift
    assert not history.at_pass_start(FixedObjects(), 230.0).drift


def test_drift_is_distinguished_from_an_edit_by_the_last_rendered_object():
    history = after(History.NONE, Create(A, "a", obj("1"), "digest"))
    resource = {"metadata": {"uid": PLAN.uid, "generation": 1}}
    in_sync = [SimpleNamespace(key=A, digest="digest", is_settled=False)]
    synced = history.synced.with_in_sync(in_sync, "rule", resource)
    history = concluded(history, A, synced=synced)
    uid = PLAN.uid
    change = replace(patch(A), desired_digest="another")
    assert history.synced.verb(change, uid, KINDS) is Verb.PATCH
    assert history.synced.verb(Create(A, "a", obj("1"), "digest"), uid, KINDS) is Verb.RECREATE
    assert History.NONE.synced.verb(Create(A, "a", obj("1"), "digest"), uid, KINDS) is Verb.CREATE


def test_a_restored_field_is_drift_and_a_changed_mark_alone_is_none():
    """Only where no other field changes, the marks have to be compared."""
    synced = after(History.NONE, Create(A, "a", obj("1"), "digest")).synced
    label, own = "metadata.labels['app.kubernetes.io/managed-by']", "metadata.labels.app"
    field, marks = patch(A), replace(patch(A), patch={"metadata": {"labels": {"any": "x"}}})
    assert (synced.may_be_of_marks(field), synced.may_be_of_marks(marks)) == (False, True)
    assert synced.verb(field, PLAN.uid, []) is Verb.REVERT
    assert synced.verb(marks, PLAN.uid, [Difference(label, NOTHING, "ruleop")]) is Verb.PATCH
    assert synced.verb(marks, PLAN.uid, [Difference(own, NOTHING, "x")]) is Verb.REVERT
    assert not synced.may_be_of_marks(replace(marks, desired_digest="another"))


def test_the_reason_of_ready_is_kept_in_the_history():
    ready = Condition("Ready", "False", "Waiting")
    conditions = replace(Conditions.of("Waiting", reconciling=True), ready=ready)
    assert concluded(History.NONE, conditions=conditions).reason == "Waiting"


def test_each_action_has_a_result():
    failed = Outcome(done=[done := patch(A)], failed={B: IMMUTABLE})
    held_back = Delete(ObjectKey("", "ConfigMap", "shop", "c"), "c", obj("1"), "pruned")
    results = {action.key.name: result for action, result in failed.results([done, patch(B), held_back])}
    assert results == {"a": "done", "b": "immutable", "c": "held back"}
