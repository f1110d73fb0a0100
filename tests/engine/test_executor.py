"""How a plan is carried out, whatever the server answers."""

from __future__ import annotations

import asyncio
import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.engine.classify import classify
from ruleop.engine.executor import AT_ONCE, Executor, Outcomes
from ruleop.kinds import ObjectKey
from ruleop.kube.client import CONCURRENCY
from ruleop.kube.errors import ApiError, Problem
from ruleop.planning import AddFinalizer, Create, Delete, Failure, Owner, Patch, RemoveFinalizer, Replace, ServerSideApply
from ruleop.planning.marks import OWNER, PART_OF
from tests.engine.server import APP, APPLIED_ALL_THE_SAME, Answer, Server, Shelves, child, patch_of

OURS = "ruleop.dev/ruleop"
WRITES = ("create", "patch", "update", "apply", "delete")


class Stage:
    """The App, its children on the server and in the stores, and an executor between the two."""

    def __init__(self, *children):
        self.server = Server(APP, *children)
        self.stores = Shelves(*copy.deepcopy(list(self.server.objects.values())))
        self.executor = Executor(self.server, self.stores, classify)
        self.app = self.stored("web", "App")

    def key(self, name, kind="ConfigMap"):
        return ObjectKey("example.com" if kind == "App" else "", kind, "shop", name)

    def stored(self, name, kind="ConfigMap"):
        return self.stores.objects.get(self.key(name, kind))

    def live(self, name, kind="ConfigMap"):
        return self.server.objects.get(self.key(name, kind))

    def knows_what_is(self, name, kind="ConfigMap"):
        assert self.stored(name, kind) == self.live(name, kind)

    async def execute(self, *actions) -> Outcomes:
        return await self.executor.execute(actions, self.app)

    # One action of each kind, on the object "a".

    def create(self, name="a", **more):
        return Create(self.key(name), name, child(name, data={"x": "new"}), "digest", **more)

    def patch(self, name="a", **more):
        live = self.stored(name)
        wanted = {**live, "data": {"x": "new"}}
        return Patch(self.key(name), name, patch_of(live, wanted), live, wanted, "digest", sent=child(name, data={"x": "new"}), **more)

    def release(self, name="a", id_=None, **more):
        live = self.stored(name)
        metadata = {key: value for key, value in live["metadata"].items() if key not in {"labels", "ownerReferences"}}
        wanted = {**live, "metadata": metadata}
        return Patch(self.key(name), name if id_ is None else id_, patch_of(live, wanted), live, wanted, "", "released", **more)

    def replace(self, name="a", **more):
        live = self.stored(name)
        return Replace(self.key(name), name, {**live, "data": {"x": "new"}}, live, "digest", **more)

    def apply(self, name="a", **more):
        live = self.stored(name)
        body = child(name, data={"x": "new"})
        body["metadata"]["uid"] = live["metadata"]["uid"]
        return ServerSideApply(self.key(name), name, body, live, "digest", migrate=True, **more)

    def delete(self, name="a", id_=None, **more):
        return Delete(self.key(name), name if id_ is None else id_, self.stored(name), more.pop("why", "pruned"), **more)


def on_stage(kind):
    """A stage and one action of the kind, with the verb and the name that it comes down to."""
    stage = Stage() if kind == "create" else Stage(child("a", data={"x": "old"}))
    if kind == "add":
        return stage, AddFinalizer(OURS), ("patch", "web")
    if kind == "remove":
        stage.app = stage.server.edit(
            stage.key("web", "App"), metadata={**stage.app["metadata"], "finalizers": ["somebody.else/has-one", OURS]}
        )
        stage.stores.put(stage.app)
        return stage, RemoveFinalizer(OURS), ("patch", "web")
    verb = {"replace": "update"}.get(kind, kind)
    return stage, getattr(stage, kind)(), (verb, "a")


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
    return {Answer.INVALID: Failure.INVALID, Answer.IMMUTABLE: Failure.IMMUTABLE, Answer.FORBIDDEN: Failure.FORBIDDEN}.get(
        answer, Failure.OTHER
    )


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


def test_the_longest_wait_that_was_asked_for_counts(run):
    stage = Stage()

    class Patient:
        def __call__(self, error):
            return Failure.OTHER, {"create ConfigMap/shop/a": 7.0, "create ConfigMap/shop/b": 5.0}.get(f"{error.verb} {error.resource}")

    executor = Executor(stage.server, stage.stores, Patient())
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
    assert outcomes.foreign[stage.key("a")] == stage.live("a")


def test_a_name_taken_by_a_foreign_object_is_read_and_not_written(run):
    stage = Stage()
    stage.server.make(child("a", owner=None, data={"x": "theirs"}))
    outcomes = run(stage.execute(stage.create()))
    assert outcomes.replan
    assert outcomes.foreign == {stage.key("a"): stage.live("a")}
    assert stage.stored("a") is None
    assert stage.server.log == [("create", "a"), ("get", "a")]


def test_a_name_taken_by_ourselves_is_no_failure(run):
    stage = Stage()
    stage.server.make(child("a"))
    outcomes = run(stage.execute(stage.create()))
    assert outcomes.replan
    assert not outcomes.foreign
    stage.knows_what_is("a")


def test_an_object_that_went_meanwhile_leaves_the_store(run):
    stage = Stage(child("a"))
    stage.server.before["patch", "a"] = lambda: stage.server.objects.pop(stage.key("a"))
    outcomes = run(stage.execute(stage.patch()))
    assert outcomes.replan
    assert stage.stored("a") is None
    assert not outcomes.foreign


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


# -- order -------------------------------------------------------------------------------------------------------------------------------


def test_independent_creates_are_under_way_together(run):
    stage = Stage()
    together = asyncio.Barrier(3)
    for name in "abc":
        stage.server.held["create", name] = together
    assert run(stage.execute(*(stage.create(name) for name in "abc"))).clean


def test_one_cr_does_not_take_all_of_the_line(run):
    stage = Stage()
    outcomes = run(stage.execute(*(stage.create(f"c{number}") for number in range(5 * AT_ONCE))))
    assert outcomes.clean
    assert stage.server.most == AT_ONCE < CONCURRENCY
    assert len(stage.server.objects) == 5 * AT_ONCE + 1


def test_what_needs_a_write_comes_after_it(run):
    stage = Stage()
    actions = [stage.create("c", needs=frozenset("b")), stage.create("b", needs=frozenset("a")), stage.create("a"), stage.create("d")]
    assert run(stage.execute(*actions)).clean
    log = stage.server.log
    assert set(log[:2]) == {("create", "a"), ("create", "d")}
    assert log[2:] == [("create", "b"), ("create", "c")]


def test_a_child_with_several_objects_is_written_before_what_needs_it(run):
    stage = Stage()
    several = [Create(stage.key(f"a{number}"), "a", child(f"a{number}"), "digest") for number in range(3)]
    assert run(stage.execute(stage.create("b", needs=frozenset("a")), *several)).clean
    assert stage.server.log[-1] == ("create", "b")


def test_a_write_that_failed_skips_those_that_need_it_and_no_others(run):
    stage = Stage(child("old"))
    stage.server.say("create", "a", Answer.INVALID)
    actions = [
        stage.create("a"),
        stage.create("b", needs=frozenset("a")),
        stage.create("c", needs=frozenset("b")),
        stage.create("d"),
        stage.delete("old"),
    ]
    outcomes = run(stage.execute(*actions))
    assert sorted(name for _, name in stage.server.requests("create")) == ["a", "d"]
    assert set(outcomes.failed) == {stage.key("a")}
    assert stage.live("old") is not None, "nothing is pruned in a pass with an error"
    assert not stage.server.requests("get", "delete")


@pytest.mark.parametrize("answer", [Answer.CONFLICT, Answer.FORBIDDEN, Answer.TIMEOUT_AFTER])
def test_a_write_that_is_to_be_planned_again_holds_deletions_back(run, answer):
    stage = Stage(child("a"), child("old"))
    stage.server.say("patch", "a", answer)
    run(stage.execute(stage.patch(), stage.delete("old")))
    assert not stage.server.requests("delete")


def test_deletions_come_after_all_writes(run):
    stage = Stage(child("old"), child("older"), child("b"))
    actions = [stage.delete("old"), stage.create("a"), stage.delete("older"), stage.patch("b", needs=frozenset("a"))]
    assert run(stage.execute(*actions)).clean
    assert stage.server.requests(*WRITES)[:2] == [("create", "a"), ("patch", "b")]
    assert stage.live("old") is stage.live("older") is None


def test_a_deletion_that_makes_room_does_not_wait(run):
    stage = Stage(child("a"))
    action = stage.delete("a", why="recreate", after_writes=False)
    run(stage.execute(stage.create("b", needs=frozenset("a")), action, stage.create("c")))
    assert stage.server.ended.index(("delete", "a")) < stage.server.log.index(("create", "b")), "what needs the child waits for that too"


def test_a_deletion_that_failed_keeps_nobody_from_deleting_what_else_is_to_go(run):
    stage = Stage(child("a"), child("b"))
    stage.server.say("delete", "a", Answer.FORBIDDEN)
    outcomes = run(stage.execute(*(stage.delete(name, why="finalized", after_writes=False) for name in "ab")))
    assert outcomes.deleted == {stage.key("b")}
    assert set(outcomes.failed) == {stage.key("a")}


def test_the_finalizer_is_there_before_what_needs_it(run):
    stage = Stage()
    actions = [stage.create("a", needs=frozenset({""})), AddFinalizer(OURS)]
    outcomes = run(stage.execute(*actions))
    assert outcomes.clean
    assert stage.server.log == [("patch", "web"), ("create", "a")]


def test_without_the_finalizer_nothing_is_made_that_needs_it(run):
    stage = Stage()
    stage.server.say("patch", "web", Answer.FORBIDDEN)
    outcomes = run(stage.execute(AddFinalizer(OURS), stage.create("a", needs=frozenset({""}))))
    assert stage.live("a") is None
    assert outcomes.failed[stage.key("web", "App")].failure is Failure.FORBIDDEN
    assert not outcomes.replan, "five times at once would be forbidden five times"


def test_an_object_without_a_record_is_not_taken_for_the_finalizer(run):
    """It belongs to no child, so its id is empty, as is what an action needs that needs our finalizer."""
    stage = Stage(child("old"), child("stays"))
    actions = [
        AddFinalizer(OURS),
        stage.create("a", needs=frozenset({""})),
        stage.delete("old", id_="", needs=frozenset({"", "a"})),
        stage.release("stays", id_="", needs=frozenset({"a", ""})),
    ]
    assert run(stage.execute(*actions)).clean
    assert stage.server.requests("patch", "create", "delete")[:2] == [("patch", "web"), ("create", "a")]
    assert stage.server.requests("delete")


def test_an_object_is_released_only_when_its_child_is_written(run):
    stage = Stage(child("a"), child("stays"))
    stage.server.say("patch", "a", Answer.INVALID)
    run(stage.execute(stage.release("stays", id_="a", needs=frozenset("a")), stage.patch()))
    stage.knows_what_is("stays")
    assert stage.stored("stays") is not None


def test_a_release_that_failed_keeps_nobody_from_being_written(run):
    stage = Stage(child("a"), child("stays"))
    stage.server.say("patch", "stays", Answer.FORBIDDEN)
    actions = [stage.patch("a"), stage.release("stays", id_="a", needs=frozenset("a")), stage.create("b", needs=frozenset("a"))]
    run(stage.execute(*actions))
    assert stage.live("b") is not None


def test_the_finalizer_is_not_added_twice(run):
    stage, _, _ = on_stage("remove")
    run(stage.execute(AddFinalizer(OURS)))
    assert stage.live("web", "App")["metadata"]["finalizers"] == ["somebody.else/has-one", OURS]


def test_our_finalizer_goes_last_and_after_a_live_read(run):
    stage, action, _ = on_stage("remove")
    outcomes = run(stage.execute(action, stage.delete("a"), stage.create("b")))
    assert outcomes.clean
    assert stage.server.log[-2:] == [("get", "web"), ("patch", "web")]


@pytest.mark.parametrize("answer", [Answer.FORBIDDEN, Answer.CONFLICT])
def test_our_finalizer_stays_while_anything_is_left(run, answer):
    stage, action, _ = on_stage("remove")
    stage.server.say("delete", "a", answer)
    run(stage.execute(stage.delete("a", after_writes=False), action))
    assert OURS in stage.live("web", "App")["metadata"]["finalizers"]
    assert not stage.server.requests("patch")


def test_a_cr_that_changed_keeps_its_finalizer_until_it_is_planned_again(run):
    stage, action, _ = on_stage("remove")
    stage.server.edit(stage.key("web", "App"), spec={"x": 1})
    outcomes = run(stage.execute(action))
    assert outcomes.replan
    assert outcomes.resource == stage.live("web", "App")
    assert not stage.server.requests("patch")
    stage.knows_what_is("web", "App")


def test_a_cr_that_is_gone_has_no_finalizer_to_remove(run):
    stage, action, _ = on_stage("remove")
    del stage.server.objects[stage.key("web", "App")]
    outcomes = run(stage.execute(action))
    assert outcomes.clean
    assert not stage.server.requests("patch")


def test_a_cr_that_is_gone_is_not_planned_again(run):
    stage = Stage()
    del stage.server.objects[stage.key("web", "App")]
    outcomes = run(stage.execute(AddFinalizer(OURS), stage.create("a", needs=frozenset({""}))))
    assert not outcomes.replan
    assert not outcomes.clean
    assert stage.live("a") is None


def test_an_unknown_fault_of_one_action_lets_the_others_end(run):
    stage = Stage()

    held = stage.server.held["create", "b"] = asyncio.Event()
    create = stage.server.create

    async def sometimes(obj):
        if obj["metadata"]["name"] == "a":
            asyncio.get_running_loop().call_soon(held.set)
            raise ZeroDivisionError
        return await create(obj)

    stage.server.create = sometimes
    with pytest.raises(ZeroDivisionError):
        run(stage.execute(stage.create("a"), stage.create("b")))
    assert stage.live("b") is not None
    stage.knows_what_is("b")


def test_children_that_need_each_other_are_written_in_their_order(run):
    stage = Stage()
    actions = [stage.create("a", needs=frozenset("b")), stage.create("b", needs=frozenset("a"))]
    assert run(stage.execute(*actions)).clean
    assert stage.server.log == [("create", "a"), ("create", "b")]


def test_a_secret_is_refused_without_its_value(run):
    stage = Stage()

    async def refuse(obj):
        raise ApiError(
            Problem.FORBIDDEN, verb="create", resource="secrets shop/a", text="a webhook denies hunter2", status=403, reason="Forbidden"
        )

    stage.server.create = refuse
    outcomes = run(stage.execute(stage.create()))
    assert outcomes.failed[stage.key("a")].message == "create secrets shop/a: 403 Forbidden"


# -- all at once -------------------------------------------------------------------------------------------------------------------------

_IDS = "abcde"


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_happens_order_and_ownership_hold(data):
    """Any plan, any answers: needs are met before they count, deletions are last and read first, nothing foreign is touched, stores follow."""
    children = [child(name) for name in ("a", "b", "old", "older")]
    stage = Stage(*children)
    stage.server.make(child("theirs", owner=None))
    theirs = copy.deepcopy(stage.live("theirs"))
    actions = []
    for place, name in enumerate(_IDS):
        if data.draw(st.booleans(), label=name):
            needs = frozenset(data.draw(st.sets(st.sampled_from(_IDS[:place] or "-")), label=f"needs of {name}")) - {"-"}
            kinds = ["patch", "replace", "apply"] if name in "ab" else ["create"]
            actions.append(getattr(stage, data.draw(st.sampled_from(kinds)))(name, needs=needs))
    actions += [stage.delete(name, id_="") for name in ("old", "older") if data.draw(st.booleans(), label=name)]
    actions = data.draw(st.permutations(actions))
    for verb, name in [("create", "c"), ("create", "d"), ("patch", "a"), ("update", "b"), ("delete", "old"), ("get", "old"), ("get", "c")]:
        if data.draw(st.booleans(), label=f"{verb} {name} fails"):
            stage.server.say(verb, name, data.draw(st.sampled_from(list(Answer))))
    if data.draw(st.booleans(), label="somebody takes e"):
        stage.server.make(child("e", owner=None))
        theirs_too = copy.deepcopy(stage.live("e"))
    else:
        theirs_too = None

    outcomes = asyncio.run(stage.execute(*actions))

    log, ended = stage.server.log, stage.server.ended
    verbs = {Create: "create", Patch: "patch", Replace: "update", ServerSideApply: "apply", Delete: "delete"}
    done = {action.key.name for action in outcomes.done}
    by_name = {action.key.name: action for action in actions}
    for name, action in by_name.items():
        asked = (verbs[type(action)], name)
        if asked not in log:
            assert not outcomes.clean, "nothing is skipped without a reason"
            continue
        for need in action.needs & by_name.keys():
            assert need in done, "what is needed was done"
            assert ended.index((verbs[type(by_name[need])], need)) < log.index(asked)
        if isinstance(action, Delete):
            assert log.index(("get", name)) < log.index(asked)
            assert all(isinstance(other, Delete) or other.key.name in done for other in actions), "deletions only where all is written"
    assert stage.live("theirs") == theirs
    if theirs_too is not None:
        assert stage.live("e") == theirs_too
    for name in done:
        stage.knows_what_is(name)
    if outcomes.clean:
        assert done == by_name.keys()
