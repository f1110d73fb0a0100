"""Formats an explanation for people: the tree first, then why it is not ready, then what happened and what comes.

Messages are never cut: the end of one is usually what matters. Lines are wrapped at `WIDTH`.
"""

from __future__ import annotations

import datetime as dt
import textwrap
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.plan_text import show_actions
from ruleop.authoring.report.spans import Line, Place, Span, Tone
from ruleop.authoring.report.tree import Node, tree_lines
from ruleop.language.definitions.status_limits import unwritten
from ruleop.messages import shortened
from ruleop.planning.model.conditions import NEGATIVE, find_condition
from ruleop.planning.model.marks import PAUSED, is_paused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.report.explain_documents import (
        Blocker,
        ExplainedObject,
        Explanation,
        FieldManager,
        ManagedField,
    )
    from ruleop.kubernetes.kinds import ObjectKey

WIDTH: Final = 120
LEAST_MESSAGE: Final = 24
"""Characters of a message in the tree, even if the line gets wider than `WIDTH`."""

MAX_OBJECTS: Final = 12
"""Objects of one child in the tree, and objects whose problems are listed."""

MAX_FIELDS: Final = 12
"""Fields of one object that are listed; all of them with `every_field`."""

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def explain_lines(explanation: Explanation, *, place: Place = str, every_field: bool = False) -> Iterator[Line]:
    """`every_field`: also the fields that no other client has changed."""
    text = _Text(explanation, place)
    parts = [
        ("", text.tree()),
        ("Why it is not ready", text.reasons()),
        ("Conditions", text.conditions()),
        ("Fields", text.fields(every_field=every_field)),
        ("Events", text.events()),
        ("Next reconcile", text.next_reconcile()),
        ("", text.notes()),
    ]
    first = True
    for title, lines in parts:
        found = list(lines)
        if not found:
            continue
        if not first:
            yield ()
        first = False
        if title:
            yield (Span(title, Tone.TITLE),)
        yield from found


class _Text:
    def __init__(self, explanation: Explanation, place: Place) -> None:
        self.explanation, self.place = explanation, place
        self.resource = explanation.resource
        self.status: dict[str, Any] = self.resource.get("status") or {}

    def title(self, key: ObjectKey) -> str:
        """The name of an object; with its namespace if that is not the resource's."""
        return key.title(self.resource["metadata"].get("namespace") or "")

    def ago(self, time: str) -> str:
        return ago(time, self.explanation.now)

    def changed(self, manager: FieldManager) -> str:
        return f"{manager.title}, {self.ago(manager.time)}"

    # -- the tree ------------------------------------------------------------------------------------------------------

    def tree(self) -> Iterator[Line]:
        tree = self.explanation.tree
        by_child: dict[str, list[tuple[Node, ExplainedObject]]] = {}
        for node, each in zip(tree.children, self.explanation.objects, strict=True):
            by_child.setdefault(each.child or str(each.key), []).append((node, each))
        children = tuple(node for objects in by_child.values() for node in self._nodes(objects))
        tree = replace(tree, children=children)
        yield from tree_lines([_fitted(tree, _title_width(tree))])

    def _nodes(self, objects: list[tuple[Node, ExplainedObject]]) -> Iterator[Node]:
        """The objects of one child; of very many, those that are not ready before the others."""
        if len(objects) > MAX_OBJECTS:
            objects = sorted(objects, key=lambda pair: pair[1].is_ready)
        for node, each in objects[:MAX_OBJECTS]:
            yield replace(node, note=self._note(each))
        if rest := [each for _, each in objects[MAX_OBJECTS:]]:
            ready = sum(each.is_ready for each in rest)
            state = "ready" if ready == len(rest) else f"{ready} ready"
            tone = Tone.GOOD if ready == len(rest) else Tone.WAIT
            yield Node({"kind": "and", "metadata": {"name": f"{len(rest)} more"}}, state, "", tone)

    def _note(self, each: ExplainedObject) -> str:
        return f"({self.changed(each.last_change)})" if each.last_change is not None else ""

    # -- why -----------------------------------------------------------------------------------------------------------

    def reasons(self) -> Iterator[Line]:
        explanation, metadata = self.explanation, self.resource["metadata"]
        if metadata.get("deletionTimestamp"):
            finalizers = ", ".join(metadata.get("finalizers") or ()) or "none"
            text = f"It is being deleted, since {self.ago(metadata['deletionTimestamp'])}; finalizers: {finalizers}"
            yield from wrapped(text, "  ")
        elif explanation.plan is not None and explanation.plan.expires:
            yield from wrapped(f"It expires at {explanation.plan.expires}", "  ")
        generation, observed = metadata.get("generation"), self.status.get("observedGeneration")
        if observed is not None and generation is not None and observed < generation:
            text = (
                f"The status is of generation {observed}, the spec of {generation}: the operator has not reconciled it"
            )
            yield from wrapped(text, "  ", Tone.WAIT)
        elif not self.status.get("conditions") and (explanation.plan is None or explanation.plan.status is not None):
            yield from wrapped(f"It has no conditions: {self._why_no_conditions()}", "  ", Tone.WAIT)
        rollout = find_condition(self.resource, "Rollout")
        if rollout.get("reason") == "HeldBack":
            text = f"It is held back: it has {rollout.get('message')}. What follows is by the rules of the project"
            yield from wrapped(text, "  ", Tone.WAIT)
        yield from self._report()
        for problem in explanation.problems:
            yield from wrapped(problem, "  ! ", Tone.BAD)
        # Before the waits, which often wait for them.
        unready = [lines for each in explanation.objects if (lines := list(self._object(each)))]
        for lines in unready[:MAX_OBJECTS]:
            yield from lines
        if len(unready) > MAX_OBJECTS:
            yield (Span(f"  and {len(unready) - MAX_OBJECTS} more objects are not ready", Tone.WAIT),)
        for blocker in explanation.blockers:
            yield from self._blocker(blocker)

    def _why_no_conditions(self) -> str:
        status = self.explanation.plan.status if self.explanation.plan is not None else None
        if status is not None and status.missing:
            return unwritten(self.resource["kind"], status.missing)
        if status is not None and not status.status.get("conditions"):
            return "its CRD declares or allows none that ruleop writes; see its Events"
        return "no operator has reconciled it yet"

    def _report(self) -> Iterator[Line]:
        """The operator's last report, as far as a plan does not show it: a write that the API server rejected, or a
        field conflict. Without rules, it is all that is known."""
        ready = find_condition(self.resource, "Ready")
        parts = [] if ready.get("status") == "True" else str(ready.get("message") or "").split("; ")
        text = "; ".join(part for part in parts if part and not self._is_reported(part))
        if text:
            is_error = find_condition(self.resource, "Stalled").get("status") == "True"
            yield from wrapped(text, "  ! " if is_error else "  ", Tone.BAD if is_error else Tone.WAIT)

    def _blocker(self, blocker: Blocker) -> Iterator[Line]:
        place = self.place(blocker.site) if blocker.site is not None else ""
        if blocker.expression:
            key, head = ("readyWhen", "is not ready") if blocker.why == "ready" else ("waitFor", "waits")
            yield from wrapped(f"{blocker.child} {head}: its {key} is not true", "  ", Tone.WAIT)
            yield from wrapped(f"{key}: {blocker.expression}", "      ")
            yield (Span(f"      {place}", Tone.FAINT),)
        else:
            yield from wrapped(f"{blocker.child} waits for {blocker.for_what}", "  ", Tone.WAIT)
            if place:
                source = shortened(blocker.source, WIDTH - 6)
                fits = len(place) + len(source) + 8 <= WIDTH
                yield (Span(f"      {place}", Tone.FAINT), Span(f"  {source}" if fits else ""))
                if not fits:
                    yield (Span(f"      {source}"),)
        for path, value in blocker.values:
            yield (Span(f"      now {path}: ", Tone.FAINT), Span(value, Tone.TITLE))

    def _object(self, each: ExplainedObject) -> Iterator[Line]:
        blocked = {blocker.child for blocker in self.explanation.blockers if blocker.why == "ready"}
        reported = each.state in {"name conflict", "not desired"} or each.child in blocked
        if each.is_ready or not each.exists or reported:
            return  # it is among the waits, the errors or the actions
        message = f": {each.message}" if each.message else ""
        yield from wrapped(f"{self.title(each.key)} is {_is(each.state)}{message}", "  ", _tone(each.state))
        for problem in each.problems:
            yield from wrapped(problem, "      ")
        alike: dict[tuple[str, ...], list[ExplainedObject]] = {}
        for part in each.parts:
            alike.setdefault((part.state, part.message, *part.problems), []).append(part)
        for part, *others in alike.values():
            more = f" (and {len(others)} more)" if others else ""
            state = f"{_is(part.state)}: {part.message}" if part.message else _is(part.state)
            yield from wrapped(f"{self.title(part.key)} is {state}{more}", "      ", _tone(part.state))
            for problem in part.problems:
                yield from wrapped(problem, "          ")

    # -- conditions and fields -----------------------------------------------------------------------------------------

    def _conditions(self) -> list[dict[str, Any]]:
        found = self.status.get("conditions")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def conditions(self) -> Iterator[Line]:
        conditions = self._conditions()
        wide = max((len(str(each.get("type"))) for each in conditions), default=0)
        reason_wide = max((len(str(each.get("reason") or "")) for each in conditions), default=0)
        for each in conditions:
            type_, status = str(each.get("type")), str(each.get("status"))
            good = (status == "True") != (type_ in NEGATIVE)
            since = f"  {self.ago(str(each['lastTransitionTime']))}" if each.get("lastTransitionTime") else ""
            yield (
                Span(f"  {type_:<{wide}}  "),
                Span(f"{status:<7}  ", Tone.GOOD if good else Tone.WAIT),
                Span(f"{each.get('reason') or '':<{reason_wide}}"),
                Span(since, Tone.FAINT),
            )
            message = str(each.get("message") or "")
            if message and type_ != "Ready":  # that of Ready is among the reasons
                yield from wrapped(message, "      ", Tone.FAINT)

    def _is_reported(self, part: str) -> bool:
        """Whether a part of the message of Ready is among the reasons that the objects and the plan give."""
        explanation = self.explanation
        waits = [f"{each.child} waits for {each.for_what}" for each in explanation.blockers if each.why != "ready"]
        unready = (self.title(each.key) for each in explanation.objects if not each.is_ready)
        return any(part in text for text in (*explanation.problems, *waits)) or any(
            part == f"{title} is not ready" or part.startswith(f"{title}: ") for title in unready
        )

    def fields(self, *, every_field: bool) -> Iterator[Line]:
        objects = [each for each in self.explanation.objects if each.fields]
        total = sum(len(each.fields) for each in objects)
        changed = sum(field.changed for each in objects for field in each.fields)
        if total and not changed and not every_field:
            yield (Span(f"  all {total} fields that ruleop sets are as it wrote them", Tone.FAINT),)
            return
        for each in objects:
            found = [field for field in each.fields if every_field or field.changed]
            if not found:
                continue
            yield (Span(f"  {self.title(each.key)}"), Span(f"  {self._counts(each)}", Tone.FAINT))
            for field in found if every_field else found[:MAX_FIELDS]:
                tone, managers = Tone.WAIT if field.changed else Tone.FAINT, self._managers(field)
                if len(field.path) + len(managers) + 8 <= WIDTH:
                    yield (Span(f"      {field.path}"), Span(f"  {managers}", tone))
                else:
                    yield (Span(f"      {field.path}"),)
                    yield from wrapped(managers, "          ", tone)
            if not every_field and len(found) > MAX_FIELDS:
                yield (Span(f"      and {len(found) - MAX_FIELDS} more", Tone.FAINT),)

    def _counts(self, each: ExplainedObject) -> str:
        names = Counter(field.managers[0].name for field in each.fields if field.managers)
        return ", ".join(f"{count} by {name}" for name, count in names.most_common())

    def _managers(self, field: ManagedField) -> str:
        if not field.managers:
            return "removed" if field.changed else "missing: the API server does not store it"
        return "; ".join(f"{each.name} ({each.operation}), {self.ago(each.time)}" for each in field.managers)

    # -- what happened and what comes ----------------------------------------------------------------------------------

    def events(self) -> Iterator[Line]:
        for each in self.explanation.events:
            tone = Tone.BAD if each.type == "Warning" else Tone.GOOD
            count = f" (x{each.count})" if each.count > 1 else ""
            head = f"  {self.ago(each.time):<10}  ", f"{each.reason}{count}", f"  {self.title(each.key)}"
            fits = sum(map(len, head)) + 2 + len(each.message) <= WIDTH and "\n" not in each.message
            message = Span(f"  {each.message}" if fits else "")
            yield (Span(head[0], Tone.FAINT), Span(head[1], tone), Span(head[2]), message)
            if not fits:
                yield from wrapped(each.message, " " * 14)

    def next_reconcile(self) -> Iterator[Line]:
        plan = self.explanation.plan
        if plan is None:
            return
        if is_paused(self.resource):
            yield from wrapped(f"Nothing, while the annotation {PAUSED} stops all changes.", "  ", Tone.WAIT)
            return
        lines = show_actions(plan, self.resource, self.explanation.kinds, place=self.place)
        yield from ((Span("  "), *line) for line in lines)

    def notes(self) -> Iterator[Line]:
        if self.explanation.rule:
            yield (Span(f"by the rule {self.explanation.rule}", Tone.FAINT),)
        for note in filter(None, (self.explanation.operator, *self.explanation.notes)):
            yield from wrapped(note, "", Tone.FAINT)


def ago(time: str, now: str) -> str:
    """`3 min ago`; the time itself if it is invalid."""
    try:
        seconds = int((_parsed(now) - _parsed(time)).total_seconds())
    except ValueError:
        return time
    for unit, word in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit} {word} ago"
    return f"{max(0, seconds)} s ago"


def wrapped(text: str, indent: str, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """The text in lines of at most `WIDTH` columns. A word that is longer is not broken."""
    lines = [
        line
        for each in text.splitlines() or [""]
        for line in textwrap.wrap(each, WIDTH - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    ]
    for number, line in enumerate(lines):
        yield (Span(indent if number == 0 else " " * len(indent)), Span(line, tone))


def _title_width(node: Node, indent: int = 0) -> int:
    return max([indent + len(node.title), *(_title_width(child, indent + 3) for child in node.children)])


def _fitted(node: Node, column: int) -> Node:
    """The node with a message that fits into its line; in full it is below the tree."""
    taken = column + 2 + len(node.state) + 2 + (len(node.note) + 2 if node.note else 0)
    message = shortened(node.message, max(LEAST_MESSAGE, WIDTH - taken))
    return replace(node, message=message, children=tuple(_fitted(child, column) for child in node.children))


def _is(state: str) -> str:
    return state.removeprefix("is ")


def _tone(state: str) -> Tone:
    return Tone.BAD if state in {"failed", "name conflict"} else Tone.WAIT


def _parsed(time: str) -> dt.datetime:
    return dt.datetime.fromisoformat(time)
