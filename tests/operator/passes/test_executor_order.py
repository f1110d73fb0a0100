"""The order in which a plan is carried out, and the actions that a failure prevents."""

from __future__ import annotations

import asyncio
import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.operator.passes.executor import MAX_CONCURRENT_WRITES
from ruleop.operator.wire.client.client import CONCURRENCY
from ruleop.planning import AddFinalizer, Create, Delete, Failure, Patch, ServerSideApply
from tests.exploration import examples
from tests.operator.children import child
from tests.operator.passes.executor_harness import OURS, OWNER, WRITES, ExecutorHarness, harness_with_action
from tests.operator.server import Answer


def test_independent_creates_are_under_way_together(run):
    harness = ExecutorHarness()
    together = asyncio.Barrier(3)
    for name in "abc":
        harness.server.held["create", name] = together
    assert run(harness.execute(*(harness.create(name) for name in "abc"))).clean


def test_concurrent_writes_of_one_cr_are_limited(run):
    harness = ExecutorHarness()
    outcomes = run(harness.execute(*(harness.create(f"c{number}") for number in range(5 * MAX_CONCURRENT_WRITES))))
    assert outcomes.clean
    assert harness.server.most == MAX_CONCURRENT_WRITES < CONCURRENCY
    assert len([key for key in harness.server.object_keys() if key.kind == "ConfigMap"]) == 5 * MAX_CONCURRENT_WRITES


def test_actions_wait_for_the_writes_that_they_need(run):
    harness = ExecutorHarness()
    actions = [
        harness.create("c", needs=frozenset("b")),
        harness.create("b", needs=frozenset("a")),
        harness.create("a"),
        harness.create("d"),
    ]
    assert run(harness.execute(*actions)).clean
    log = harness.server.log
    assert set(log[:2]) == {("create", "a"), ("create", "d")}
    assert log[2:] == [("create", "b"), ("create", "c")]


def test_a_child_with_several_objects_is_written_before_children_that_need_it(run):
    harness = ExecutorHarness()
    several = [Create(harness.key(f"a{number}"), "a", child(f"a{number}"), "digest") for number in range(3)]
    assert run(harness.execute(harness.create("b", needs=frozenset("a")), *several)).clean
    assert harness.server.log[-1] == ("create", "b")


def test_a_failed_write_skips_only_the_actions_that_need_it(run):
    harness = ExecutorHarness(child("old"))
    harness.server.answer_with("create", "a", Answer.INVALID)
    actions = [
        harness.create("a"),
        harness.create("b", needs=frozenset("a")),
        harness.create("c", needs=frozenset("b")),
        harness.create("d"),
        harness.delete("old"),
    ]
    outcomes = run(harness.execute(*actions))
    assert sorted(name for _, name in harness.server.requests("create")) == ["a", "d"]
    assert set(outcomes.failed) == {harness.key("a")}
    assert harness.live("old") is None, "it needs none of them"


@pytest.mark.parametrize("answer", [Answer.INVALID, Answer.CONFLICT, Answer.FORBIDDEN, Answer.TIMEOUT_AFTER])
def test_a_write_that_is_not_done_holds_only_the_deletions_back_that_need_it(run, answer):
    harness = ExecutorHarness(child("a"), child("old"), child("older"))
    harness.server.answer_with("patch", "a", answer)
    run(harness.execute(harness.patch(), harness.delete("old", needs=frozenset("a")), harness.delete("older")))
    assert harness.server.requests("delete") == [("delete", "older")]


def test_deletions_come_after_all_writes(run):
    harness = ExecutorHarness(child("old"), child("older"), child("b"))
    actions = [
        harness.delete("old"),
        harness.create("a"),
        harness.delete("older"),
        harness.patch("b", needs=frozenset("a")),
    ]
    assert run(harness.execute(*actions)).clean
    assert harness.server.requests(*WRITES)[:2] == [("create", "a"), ("patch", "b")]
    assert harness.live("old") is harness.live("older") is None


def test_a_deletion_for_recreation_does_not_wait(run):
    harness = ExecutorHarness(child("a"))
    action = harness.delete("a", why="recreate", after_writes=False)
    run(harness.execute(harness.create("b", needs=frozenset("a")), action, harness.create("c")))
    assert harness.server.ended.index(("delete", "a")) < harness.server.log.index(("create", "b")), (
        "what needs the child waits for that too"
    )


def test_a_failed_deletion_does_not_stop_other_deletions(run):
    harness = ExecutorHarness(child("a"), child("b"))
    harness.server.answer_with("delete", "a", Answer.FORBIDDEN)
    outcomes = run(harness.execute(*(harness.delete(name, why="finalized", after_writes=False) for name in "ab")))
    assert outcomes.deleted == {harness.key("b")}
    assert set(outcomes.failed) == {harness.key("a")}


def test_the_finalizer_is_added_before_actions_that_need_it(run):
    harness = ExecutorHarness()
    actions = [harness.create("a", needs=frozenset({""})), AddFinalizer(OWNER, OURS)]
    outcomes = run(harness.execute(*actions))
    assert outcomes.clean
    assert harness.server.log == [("patch", "web"), ("create", "a")]


def test_actions_that_need_the_finalizer_are_skipped_when_it_cannot_be_added(run):
    harness = ExecutorHarness()
    harness.server.answer_with("patch", "web", Answer.FORBIDDEN)
    outcomes = run(harness.execute(AddFinalizer(OWNER, OURS), harness.create("a", needs=frozenset({""}))))
    assert harness.live("a") is None
    assert outcomes.failed[harness.key("web", "App")].failure is Failure.FORBIDDEN
    assert not outcomes.replan, "five times at once would be forbidden five times"


def test_an_object_without_a_record_is_not_taken_for_the_finalizer(run):
    """It has no child, so its id is empty, like the need for ruleop's finalizer."""
    harness = ExecutorHarness(child("old"), child("stays"))
    actions = [
        AddFinalizer(OWNER, OURS),
        harness.create("a", needs=frozenset({""})),
        harness.delete("old", id_="", needs=frozenset({"", "a"})),
        harness.release("stays", id_="", needs=frozenset({"a", ""})),
    ]
    assert run(harness.execute(*actions)).clean
    assert harness.server.requests("patch", "create", "delete")[:2] == [("patch", "web"), ("create", "a")]
    assert harness.server.requests("delete")


def test_an_object_is_released_only_when_its_child_is_written(run):
    harness = ExecutorHarness(child("a"), child("stays"))
    harness.server.answer_with("patch", "a", Answer.INVALID)
    run(harness.execute(harness.release("stays", id_="a", needs=frozenset("a")), harness.patch()))
    harness.knows_what_is("stays")
    assert harness.stored("stays") is not None


def test_a_failed_release_does_not_stop_writes(run):
    harness = ExecutorHarness(child("a"), child("stays"))
    harness.server.answer_with("patch", "stays", Answer.FORBIDDEN)
    actions = [
        harness.patch("a"),
        harness.release("stays", id_="a", needs=frozenset("a")),
        harness.create("b", needs=frozenset("a")),
    ]
    run(harness.execute(*actions))
    assert harness.live("b") is not None


def test_the_finalizer_is_not_added_twice(run):
    harness, _, _ = harness_with_action("remove")
    run(harness.execute(AddFinalizer(OWNER, OURS)))
    assert harness.live("web", "App")["metadata"]["finalizers"] == ["somebody.else/has-one", OURS]


def test_the_finalizer_is_removed_last_and_after_a_live_read(run):
    harness, action, _ = harness_with_action("remove")
    outcomes = run(harness.execute(action, harness.delete("a"), harness.create("b")))
    assert outcomes.clean
    assert harness.server.log[-2:] == [("get", "web"), ("patch", "web")]


@pytest.mark.parametrize("answer", [Answer.FORBIDDEN, Answer.CONFLICT])
def test_the_finalizer_stays_while_an_action_failed(run, answer):
    harness, action, _ = harness_with_action("remove")
    harness.server.answer_with("delete", "a", answer)
    run(harness.execute(harness.delete("a", after_writes=False), action))
    assert OURS in harness.live("web", "App")["metadata"]["finalizers"]
    assert not harness.server.requests("patch")


def test_a_cr_that_changed_keeps_its_finalizer_until_it_is_planned_again(run):
    harness, action, _ = harness_with_action("remove")
    harness.server.edit(harness.key("web", "App"), spec={"x": 1})
    outcomes = run(harness.execute(action))
    assert outcomes.replan
    assert outcomes.resource == harness.live("web", "App")
    assert not harness.server.requests("patch")
    harness.knows_what_is("web", "App")


def test_a_cr_that_is_gone_has_no_finalizer_to_remove(run):
    harness, action, _ = harness_with_action("remove")
    harness.server.remove(OWNER)
    outcomes = run(harness.execute(action))
    assert outcomes.clean
    assert not harness.server.requests("patch")


def test_a_cr_that_is_gone_is_not_planned_again(run):
    harness = ExecutorHarness()
    harness.server.remove(OWNER)
    outcomes = run(harness.execute(AddFinalizer(OWNER, OURS), harness.create("a", needs=frozenset({""}))))
    assert not outcomes.replan
    assert not outcomes.clean
    assert harness.live("a") is None


def test_an_internal_error_of_one_action_lets_the_others_finish(run):
    harness = ExecutorHarness()

    held = harness.server.held["create", "b"] = asyncio.Event()

    def fail():
        asyncio.get_running_loop().call_later(0.02, held.set)
        raise ZeroDivisionError

    harness.server.before["create", "a"] = fail
    with pytest.raises(ZeroDivisionError):
        run(harness.execute(harness.create("a"), harness.create("b")))
    assert harness.live("b") is not None
    harness.knows_what_is("b")


def test_children_that_need_each_other_are_written_in_their_order(run):
    harness = ExecutorHarness()
    actions = [harness.create("a", needs=frozenset("b")), harness.create("b", needs=frozenset("a"))]
    assert run(harness.execute(*actions)).clean
    assert harness.server.log == [("create", "a"), ("create", "b")]


def test_a_rejected_secret_is_reported_without_its_value(run):
    """The API server quotes an invalid value in its message."""
    harness = ExecutorHarness()
    key = harness.key("a", "Secret")
    invalid = child("a", kind="Secret", stringData={"hunter2 ": "x"})
    outcomes = run(harness.execute(Create(key, "a", invalid, "digest")))
    failed = outcomes.failed[key]
    assert failed.message == failed.redacted == "create secrets shop/a: rejected by the API server (422 Invalid)"


# -- all at once -------------------------------------------------------------------------------------------------------

_IDS = "abcde"
_NEEDS = st.frozensets(st.sampled_from(_IDS))
_DELETED = st.dictionaries(st.sampled_from(["old", "older"]), _NEEDS).map(dict.items)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_order_and_ownership_hold_for_any_plan_and_any_responses(data):
    """Actions run after those that they need; deletions are last, after a live read; foreign objects stay; stores have
    the answers."""
    children = [child(name) for name in ("a", "b", "old", "older")]
    harness = ExecutorHarness(*children)
    harness.server.make(child("theirs", owner=None))
    theirs = copy.deepcopy(harness.live("theirs"))
    actions = []
    for place, name in enumerate(_IDS):
        if data.draw(st.booleans(), label=name):
            needs = frozenset(data.draw(st.sets(st.sampled_from(_IDS[:place] or "-")), label=f"needs of {name}")) - {
                "-"
            }
            kinds = ["patch", "apply"] if name in "ab" else ["create"]
            actions.append(getattr(harness, data.draw(st.sampled_from(kinds)))(name, needs=needs))
    actions += [harness.delete(name, id_="", needs=needs) for name, needs in data.draw(_DELETED, label="deleted")]
    actions = data.draw(st.permutations(actions))
    for verb, name in [
        ("create", "c"),
        ("create", "d"),
        ("patch", "a"),
        ("apply", "b"),
        ("delete", "old"),
        ("get", "old"),
        ("get", "c"),
    ]:
        if data.draw(st.booleans(), label=f"{verb} {name} fails"):
            harness.server.answer_with(verb, name, data.draw(st.sampled_from(list(Answer))))
    if data.draw(st.booleans(), label="somebody takes e"):
        harness.server.make(child("e", owner=None))
        theirs_too = copy.deepcopy(harness.live("e"))
    else:
        theirs_too = None

    outcomes = asyncio.run(harness.execute(*actions))

    log, ended = harness.server.log, harness.server.ended
    verbs = {Create: "create", Patch: "patch", ServerSideApply: "apply", Delete: "delete"}
    done = {action.key.name for action in outcomes.done}
    by_name = {action.key.name: action for action in actions}
    for name, action in by_name.items():
        asked = (verbs[type(action)], name)
        if asked not in log:
            assert not outcomes.clean or action in outcomes.gone, "nothing is skipped without a reason"
            continue
        for need in action.needs & by_name.keys():
            assert need in done, "what is needed was done"
            assert ended.index((verbs[type(by_name[need])], need)) < log.index(asked)
        if isinstance(action, Delete):
            assert log.index(("get", name)) < log.index(asked)
            writes = ((verbs[type(other)], other.key.name) for other in actions if not isinstance(other, Delete))
            assert all(ended.index(write) < log.index(asked) for write in writes if write in ended), (
                "deletions only after all writes"
            )
    assert harness.live("theirs") == theirs
    if theirs_too is not None:
        assert harness.live("e") == theirs_too
    for name in done:
        harness.knows_what_is(name)
    if outcomes.clean:
        assert done == by_name.keys()
