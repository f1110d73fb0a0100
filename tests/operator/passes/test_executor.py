"""The outcome of each action for each response of the API server."""

from __future__ import annotations

import copy

import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.passes import executor
from ruleop.planning import Failure, Owner
from ruleop.planning.model.marks import OWNER, PART_OF
from tests.operator.children import APP, child
from tests.operator.passes.executor_harness import OURS, WRITES, ExecutorHarness, harness_with_action
from tests.operator.server import APPLIED_ALL_THE_SAME, Answer

KINDS = ("create", "patch", "apply", "delete", "add", "remove")
CHILDREN = KINDS[:4]


@pytest.mark.parametrize("kind", KINDS)
def test_an_executed_action_is_sent_once_and_its_response_is_in_the_store(run, kind):
    harness, action, asked = harness_with_action(kind)
    outcomes = run(harness.execute(action))
    assert outcomes.clean
    assert outcomes.done == [action]
    assert [each for each in harness.server.log if each[0] in WRITES] == [asked], "one write"
    if kind == "delete":
        assert harness.live("a") is None
        assert outcomes.deleted == {harness.key("a")}
    elif kind in CHILDREN:
        assert harness.live("a")["data"] == {"x": "new"}
        assert outcomes.written[harness.key("a")] == harness.live("a")
    else:
        expected = ["somebody.else/has-one"] + ([OURS] if kind == "add" else [])
        assert harness.live("web", "App")["metadata"]["finalizers"] == expected
        assert outcomes.resource == harness.live("web", "App")
    harness.knows_what_is("a")
    harness.knows_what_is("web", "App")


def expected(kind, answer):
    """None: planned again; True: done; else the failure."""
    if answer in APPLIED_ALL_THE_SAME:
        return True if kind == "delete" else None
    if answer is Answer.NOT_FOUND and kind == "delete":
        return True
    if answer is Answer.NOT_FOUND and kind in {"create", "add", "remove"}:
        return Failure.OTHER  # the namespace, the kind or the CR is missing
    if answer in {Answer.EXISTS, Answer.CONFLICT, Answer.NOT_FOUND}:
        return None
    return {
        Answer.INVALID: Failure.INVALID,
        Answer.IMMUTABLE: Failure.IMMUTABLE,
        Answer.FORBIDDEN: Failure.FORBIDDEN,
        Answer.NO_ROLE: Failure.FORBIDDEN,
    }.get(answer, Failure.OTHER)


@pytest.mark.parametrize("answer", Answer, ids=lambda answer: answer.value)
@pytest.mark.parametrize("kind", KINDS)
def test_each_action_has_the_expected_outcome_for_each_response(run, kind, answer):
    harness, action, (verb, name) = harness_with_action(kind)
    harness.server.make(child("theirs", owner=None, data={"mine": "alone"}))
    theirs = copy.deepcopy(harness.live("theirs"))
    key = harness.key(name, "App" if name == "web" else "ConfigMap")
    harness.server.answer_with(verb, name, answer)
    outcomes = run(harness.execute(action))
    result = expected(kind, answer)
    if result is True:
        assert outcomes.clean
        assert outcomes.done == [action]
        assert outcomes.deleted == {key}
    else:
        assert not outcomes.clean
        assert outcomes.done == []
        assert outcomes.replan == (result is None)
        assert {found: failed.failure for found, failed in outcomes.failed.items()} == (
            {} if result is None else {key: result}
        )
    granted = "patch" if verb == "apply" else verb
    for failed in outcomes.failed.values():
        assert granted in failed.message, "it says what was tried"
        assert failed.verb == (granted if answer is Answer.NO_ROLE else ""), "what a Role would have to grant"
        assert failed.desired_digest == ("digest" if kind in CHILDREN[:3] else "")
    assert outcomes.retry_after == (3 if answer is Answer.THROTTLED else None)
    assert harness.server.requests(*WRITES) == [(verb, name)], "nothing is sent twice"
    assert harness.live("theirs") == theirs
    if result in {None, True}:
        assert answer is not Answer.NOT_FOUND or harness.live("a") is None
        harness.knows_what_is("a")
        harness.knows_what_is("web", "App")


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_live_read_there_is_no_new_plan(run, kind):
    harness, action, (verb, name) = harness_with_action(kind)
    harness.server.answer_with(verb, name, Answer.TIMEOUT_BEFORE)
    harness.server.before[verb, name] = lambda: harness.server.answer_with("get", name, Answer.UNREACHABLE)
    outcomes = run(harness.execute(action))
    assert not outcomes.replan
    assert [failed.failure for failed in outcomes.failed.values()] == [Failure.OTHER]


def test_a_forbidden_live_read_is_reported_as_such(run):
    harness = ExecutorHarness(child("a"))
    harness.server.answer_with("patch", "a", Answer.CONFLICT)
    harness.server.answer_with("get", "a", Answer.FORBIDDEN)
    outcomes = run(harness.execute(harness.patch()))
    assert outcomes.failed[harness.key("a")].failure is Failure.FORBIDDEN


@pytest.mark.parametrize("kind", ["patch", "apply"])
@pytest.mark.parametrize("readable", [True, False])
def test_a_rejected_write_has_the_managed_fields_of_the_live_object(run, kind, readable):
    harness, action, (verb, name) = harness_with_action(kind)
    harness.server.edit(harness.key("a"), manager="kubectl-patch", data={"x": "theirs"})
    harness.server.answer_with(verb, name, Answer.INVALID)
    if not readable:
        harness.server.before[verb, name] = lambda: harness.server.answer_with("get", name, Answer.FORBIDDEN)
    (failed,) = run(harness.execute(action)).failed.values()
    assert failed.failure is Failure.INVALID
    assert {entry["manager"] for entry in failed.managed} == ({"somebody", "kubectl-patch"} if readable else set())


def test_the_longest_retry_after_of_several_failures_is_used(run, monkeypatch):
    harness, seconds = ExecutorHarness(), {"create configmaps shop/a": 7.0, "create configmaps shop/b": 5.0}
    monkeypatch.setattr(
        executor, "classify", lambda error: (Failure.OTHER, seconds.get(f"{error.verb} {error.resource}"))
    )

    for name in "abc":
        harness.server.answer_with("create", name, Answer.THROTTLED)
    assert run(harness.execute(*map(harness.create, "abc"))).retry_after == 7.0


# -- somebody else was faster ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["patch", "delete"])
def test_an_object_changed_in_the_meantime_is_left_unchanged_and_planned_again(run, kind):
    harness, action, asked = harness_with_action(kind)
    harness.server.before[asked] = lambda: harness.server.edit(harness.key("a"), data={"x": "somebody's"})
    outcomes = run(harness.execute(action))
    assert outcomes.replan
    assert not outcomes.failed
    assert harness.live("a")["data"] == {"x": "somebody's"}
    harness.knows_what_is("a")


@pytest.mark.parametrize("kind", ["add", "remove"])
def test_a_finalizer_that_another_client_adds_in_the_meantime_is_kept(run, kind):
    harness, action, asked = harness_with_action(kind)
    before = harness.app["metadata"]["finalizers"]

    def add_another():
        metadata = harness.live("web", "App")["metadata"]
        harness.server.edit(
            harness.key("web", "App"), metadata={**metadata, "finalizers": [*before, "another.one/too"]}
        )

    harness.server.before[asked] = add_another
    outcomes = run(harness.execute(action))
    assert outcomes.replan
    assert harness.live("web", "App")["metadata"]["finalizers"] == [*before, "another.one/too"]
    harness.knows_what_is("web", "App")


@pytest.mark.parametrize("kind", ["patch", "apply", "delete"])
def test_an_object_with_another_uid_is_not_changed(run, kind):
    harness, action, asked = harness_with_action(kind)

    def replace_it():
        harness.server.remove(harness.key("a"))
        harness.server.make(child("a", owner=None, data={"x": "born again"}))

    harness.server.before[asked] = replace_it
    outcomes = run(harness.execute(action))
    assert outcomes.replan
    assert harness.live("a")["data"] == {"x": "born again"}
    assert harness.stored("a") is None, "the store no longer has the old object"
    assert outcomes.conflicting[harness.key("a")] == harness.live("a")


def test_a_name_taken_by_a_foreign_object_is_read_and_not_written(run):
    harness = ExecutorHarness()
    harness.server.make(child("a", owner=None, data={"x": "theirs"}))
    outcomes = run(harness.execute(harness.create()))
    assert outcomes.replan
    assert outcomes.conflicting == {harness.key("a"): harness.live("a")}
    assert harness.stored("a") is None
    assert harness.server.log == [("create", "a"), ("get", "a")]


def test_an_existing_child_of_the_cr_is_not_a_failure_of_its_creation(run):
    harness = ExecutorHarness()
    harness.server.make(child("a"))
    outcomes = run(harness.execute(harness.create()))
    assert outcomes.replan
    assert not outcomes.conflicting
    harness.knows_what_is("a")


def test_an_object_deleted_in_the_meantime_is_removed_from_the_store(run):
    harness = ExecutorHarness(child("a"))
    harness.server.before["patch", "a"] = lambda: harness.server.remove(harness.key("a"))
    outcomes = run(harness.execute(harness.patch()))
    assert outcomes.replan
    assert harness.stored("a") is None
    assert not outcomes.conflicting


def test_a_released_object_is_removed_from_the_store(run):
    harness = ExecutorHarness(child("a", data={"x": "old"}))
    outcomes = run(harness.execute(harness.release()))
    assert outcomes.clean
    assert not outcomes.written, "nothing to learn from it"
    assert harness.live("a")["data"] == {"x": "old"}
    assert PART_OF not in (harness.live("a")["metadata"].get("labels") or {})
    assert harness.stored("a") is None


# -- deletion ----------------------------------------------------------------------------------------------------------


def test_each_deletion_is_preceded_by_a_live_read(run):
    harness = ExecutorHarness(child("a"), child("b"))
    run(harness.execute(harness.delete("a"), harness.delete("b")))
    for name in "ab":
        assert harness.server.log.index(("get", name)) < harness.server.log.index(("delete", name))


def test_an_object_changed_before_the_live_read_is_not_deleted(run):
    harness = ExecutorHarness(child("a"))
    action = harness.delete()
    harness.server.edit(harness.key("a"), data={"x": "somebody's"})
    outcomes = run(harness.execute(action))
    assert outcomes.replan
    assert not harness.server.requests("delete")
    harness.knows_what_is("a")


def test_an_object_with_another_owner_in_the_live_read_is_not_deleted(run):
    """Even if the store has it as ruleop's with the same uid and version."""
    harness = ExecutorHarness(child("a"))
    action = harness.delete()
    harness.server.amend(harness.key("a"), ownerReferences=[{**Owner.of(APP).reference(), "uid": "another"}])
    outcomes = run(harness.execute(action))
    assert outcomes.replan
    assert not harness.server.requests("delete")


def test_an_object_with_an_owner_annotation_can_be_deleted(run):
    note = Owner.of(APP).annotation(ObjectKey("", "ConfigMap", "shop", "a"), orphan=False)
    elsewhere = child("a")
    del elsewhere["metadata"]["ownerReferences"]
    elsewhere["metadata"]["annotations"] = {OWNER: note}
    harness = ExecutorHarness(elsewhere)
    assert run(harness.execute(harness.delete())).deleted == {harness.key("a")}


def test_an_object_that_no_longer_exists_counts_as_deleted(run):
    harness = ExecutorHarness(child("a"))
    harness.server.remove(harness.key("a"))
    outcomes = run(harness.execute(harness.delete()))
    assert outcomes.clean
    assert outcomes.deleted == {harness.key("a")}
    assert not harness.server.requests("delete")
    assert harness.stored("a") is None


def test_a_deleted_object_with_finalizers_is_stored_as_terminating(run):
    lingering = child("a")
    lingering["metadata"]["finalizers"] = ["somebody.else/has-one"]
    harness = ExecutorHarness(lingering)
    outcomes = run(harness.execute(harness.delete()))
    assert outcomes.clean
    assert outcomes.deleted == {harness.key("a")}
    assert harness.stored("a")["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("answer", sorted(APPLIED_ALL_THE_SAME, key=str), ids=str)
def test_a_lost_response_to_the_deletion_of_an_object_with_finalizers_is_not_a_failure(run, answer):
    lingering = child("a")
    lingering["metadata"]["finalizers"] = ["somebody.else/has-one"]
    harness = ExecutorHarness(lingering)
    harness.server.answer_with("delete", "a", answer)
    outcomes = run(harness.execute(harness.delete()))
    assert outcomes.clean
    assert harness.stored("a")["metadata"]["deletionTimestamp"]
