"""A plan that has used its time is ended at whatever instruction it is, and leaves what plans share as it was."""

from __future__ import annotations

import _weakrefset
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType, MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.core.errors import RuleopError
from ruleop.core.kinds import Kind, ObjectKey
from ruleop.core.merge import record
from ruleop.core.planning import Plan, Planning, SlowPlanError
from ruleop.core.planning import guard as module
from ruleop.core.planning.guard import GUARD, Overtime
from ruleop.core.planning.late_plans import FIRST
from ruleop.core.schema.openapi import ShapeBuilder
from ruleop.core.schema.shape import Shape
from ruleop.core.templating.values.cost import METER
from ruleop.operator.engine.queue.request import Result
from tests.engine.reconciler_harness import ReconcilerHarness
from tests.limits.shapes import CONFIG, FROM_FILE, created, template
from tests.planning.harness import Harness, as_bytes

TOO_LONG = "the plan takes more than a second of CPU time"


@pytest.fixture(autouse=True)
def _little_time(monkeypatch):
    monkeypatch.setattr(GUARD, "limit", 0.02)


@dataclass
class Timed:
    seconds: float = 0.0
    hasty: bool = False
    share: float = 1.0


def endless(*_: Any) -> Any:
    while True:
        pass


def is_deleting(frame: FrameType) -> bool:
    """Whether Python calls this because an object is deleted: it discards what is raised there (see `AGAIN`)."""
    return frame.f_code.co_filename in (weakref.__file__, _weakrefset.__file__)


def interrupted(work: Callable[[], Any], is_due: Callable[[FrameType], bool], *, is_late: bool = True) -> Any:
    """The result of the work, which the guard interrupts at the first instruction that is due."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode" and GUARD.running is not None and not is_deleting(frame) and is_due(frame):
            raise Overtime(frame, is_late=is_late)  # Python traces nothing after that
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work()
    finally:
        sys.settrace(before)


# -- the report --------------------------------------------------------------------------------------------------------


def test_a_plan_without_an_end_is_ended_and_names_the_line_of_the_template(monkeypatch):
    harness = Harness.of(
        FROM_FILE + "    status: {a: '{{ spec.a }}'}\n",
        {"a": "new"},
        **template("  a: '{{ has_kind('v1', 'Pod') }}'\n"),
    )
    assert harness.resource is not None
    harness.resource["status"] = {"a": "old"}
    info = harness.info
    monkeypatch.setattr(harness, "info", lambda kind: endless() if kind == Kind("", "v1", "Pod") else info(kind))
    planned = harness.plan()
    (problem,) = planned.problems
    assert (problem.child, problem.reason, str(problem.site)) == ("a", "RenderFailed", "templates/a.yaml:6")
    assert problem.message.startswith(
        f"{TOO_LONG} (in ruleop.core.planning.rendering.scope._has_kind); limit the values"
    )
    assert not planned.actions
    assert planned.conditions is not None
    assert planned.conditions.ready.reason == "RenderFailed"
    assert planned.status is not None
    assert planned.status.status["a"] == "old"


def test_a_plan_without_an_end_outside_of_templates_names_the_function():
    harness = Harness.of(FROM_FILE, **template("  a: b\n"))
    assert harness.resource is not None

    class Endless:
        children = get = select = endless

        def patched(self, _part_of):
            return ()

    planned = Planning(harness.rule, harness.resource, replace(harness.observed(), objects=Endless())).finish()
    assert [each.message.partition(";")[0] for each in planned.problems] == [
        f"{TOO_LONG} (in ruleop.core.planning.child.child_plan.find_existing)"
    ]


def test_a_filter_is_named_by_its_name():
    harness = Harness.of(FROM_FILE, {"a": "b"}, **template("  a: '{{ spec.a | regex_replace('b', 'c') }}'\n"))
    planned = interrupted(harness.plan, lambda frame: frame.f_code.co_name == "_compiled")
    assert [each.message.partition(";")[0] for each in planned.problems] == [
        f"{TOO_LONG} (in the filter regex_replace)"
    ]
    assert str(planned.problems[0].site) == "templates/a.yaml:6"


def test_a_loop_that_is_interrupted_between_two_items_is_named_by_its_line():
    loops = "  a: b\n{% for i in range(9) %}\n{% for j in range(9) %}\n{% endfor %}\n{% endfor %}\n"
    for function in ("loop", "run"):
        harness = Harness.of(FROM_FILE, **template(loops))
        planned = interrupted(harness.plan, lambda frame, function=function: frame.f_code.co_name == function)
        assert [each.message.partition(";")[0] for each in planned.problems] == [TOO_LONG]
        assert str(planned.problems[0].site) == "templates/a.yaml:7"


def test_a_report_that_takes_too_long_itself_is_an_error(monkeypatch):
    harness = Harness.of(FROM_FILE, **template("  a: b\n"))
    monkeypatch.setattr("ruleop.core.planning.planner.overall_conditions", endless)
    monkeypatch.setattr("ruleop.core.planning.planner.find_existing", endless)
    with pytest.raises(RuleopError, match=TOO_LONG):
        harness.plan()


async def test_the_operator_writes_the_condition_and_the_next_pass_is_an_ordinary_one(monkeypatch):
    harness = ReconcilerHarness(FROM_FILE, {"a": "b"}, **template("  a: '{{ spec.a }}'\n"))
    with monkeypatch.context() as patched:
        patched.setattr("ruleop.core.planning.planner.find_existing", endless)
        assert await harness.reconcile() == Result(requeue_after=FIRST, reason="its plan took too long")
    assert harness.condition()["reason"] == "RenderFailed"
    assert TOO_LONG in harness.condition()["message"]
    assert harness.server.requests("create") == []
    monkeypatch.setattr(GUARD, "limit", 100.0)
    harness.time += FIRST
    await harness.until_settled()
    assert harness.condition()["reason"] == "Ready"


# -- the time ----------------------------------------------------------------------------------------------------------


def test_the_time_of_a_plan_is_that_of_all_its_turns(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(GUARD, "limit", 1.0)
    harness = Harness.of(FROM_FILE, **template("  a: b\n"))
    assert harness.resource is not None
    planning = Planning(harness.rule, harness.resource, harness.observed())

    def turn() -> Plan | None:
        def is_time_up() -> bool:
            clock[0] += 0.4
            GUARD.check(0, None)
            return True

        return planning.run(is_time_up)

    assert (turn(), turn()) == (None, None)
    clock[0] += 100.0  # others work
    planned = turn()
    while planned is None:
        planned = planning.run(lambda: False)
    assert planned.problems[0].message.startswith(TOO_LONG)


def test_no_time_passes_for_what_is_not_a_plan(monkeypatch):
    monkeypatch.setattr(GUARD, "limit", -1.0)
    GUARD.check(0, None)


def test_a_plan_in_another_thread_is_not_watched(monkeypatch):
    """The handler would raise in the main thread."""
    monkeypatch.setattr(GUARD, "limit", -1.0)
    harness, planned = Harness.of(FROM_FILE, **template("  a: b\n")), []

    def plan() -> None:
        planned.append(interrupted(harness.plan, lambda _: True))

    thread = threading.Thread(target=plan)
    thread.start()
    thread.join()
    assert not planned[0].problems


def test_a_timer_runs_only_while_a_plan_runs(monkeypatch):
    """Each of its signals goes through the socket that those of SIGTERM go through, too."""
    harness, seen = Harness.of(FROM_FILE, **template("  a: b\n")), []

    def timer() -> bool:
        return signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0

    info = harness.info
    monkeypatch.setattr(GUARD, "limit", 100.0)
    monkeypatch.setattr(harness, "info", lambda kind: seen.append(timer()) or info(kind))
    assert harness.resource is not None
    planning = Planning(harness.rule, harness.resource, harness.observed())
    seen.clear()
    assert not timer()
    planning.finish()
    assert seen
    assert all(seen)
    assert not timer()


def test_a_timer_is_set_again_only_by_its_handler(monkeypatch):
    """However long a plan runs, and however few instructions it has, its signals do not pile up."""
    made = []
    monkeypatch.setattr(module.signal, "setitimer", lambda *args: made.append(args))
    harness = Harness.of(FROM_FILE, **template("  a: b\n"))
    harness.plan()
    assert [len(each) for each in made] == [2, 2]  # no interval


def test_a_plan_of_several_turns_leaves_no_timer_between_them(monkeypatch):
    harness = Harness.of(FROM_FILE, **template("  a: b\n"))
    assert harness.resource is not None
    planning = Planning(harness.rule, harness.resource, harness.observed())
    while planning.run(lambda: True) is None:
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


# -- plans that are hasty ----------------------------------------------------------------------------------------------


def hasty(harness: Harness) -> Planning:
    assert harness.resource is not None
    return Planning(harness.rule, harness.resource, harness.observed(), hasty=True)


def test_a_hasty_plan_is_given_up_long_before_its_time_is_up(monkeypatch):
    monkeypatch.setattr(GUARD, "limit", 100.0)
    monkeypatch.setattr(GUARD, "patience", 0.001)
    harness = Harness.of(FROM_FILE, **template("  a: b\n"))
    with monkeypatch.context() as patched:
        patched.setattr("ruleop.core.planning.planner.find_existing", endless)
        with pytest.raises(SlowPlanError):
            hasty(harness).finish()
    assert GUARD.running is None
    assert not harness.plan().problems


@pytest.fixture
def no_collections(monkeypatch):
    """A full collection would give a plan more time."""
    monkeypatch.setattr(module.gc, "get_stats", lambda: [{}, {}, {"collections": 0}])
    monkeypatch.setattr(GUARD, "_collections", 0)


@pytest.mark.usefixtures("no_collections")
def test_a_hasty_plan_may_use_its_patience_in_each_turn(monkeypatch):
    """It has been divided, so nobody has waited for it. In later turns it may take longer."""
    clock = [0.0]
    monkeypatch.setattr(module.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(GUARD, "limit", 100.0)
    monkeypatch.setattr(GUARD, "patience", 1.0)
    planning = hasty(Harness.of(FROM_FILE, **template("  a: b\n")))

    def turn(seconds: float) -> Plan | None:
        def is_time_up() -> bool:
            clock[0] += seconds
            GUARD.check(0, None)
            return True

        return planning.run(is_time_up)

    assert turn(0.9) is None
    assert turn(module.LATER - 0.1) is None
    with pytest.raises(SlowPlanError):
        turn(module.LATER + 0.1)


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize(("turns", "least"), [(0, 0.25), (1, 0.25 * module.LATER)])
def test_a_hasty_plan_has_its_share_of_the_patience(monkeypatch, turns, least):
    clock, steps = [0.0], [0.001] * turns
    monkeypatch.setattr(module.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(GUARD, "limit", 100.0)
    monkeypatch.setattr(GUARD, "patience", 1.0)
    planning = hasty(Harness.of(FROM_FILE, **template("  a: b\n")))
    planning.share = 0.25

    def use(seconds: float) -> bool:
        clock[0] += seconds
        GUARD.check(0, None)
        return True

    for seconds in steps:
        assert planning.run(lambda seconds=seconds: use(seconds)) is None
    assert planning.run(lambda: use(least * 0.9)) is None
    planning = hasty(Harness.of(FROM_FILE, **template("  a: b\n")))
    planning.share = 0.25
    for seconds in steps:
        assert planning.run(lambda seconds=seconds: use(seconds)) is None
    with pytest.raises(SlowPlanError):
        planning.run(lambda: use(least * 1.1))


def test_a_full_collection_does_not_use_the_patience_of_a_plan(monkeypatch):
    """It traverses all objects of the process, and most begin in a plan, because plans make most objects."""
    clock, collections = [0.0], [0]
    monkeypatch.setattr(module.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(module.gc, "get_stats", lambda: [{}, {}, {"collections": collections[0]}])
    monkeypatch.setattr(GUARD, "_collections", 0)
    monkeypatch.setattr(GUARD, "limit", 100.0)
    monkeypatch.setattr(GUARD, "patience", 1.0)
    planning = hasty(Harness.of(FROM_FILE, **template("  a: b\n")))

    def is_time_up() -> bool:
        clock[0] += 1.5
        GUARD.check(0, None)
        return True

    collections[0] += 1
    assert planning.run(is_time_up) is None
    planning = hasty(Harness.of(FROM_FILE, **template("  a: b\n")))
    with pytest.raises(SlowPlanError):
        planning.run(is_time_up)


def test_a_plan_that_is_given_up_leaves_what_plans_share_as_it_was():
    GUARD.limit = 100.0  # the fixture resets it; here only the trace interrupts
    harness = rich(WARM.objects)
    for at in range(0, 60_000, 3_000):
        left = iter(range(at))
        planning = Planning(harness.rule, harness.resource, harness.observed(), hasty=True)  # type: ignore[arg-type]
        with suppress(SlowPlanError):
            interrupted(planning.finish, lambda _, left=left: next(left, None) is None, is_late=False)
        assert state(harness) == STATE
    assert as_bytes(harness.plan()) == EXPECTED


# -- what plans share --------------------------------------------------------------------------------------------------

RULE = """
observe:
  seen: {version: v1, kind: ConfigMap, selector: {seen: "yes"}}
let:
  both: "{{ [spec.a, spec.b] | map('upper') | list }}"
validate:
  - {rule: "{{ spec.a != spec.b }}", message: "{{ spec.a }} twice"}
children:
  each:
    forEach: "{{ spec['items'] }}"
    template: a.yaml
  token:
    template: secret.yaml
  b:
    dependsOn: [each]
    when: "{{ spec.a }}"
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: b}
      data: {token: "{{ token.data.a }}", both: "{{ both | join(',') }}", seen: "{{ seen | length }}"}
status:
  count: "{{ each | length }}"
conditions:
  - {type: Full, status: "{{ each | length > 1 }}", message: "{{ spec.a }}"}
"""
FILES = {
    "a": "{% from 'macros.yaml' import twice %}"
    + CONFIG.lstrip().replace("name: a", "name: a-{{ index }}")
    + "  a: '{{ twice(item) }}{{ render('inner.yaml') }}'\n  {% include 'part.yaml' %}\n  {{ spec.map }}\n",
    "macros": "{% macro twice(x) %}{{ x }}{{ x | regex_replace('i', 'j') }}{% endmacro %}",
    "inner": "{{ spec.b | to_yaml }}",
    "part": "{% for x in range(3) %}\n  k{{ x }}: '{{ x }}'\n  {% endfor %}",
    "secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: '{{ spec.b }}'}\n",
}
SPEC = {"a": "x", "b": "y", "items": ["i", "j"], "map": {"m": "n"}}
LONGEST = 100_000  # a plan of the rule has 72,000 instructions, or 92,000 if the caches are empty


def rich(objects: Mapping[ObjectKey, dict[str, Any]] = MappingProxyType({})) -> Harness:
    """A rule that uses most of the language, with caches that are empty."""
    record._RECORDS = record._Records()
    harness = Harness.of(RULE, SPEC, **FILES)
    harness.objects |= objects
    return harness


def state(harness: Harness) -> tuple[Any, ...]:
    """The state of evaluations, and whether the size of a cache is that of its contents."""
    state = harness.rule.children["each"].body.templates.state
    return (
        GUARD.running,
        METER.is_in_plan,
        state.depth,
        state.renders,
        state.hide,
        state.sites,
        state.lenient,
        record._RECORDS.length < sum(map(len, record._RECORDS.known)),
    )


WARM = rich()
created(WARM)
next(iter(WARM.objects.values()))["data"]["a"] = "drifted"
EXPECTED, STATE = as_bytes(WARM.plan()), (None, False, 0, 0, None, None, False, False)


@given(at=st.integers(0, LONGEST), warm=st.booleans())
def test_a_plan_after_one_that_was_interrupted_is_the_same(at, warm):
    GUARD.limit = 100.0  # the fixture resets it; here only the trace interrupts
    harness = WARM if warm else rich(WARM.objects)
    left = iter(range(at))
    planned = interrupted(harness.plan, lambda _: next(left, None) is None)
    if next(left, None) is None:
        assert [each.reason for each in planned.problems] == ["RenderFailed"]
        assert planned.problems[0].message.startswith(TOO_LONG)
    assert state(harness) == STATE
    assert as_bytes(harness.plan()) == EXPECTED
    assert state(harness) == STATE


TYPES: dict[str, Any] = {
    name: {"type": "object", "properties": {other: {"$ref": other} for other in ("one", "two", "three")}}
    for name in ("one", "two", "three")
}


def form(shape: Shape, within: tuple[str, ...] = ()) -> Any:
    """A shape that contains itself, as far as its first repetition."""
    return (
        shape.name
        if shape.name in within
        else {key: form(each, (*within, shape.name)) for key, each in shape.fields.items()}
    )


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised where Hypothesis times the gc
@given(at=st.integers(0, 2500))
def test_the_shapes_of_types_are_whole_after_one_was_interrupted(at):
    left, builder = iter(range(at)), ShapeBuilder(TYPES)
    GUARD.running = Timed()
    try:
        with suppress(Overtime):
            interrupted(lambda: builder.named("one"), lambda _: next(left, None) is None)
    finally:
        GUARD.running = None
    assert not builder._is_builtin
    assert form(builder.named("one")) == form(ShapeBuilder(TYPES).named("one"))
