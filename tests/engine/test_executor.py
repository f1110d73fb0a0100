"""What becomes of each action, whatever the server answers."""

from __future__ import annotations

import copy

import pytest

from ruleop.engine.cache.own_writes import OwnWrites
from ruleop.engine.reconcile.executor import Executor
from ruleop.kinds import ObjectKey
from ruleop.planning import Failure, Owner
from ruleop.planning.marks import OWNER, PART_OF
from tests.engine.server import APP, APPLIED_ALL_THE_SAME, Answer, child
from tests.engine.stage import OURS, WRITES, Stage, on_stage

KINDS = ("create", "patch", "replace", "apply", "delete", "add", "remove")
CHILDREN = KINDS[:5]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_planned_is_done_and_the_answer_is_in_the_store(run, kind):
    stage, action, asked = on_stage(kind)
    outcomes = run(stage.execute(action))
    assert outcomes.clean
    assert outcomes.done == [action]
    assert [each for each in stage.server.log if each[0] in WRITES] == [asked], "one write"
    if kind == "delete":
        assert stage.live("a") is None
        assert outcomes.deleted == {stage.key("a")}
    elif kind in CHILDREN:
        assert stage.live("a")["data"] == {"x": "new"}
        sent, answer = outcomes.written[stage.key("a")]
        assert sent["data"] == {"x": "new"}
        assert answer == stage.live("a")
    else:
        expected = ["somebody.else/has-one"] + ([OURS] if kind == "add" else [])
        assert stage.live("web", "App")["metadata"]["finalizers"] == expected
        assert outcomes.resource == stage.live("web", "App")
    stage.knows_what_is("a")
    stage.knows_what_is("web", "App")


def expected(kind, answer):
    """None: planned again; True: done; else the failure."""
    if answer in APPLIED_ALL_THE_SAME:
        return True if kind == "delete" else None
    if answer is Answer.NOT_FOUND and kind == "create":
        return Failure.OTHER  # the namespace is missing, or the kind
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
def test_every_answer_to_every_action(run, kind, answer):
    stage, action, (verb, name) = on_stage(kind)
    stage.server.make(child("theirs", owner=None, data={"mine": "alone"}))
    theirs = copy.deepcopy(stage.live("theirs"))
    stage.server.say(verb, name, answer)
    outcomes = run(stage.execute(action))
    key = stage.key(name, "App" if name == "web" else "ConfigMap")
    said = expected(kind, answer)
    if said is True:
        assert outcomes.clean
        assert outcomes.done == [action]
        assert outcomes.deleted == {key}
    else:
        assert not outcomes.clean
        assert outcomes.done == []
        assert outcomes.replan == (said is None)
        assert {found: failed.failure for found, failed in outcomes.failed.items()} == ({} if said is None else {key: said})
    for failed in outcomes.failed.values():
        assert verb in failed.message, "it says what was tried"
        assert failed.verb == (verb if answer is Answer.NO_ROLE else ""), "what a Role would have to grant"
        assert failed.wanted == ("digest" if kind in CHILDREN[:4] else "")
    assert outcomes.retry_after == (3 if answer is Answer.THROTTLED else None)
    assert stage.server.requests(*WRITES) == [(verb, name)], "nothing is sent twice"
    assert stage.live("theirs") == theirs
    if said in {None, True}:
        stage.knows_what_is("a")
        stage.knows_what_is("web", "App")


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_live_read_there_is_no_new_plan(run, kind):
    stage, action, (verb, name) = on_stage(kind)
    stage.server.say(verb, name, Answer.TIMEOUT_BEFORE)
    for _ in range(2):
        stage.server.say("get", name, Answer.UNREACHABLE)
    outcomes = run(stage.execute(action))
    assert not outcomes.replan
    assert [failed.failure for failed in outcomes.failed.values()] == [Failure.OTHER]


def test_a_forbidden_live_read_is_told_as_such(run):
    stage = Stage(child("a"))
    stage.server.say("patch", "a", Answer.CONFLICT)
    stage.server.say("get", "a", Answer.FORBIDDEN)
    outcomes = run(stage.execute(stage.patch()))
    assert outcomes.failed[stage.key("a")].failure is Failure.FORBIDDEN


@pytest.mark.parametrize("kind", ["patch", "apply"])
@pytest.mark.parametrize("readable", [True, False])
def test_of_an_object_that_is_refused_it_is_known_who_wrote_what(run, kind, readable):
    stage, action, (verb, name) = on_stage(kind)
    entry = {"manager": "kubectl-patch", "fieldsV1": {"f:data": {"f:x": {}}}}
    stage.live("a")["metadata"]["managedFields"] = [entry]
    stage.server.say(verb, name, Answer.INVALID)
    if not readable:
        stage.server.say("get", name, Answer.FORBIDDEN)
    (failed,) = run(stage.execute(action)).failed.values()
    assert failed.failure is Failure.INVALID
    assert failed.managed == ((entry,) if readable else ())


def test_the_longest_wait_that_was_asked_for_counts(run):
    stage = Stage()

    class Patient:
        def __call__(self, error):
            return Failure.OTHER, {"create ConfigMap/shop/a": 7.0, "create ConfigMap/shop/b": 5.0}.get(f"{error.verb} {error.resource}")

    executor = Executor(stage.server, stage.stores, Patient(), OwnWrites())
    for name in "abc":
        stage.server.say("create", name, Answer.THROTTLED)
    assert run(executor.execute([stage.create(name) for name in "abc"], stage.app)).retry_after == 7.0


# -- somebody else was faster ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["patch", "replace", "delete"])
def test_an_object_that_somebody_changed_meanwhile_is_left_as_it_is_and_planned_again(run, kind):
    stage, action, asked = on_stage(kind)
    stage.server.before[asked] = lambda: stage.server.edit(stage.key("a"), data={"x": "somebody's"})
    outcomes = run(stage.execute(action))
    assert outcomes.replan
    assert not outcomes.failed
    assert stage.live("a")["data"] == {"x": "somebody's"}
    stage.knows_what_is("a")


@pytest.mark.parametrize("kind", ["patch", "replace", "apply", "delete"])
def test_an_object_of_another_life_is_not_touched(run, kind):
    stage, action, asked = on_stage(kind)
    reborn = child("a", owner=None, data={"x": "born again"})
    stage.server.before[asked] = lambda: stage.server.make(reborn)
    outcomes = run(stage.execute(action))
    assert outcomes.replan
    assert stage.live("a")["data"] == {"x": "born again"}
    assert stage.stored("a") is None, "the store does not go on showing what was"
    assert outcomes.conflicting[stage.key("a")] == stage.live("a")


def test_a_name_taken_by_a_foreign_object_is_read_and_not_written(run):
    stage = Stage()
    stage.server.make(child("a", owner=None, data={"x": "theirs"}))
    outcomes = run(stage.execute(stage.create()))
    assert outcomes.replan
    assert outcomes.conflicting == {stage.key("a"): stage.live("a")}
    assert stage.stored("a") is None
    assert stage.server.log == [("create", "a"), ("get", "a")]


def test_a_name_taken_by_ourselves_is_no_failure(run):
    stage = Stage()
    stage.server.make(child("a"))
    outcomes = run(stage.execute(stage.create()))
    assert outcomes.replan
    assert not outcomes.conflicting
    stage.knows_what_is("a")


def test_an_object_that_went_meanwhile_leaves_the_store(run):
    stage = Stage(child("a"))
    stage.server.before["patch", "a"] = lambda: stage.server.objects.pop(stage.key("a"))
    outcomes = run(stage.execute(stage.patch()))
    assert outcomes.replan
    assert stage.stored("a") is None
    assert not outcomes.conflicting


def test_what_is_released_leaves_the_store(run):
    stage = Stage(child("a", data={"x": "old"}))
    outcomes = run(stage.execute(stage.release()))
    assert outcomes.clean
    assert not outcomes.written, "nothing to learn from it"
    assert stage.live("a")["data"] == {"x": "old"}
    assert PART_OF not in (stage.live("a")["metadata"].get("labels") or {})
    assert stage.stored("a") is None


# -- deletion ----------------------------------------------------------------------------------------------------------------------------


def test_before_each_deletion_there_is_a_live_read(run):
    stage = Stage(child("a"), child("b"))
    run(stage.execute(stage.delete("a"), stage.delete("b")))
    for name in "ab":
        assert stage.server.log.index(("get", name)) < stage.server.log.index(("delete", name))


def test_what_changed_before_the_live_read_is_not_deleted(run):
    stage = Stage(child("a"))
    action = stage.delete()
    stage.server.edit(stage.key("a"), data={"x": "somebody's"})
    outcomes = run(stage.execute(action))
    assert outcomes.replan
    assert not stage.server.requests("delete")
    stage.knows_what_is("a")


def test_what_is_not_ours_any_more_is_not_deleted(run):
    """The store says that it is ours under the same uid and version: not even then."""
    stage = Stage(child("a"))
    action = stage.delete()
    stage.live("a")["metadata"]["ownerReferences"][0]["uid"] = "another"
    outcomes = run(stage.execute(action))
    assert outcomes.replan
    assert not stage.server.requests("delete")


def test_an_object_elsewhere_is_known_by_its_annotation(run):
    note = Owner.of(APP).annotation(ObjectKey("", "ConfigMap", "shop", "a"), orphan=False)
    elsewhere = child("a")
    del elsewhere["metadata"]["ownerReferences"]
    elsewhere["metadata"]["annotations"] = {OWNER: note}
    stage = Stage(elsewhere)
    assert run(stage.execute(stage.delete())).deleted == {stage.key("a")}


def test_what_is_gone_already_is_deleted(run):
    stage = Stage(child("a"))
    del stage.server.objects[stage.key("a")]
    outcomes = run(stage.execute(stage.delete()))
    assert outcomes.clean
    assert outcomes.deleted == {stage.key("a")}
    assert not stage.server.requests("delete")
    assert stage.stored("a") is None


def test_what_takes_its_time_to_go_is_seen_going(run):
    lingering = child("a")
    lingering["metadata"]["finalizers"] = ["somebody.else/has-one"]
    stage = Stage(lingering)
    outcomes = run(stage.execute(stage.delete()))
    assert outcomes.clean
    assert outcomes.deleted == {stage.key("a")}
    assert stage.stored("a")["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("answer", sorted(APPLIED_ALL_THE_SAME, key=str), ids=str)
def test_a_lost_answer_to_a_deletion_that_takes_its_time_is_no_failure(run, answer):
    lingering = child("a")
    lingering["metadata"]["finalizers"] = ["somebody.else/has-one"]
    stage = Stage(lingering)
    stage.server.say("delete", "a", answer)
    outcomes = run(stage.execute(stage.delete()))
    assert outcomes.clean
    assert stage.stored("a")["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("propagation", ["background", "foreground"])
def test_the_propagation_is_said_as_the_server_spells_it(run, propagation):
    stage = Stage(child("a"))
    assert run(stage.execute(stage.delete(propagation=propagation))).clean
