"""A plan as a view of its custom resource: the objects with their states after the pass, and what is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.authoring.report.views import ObjectView, ReadValue, ResourceView, WaitView
from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.planning.child.shown import is_wait_of
from ruleop.planning.model.actions import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.report.planned import Planned
    from ruleop.planning import ChildReport, Plan, Wait
    from ruleop.planning.model.observed import Kinds


def view_of_plan(planned: Planned, kinds: Kinds) -> ResourceView:
    """A custom resource by its plan alone: the objects in the order of the rules, with their states after the pass.
    Which of them exist, it does not show."""
    assert planned.plan is not None
    objects = [found for report in planned.plan.children for found in _reported_objects(report, planned)]
    return ResourceView(planned, kinds, waits=tuple(waits_of(planned.plan)), objects=tuple(objects))


def _reported_objects(report: ChildReport, planned: Planned) -> Iterator[ObjectView]:
    for each in report.objects:
        message = wait_message(each.message) if each.state is State.WAITING else each.message
        yield ObjectView(each.key, each.state.value, message, report.id, _template_of(report), exists=False)
    if not report.objects:
        yield view_without_object(report, planned, report.state.value)


def view_without_object(report: ChildReport, planned: Planned, state: str) -> ObjectView:
    """A child that has no object in the plan: it waits, cannot be rendered, or is not desired."""
    every_child = planned.rule.every_child if planned.rule is not None else ()
    child = next((each for each in every_child if each.id == report.id), None)
    kinds = {kind.versionless for kind in child.kinds} if child is not None else set()
    kind = kinds.pop() if len(kinds) == 1 else GroupKind("", "")
    key = ObjectKey(*kind, planned.resource["metadata"].get("namespace") or "", "")
    message = wait_message(report.message) if report.state is State.WAITING else report.message
    return ObjectView(key, state, message, report.id, _template_of(report), exists=False)


def _template_of(report: ChildReport) -> str:
    return report.template if report.state in {State.FAILED, State.UNWANTED} else ""


def wait_message(text: str) -> str:
    """The message of a child or an object that waits. Its `waitFor` is among the waits."""
    text = text.removeprefix("waits for ")
    return "waitFor is not true" if text.startswith("waitFor: ") else f"waits for {text}" if text else ""


def waits_of(plan: Plan) -> Iterator[WaitView]:
    """The waits, and the `readyWhen` that are not true, each with what its expression reads."""
    blocking = {(each.child, each.key): each for each in plan.blocking}
    states = {each.id: each for each in plan.children}
    for wait in plan.waits:
        expression = blocking.get((wait.child, "waitFor"))
        if expression is not None and is_wait_of(wait, wait.child, expression.site):
            del blocking[wait.child, "waitFor"]
        else:
            expression = None
        found = expression.values if expression is not None else _value_of(wait, states)
        text = expression.expression if expression is not None else ""
        yield WaitView(wait.child, wait.for_what, wait.why, wait.site, text, _read_values(found))
    for each in blocking.values():
        if each.key == "readyWhen":
            for_what = f"readyWhen: {each.expression}"
            yield WaitView(each.child, for_what, "ready", each.site, each.expression, _read_values(each.values))


def _value_of(wait: Wait, states: dict[str, ChildReport]) -> Iterator[tuple[str, str]]:
    """The state of the child, or the object, that another one waits for."""
    if wait.why == "object" and wait.for_what.endswith(")"):
        yield wait.for_what.rpartition("(")[2].removesuffix(")"), "does not exist"
    other = wait.for_what.partition(" ")[0].partition(".")[0]
    report = states.get(other) if wait.why in {"child", "value"} else None
    if report is None:
        return
    unready = [each for each in report.objects if each.state is not State.READY]
    titles = [f"{each.key.kind}/{each.key.name}: {each.message}".removesuffix(": ") for each in unready[:3]]
    yield report.id, "; ".join([report.state.value, *titles])


def _read_values(found: Iterable[tuple[str, str]]) -> tuple[ReadValue, ...]:
    return tuple(ReadValue(path, value) for path, value in found)
