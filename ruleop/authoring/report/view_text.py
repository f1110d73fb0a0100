"""The text that `plan` and `explain` share: the tree, why a custom resource is not ready, and its conditions.

The reasons are never cut: the end of a message is usually what matters. Lines are wrapped at `WIDTH`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.spans import WIDTH, Line, Place, Span, Tone, ago, fitted, wrapped
from ruleop.authoring.report.tree import view_row
from ruleop.messages import shortened
from ruleop.planning.model.actions import distinct
from ruleop.planning.model.conditions import NEGATIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.authoring.report.tree import TreeRow
    from ruleop.authoring.report.views import ObjectView, ResourceView, WaitView
    from ruleop.kubernetes.kinds import ObjectKey

MAX_UNREADY: Final = 12
"""The number of objects whose problems are listed."""

_ABOVE: Final = {"name conflict", "not desired"}
"""States that are among the errors or the actions."""


def no_source(_site: object) -> str:
    return ""


class ViewText:
    """`place` formats a place in the project's files, and `source` gives its line; empty: unknown."""

    def __init__(self, view: ResourceView, place: Place, source: Place) -> None:
        self.view, self.place, self.source = view, place, source

    def title(self, key: ObjectKey) -> str:
        """The name of an object; with its namespace if that is not the resource's."""
        return key.title(self.view.obj["metadata"].get("namespace") or "")

    def ago(self, time: str) -> str:
        return ago(time, self.view.now)

    def row(self) -> TreeRow:
        return view_row(self.view, {number: self._note(each) for number, each in enumerate(self.view.objects)})

    def _note(self, each: ObjectView) -> str:
        write = each.last_change
        return f"({write.title}, {self.ago(write.time)})" if write is not None else each.template

    def reasons(self) -> Iterator[Line]:
        view = self.view
        for problem in distinct(view.planned.problems):
            site = f"{self.place(problem.site)}: " if problem.site is not None else ""
            yield from wrapped(f"{problem.child}: {site}{problem.message}", "  ! ", Tone.BAD)
        # Before the waits, which often wait for them.
        unready = [lines for each in view.objects if (lines := list(self._object(each)))]
        for lines in unready[:MAX_UNREADY]:
            yield from lines
        if len(unready) > MAX_UNREADY:
            yield (Span(f"  and {len(unready) - MAX_UNREADY} more objects are not ready", Tone.WAIT),)
        for wait in view.waits:
            yield from self._wait(wait)

    def _wait(self, wait: WaitView) -> Iterator[Line]:
        place = self.place(wait.site) if wait.site is not None else ""
        if wait.expression:
            key, head = ("readyWhen", "is not ready") if wait.why == "ready" else ("waitFor", "waits")
            yield from wrapped(f"{wait.child} {head}: its {key} is not true", "  ", Tone.WAIT)
            yield from wrapped(f"{key}: {wait.expression}", "      ")
            yield (Span(f"      {place}", Tone.FAINT),)
        else:
            yield from wrapped(f"{wait.child} waits for {wait.for_}", "  ", Tone.WAIT)
            if wait.site is not None:
                source = Span(shortened(self.source(wait.site), WIDTH - 6))
                yield from fitted((Span(f"      {place}", Tone.FAINT),), (source,), "      ")
        for each in wait.values:
            yield (Span(f"      now {each.path}: ", Tone.FAINT), Span(each.value, Tone.TITLE))

    def _object(self, each: ObjectView) -> Iterator[Line]:
        blocked = {wait.child for wait in self.view.waits if wait.why == "ready"}
        if each.ready or not each.exists or each.state in _ABOVE or each.child in blocked:
            return  # it is among the waits, the errors or the actions
        yield from self._problems(each, "  ")
        alike: dict[tuple[str, ...], list[ObjectView]] = {}
        for pod in each.pods:
            alike.setdefault((pod.state, pod.message, *pod.problems), []).append(pod)
        for pod, *others in alike.values():
            yield from self._problems(pod, "      ", f" (and {len(others)} more)" if others else "")

    def _problems(self, each: ObjectView, indent: str, more: str = "") -> Iterator[Line]:
        state = each.state.removeprefix("is ") + (f": {each.message}" if each.message else "")
        yield from wrapped(f"{self.title(each.key)} is {state}{more}", indent, each.tone)
        for problem in each.problems:
            yield from wrapped(problem, f"{indent}    ")


def condition_lines(
    found: Iterable[Mapping[str, Any]], before: Mapping[str, str], now: str, indent: str
) -> Iterator[Line]:
    """`before`: the statuses that they had, by their types."""
    rows = []
    for each in found:
        type_, status = str(each.get("type")), str(each.get("status"))
        was, good = before.get(type_, status), (status == "True") != (type_ in NEGATIVE)
        tone = Tone.WAIT if not good else Tone.FAINT if type_ in NEGATIVE else Tone.GOOD
        since = ago(str(each["lastTransitionTime"]), now) if each.get("lastTransitionTime") else ""
        turn = status if was == status else f"{was} -> {status}"
        rows.append((type_, turn, tone, str(each.get("reason") or ""), since, str(each.get("message") or "")))
    types, turns, reasons = (max((len(str(row[at])) for row in rows), default=0) for at in (0, 1, 3))
    for type_, turn, tone, reason, since, message in rows:
        head: Line = (
            Span(f"{indent}{type_:<{types}}  "),
            Span(f"{turn:<{turns}}  ", tone),
            Span(f"{reason:<{reasons}}  {since}".rstrip() if since else reason),
        )
        yield from fitted(head, (Span(message, Tone.FAINT),), f"{indent}    ") if message else [head]
