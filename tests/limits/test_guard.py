"""A plan that has used its time is ended at whatever instruction it is, and leaves what plans share as it was."""

from __future__ import annotations

import _weakrefset
import functools
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import FrameType, MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.kubernetes.merge import record
from ruleop.kubernetes.schema.shape import Shape, ShapeBuilder
from ruleop.language.templates.values.cost import METER
from ruleop.planning import Plan, plan
from ruleop.planning import guard as module
from ruleop.planning.guard import GUARD, Ended, Overtime, PlanThread, TooSlow
from tests.limits.guarded import in_thread
from tests.limits.shapes import CONFIG, FROM_FILE, SHAPES, created, template
from tests.limits.shapes import Shape as ExpensivePass
from tests.planning.harness import Harness, as_bytes
from tests.waiting import PATIENCE, eventually

# Python discards an interruption where it deletes an object, and in a callback of the garbage collector, which
# Hypothesis has: it is raised again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

TOO_LONG = "the plan takes more than a second of CPU time"


LITTLE = 0.02


def endless(*_: Any) -> Any:
    while True:
        pass


def is_never_interrupted(frame: FrameType) -> bool:
    """Whether Python calls this because an object is deleted: it discards what is raised there (see `AGAIN`). Or it is
    a function of functools: `cached_property` of Python 3.11 ends a `with` of a lock, at which Python itself never
    interrupts a thread, and a lock that is held for ever would stop the tests that follow."""
    return frame.f_code.co_filename in (weakref.__file__, _weakrefset.__file__, functools.__file__)


def interrupted(
    work: Callable[[], Any],
    is_due: Callable[[FrameType], bool],
    ended: type[Ended] = Overtime,
    *,
    anywhere: bool = False,
) -> Any:
    """The result of the work, in which this is raised at the first instruction of a plan that is due. `anywhere`: not
    only in a plan."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        if (
            event in ("line", "opcode")
            and (anywhere or METER.is_in_plan)
            and not is_never_interrupted(frame)
            and is_due(frame)
        ):
            raise ended  # Python traces nothing after that
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
    planned = in_thread(harness.plan, LITTLE)
    (problem,) = planned.problems
    assert (problem.child, problem.reason, str(problem.site)) == ("a", "RenderFailed", "templates/a.yaml:6")
    assert problem.message.startswith(f"{TOO_LONG} (in ruleop.planning.rendering.scope._has_kind); limit the values")
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

    observed = replace(harness.observed(), objects=Endless())
    planned = in_thread(lambda: plan(harness.rule, harness.resource, observed), LITTLE)
    assert [each.message.partition(";")[0] for each in planned.problems] == [
        f"{TOO_LONG} (in ruleop.planning.model.observed.children)"
    ]


def test_a_filter_is_named_by_its_name():
    harness = Harness.of(
        FROM_FILE, {"a": "b"}, **template("  a: '{{ spec.a | regex_replace('b|here alone', 'c') }}'\n")
    )
    # No other test has compiled this pattern.
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
    monkeypatch.setattr("ruleop.planning.planner.overall_conditions", endless)
    monkeypatch.setattr("ruleop.planning.planner.find_existing", endless)
    monkeypatch.setattr(module, "AGAIN", 0.02)
    monkeypatch.setattr("tests.limits.guarded.AGAIN", 0.02)
    with pytest.raises(Overtime):
        in_thread(harness.plan, LITTLE)


KINDS_OF_WORK = {
    "a double loop": "templates/a.yaml",
    "regex_replace with the resource's replacement": "templates/a.yaml",
    "5,000 Deployments": "",
    "deep mappings in a child that the resource changes": "",
    "5 Deployments that others have filled and changed": "",
}


def ended(shape: ExpensivePass) -> Plan:
    """A plan of this shape that was ended. One whose interruption Python has discarded may be done before the next."""
    while True:
        planned = in_thread(shape.prepared().run, LITTLE / 2)
        if planned.problems:
            return planned


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS_OF_WORK)
def test_a_plan_is_ended_whatever_it_does_and_others_are_as_before(name):
    (shape,) = (each for each in SHAPES if each.name == name)
    planned = ended(shape)
    assert [each.reason for each in planned.problems] == ["RenderFailed"]
    assert planned.problems[0].message.startswith(TOO_LONG)
    assert str(planned.problems[0].site or "").startswith(KINDS_OF_WORK[name])
    assert not planned.actions
    assert as_bytes(WARM.plan()) == EXPECTED
    assert state(WARM) == STATE


# -- a plan in a thread ------------------------------------------------------------------------------------------------


@given(at=st.integers(0, 400))
def test_a_thread_that_is_ended_at_any_moment_of_short_work_still_reports_its_end(at: int) -> None:
    """Before the work begins, in it, after it, and while it reports to its owner. Then the thread ends."""
    reports: list[bool] = []
    left = iter(range(at))
    thread = PlanThread(lambda: sum(range(10)), lambda: reports.append(True))

    def run() -> None:
        def is_due(_: FrameType) -> bool:
            return thread._is_begun and not thread._is_released and next(left, None) is None

        interrupted(thread._run, is_due, anywhere=True)

    thread._thread = threading.Thread(target=run, daemon=True)
    thread.start()
    eventually("its report", lambda: reports)
    thread.release()
    eventually("its end", lambda: not thread._thread.is_alive())
    assert thread.result in {None, (45,)}


def test_nothing_is_raised_in_a_thread_that_was_released() -> None:
    done = threading.Event()
    thread = PlanThread(lambda: 1, done.set)
    thread.start()
    assert done.wait(PATIENCE)
    thread.release()
    eventually("its end", lambda: not thread._thread.is_alive())
    assert thread.result == (1,)


def test_the_time_of_a_thread_is_its_own() -> None:
    """Whatever other threads do meanwhile."""
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        end.wait(PATIENCE)

    done = threading.Event()
    thread = PlanThread(work, done.set)
    thread.start()
    assert begun.wait(PATIENCE)
    start = time.thread_time()
    while time.thread_time() < start + 0.05:
        pass
    assert thread.seconds < 0.05
    end.set()
    assert done.wait(PATIENCE)
    assert thread.seconds < 0.05
    thread.release()


# -- a plan on the loop ------------------------------------------------------------------------------------------------


@pytest.fixture
def no_collections(monkeypatch):
    """A full collection would give a plan more time."""
    monkeypatch.setattr(module.gc, "get_stats", lambda: [{}, {}, {"collections": 0}])
    monkeypatch.setattr(GUARD, "_collections", 0)


def test_work_on_the_loop_is_ended_when_it_has_used_its_time():
    with pytest.raises(TooSlow):
        GUARD.within(0.001, endless)
    assert not GUARD.is_running
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_no_time_passes_for_what_is_not_a_plan(monkeypatch):
    monkeypatch.setattr(GUARD, "_ends", -1.0)
    GUARD.check(0, None)


@pytest.mark.usefixtures("no_collections")
def test_work_has_the_time_that_it_was_given(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "thread_time", lambda: clock[0])

    def work(seconds: float) -> int:
        clock[0] += seconds
        GUARD.check(0, None)
        return 1

    assert GUARD.within(1.0, lambda: work(0.9)) == 1
    with pytest.raises(TooSlow):
        GUARD.within(1.0, lambda: work(1.0))


def test_a_full_collection_does_not_use_the_patience_of_a_plan(monkeypatch):
    """It traverses all objects of the process, and most begin in a plan, because plans make most objects."""
    clock, collections = [0.0], [0]
    monkeypatch.setattr(module.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(module.gc, "get_stats", lambda: [{}, {}, {"collections": collections[0]}])
    monkeypatch.setattr(GUARD, "_collections", 0)

    def work() -> int:
        clock[0] += 1.5
        GUARD.check(0, None)
        return 1

    collections[0] += 1
    assert GUARD.within(1.0, work) == 1
    with pytest.raises(TooSlow):
        GUARD.within(1.0, work)


def test_work_in_another_thread_is_not_watched(monkeypatch):
    """The handler would raise in the main thread."""
    made: list[Any] = []
    monkeypatch.setattr(module.signal, "setitimer", lambda *args: made.append(args))
    thread = threading.Thread(target=lambda: GUARD.within(0.001, lambda: made.append(1)))
    thread.start()
    thread.join()
    assert made == [1]


def test_a_timer_is_set_again_only_by_its_handler(monkeypatch):
    """However long a plan runs, and however few instructions it has, its signals do not pile up: each goes through the
    socket that those of SIGTERM go through, too."""
    made = []
    monkeypatch.setattr(module.signal, "setitimer", lambda *args: made.append(args))
    GUARD.within(1.0, lambda: None)
    assert [len(each) for each in made] == [2, 2]  # no interval


@pytest.mark.slow
@pytest.mark.parametrize("at", range(0, 60_000, 3_000))
def test_a_plan_that_is_given_up_leaves_what_plans_share_as_it_was(at):
    harness, left = rich(WARM.objects), iter(range(at))
    with suppress(TooSlow):
        interrupted(lambda: GUARD.within(100.0, harness.plan), lambda _: next(left, None) is None, TooSlow)
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
        GUARD.is_running,
        METER.is_in_plan,
        state.depth,
        state.renders,
        state.sites,
        state.lenient,
        record._RECORDS.length < sum(map(len, record._RECORDS.known)),
    )


WARM = rich()
created(WARM)
next(iter(WARM.objects.values()))["data"]["a"] = "drifted"
EXPECTED, STATE = as_bytes(WARM.plan()), (False, False, 0, 0, None, False, False)


@given(at=st.integers(0, LONGEST), warm=st.booleans())
def test_a_plan_after_one_that_was_interrupted_is_the_same(at, warm):
    harness = WARM if warm else rich(WARM.objects)
    left, planned = iter(range(at)), None
    with suppress(Overtime):  # at its very end it is raised by the plan
        planned = interrupted(harness.plan, lambda _: next(left, None) is None)
    METER.switch(None)  # the thread has ended
    harness.rule.reset_renderers()
    if planned is not None and next(left, None) is None:
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


@given(at=st.integers(0, 2500))
def test_the_shapes_of_types_are_whole_after_one_was_interrupted(at):
    left, builder = iter(range(at)), ShapeBuilder(TYPES)
    with suppress(Overtime):
        interrupted(lambda: builder.named("one"), lambda _: next(left, None) is None, anywhere=True)
    assert not builder._is_builtin
    assert form(builder.named("one")) == form(ShapeBuilder(TYPES).named("one"))
