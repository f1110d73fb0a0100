"""A plan for people, as lines of spans. It masks values of Secrets, is deterministic, and summarises the metadata that
ruleop itself writes; the JSON document of `plan_documents` has it in full."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.authoring.report.plan_documents import Verdict, with_masked_texts
from ruleop.authoring.report.spans import Line, Place, Span, Tone, counted, in_words, sections
from ruleop.authoring.report.tree import TreeRow, many, tree_lines
from ruleop.language.definitions.status_limits import unwritten
from ruleop.messages import shortened
from ruleop.planning.changes.differences import NOTHING, Difference, differences, flow, leaves
from ruleop.planning.changes.writes import Verb, changes, is_mark, reason_for, verb_of
from ruleop.planning.model.actions import (
    Action,
    AddFinalizer,
    ChildReport,
    Delete,
    Expire,
    FinalizerAction,
    ObjectReport,
    RemoveFinalizer,
    ServerSideApply,
    State,
    distinct,
)
from ruleop.planning.model.conditions import NEGATIVE, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.report.plan_documents import Answer
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.planning.model.observed import Kinds
    from ruleop.planning.plan import Plan

MAX_LINES = 16
"""The number of shown lines of a changed text."""

_LONG = 60  # characters of a value in a line with another one

_OWN_FIELDS = frozenset({"conditions", "observedGeneration"})  # of a status; conditions are shown separately


SIGNS = {"+": Tone.ADD, "~": Tone.CHANGE, "-": Tone.REMOVE, "!": Tone.BAD}
_TOTALS = {"+": "create", "~": "change", "-": "delete"}
_TONES = {
    State.READY: Tone.GOOD,
    State.PROGRESSING: Tone.CHANGE,
    State.WAITING: Tone.WAIT,
    State.FAILED: Tone.BAD,
    State.REFUSED: Tone.BAD,
    State.UNWANTED: Tone.FAINT,
    State.TERMINATING: Tone.REMOVE,
}


def plan_lines(
    plan: Plan, resource: Object, kinds: Kinds, *, place: Place = str, answers: Sequence[Answer] = ()
) -> list[Line]:
    """The plan as text. `resource` is the CR that it was made for, `answers` those of the API server to a dry run."""
    text = _PlanText(with_masked_texts(plan), resource, kinds, place, answers)
    where = f" in {plan.resource.namespace}" if plan.resource.namespace else ""
    head: Line = (
        Span(f"{plan.resource.kind}/{plan.resource.name}", Tone.TITLE),
        Span(where),
        Span(f"  by the rule {plan.rule}", Tone.FAINT),
        Span(f", written as the ServiceAccount {plan.account}" if plan.account is not None else "", Tone.FAINT),
    )
    tree, end = [head, *text.tree()], [*text.time_check(), text.summary()]
    parts = (tree, text.problems(), text.actions(), text.status(), text.events(), end)
    return [*sections(("", part) for part in parts)]


def action_lines(plan: Plan, resource: Object, kinds: Kinds, *, place: Place) -> list[Line]:
    """The writes of the plan, and a summary."""
    text = _PlanText(with_masked_texts(plan), resource, kinds, place)
    return [*text.actions(), *text.time_check(), text.summary()]


class _PlanText:
    def __init__(
        self, plan: Plan, resource: Object, kinds: Kinds, place: Place, answers: Sequence[Answer] = ()
    ) -> None:
        self.plan, self.resource, self.kinds, self.place = plan, resource, kinds, place
        self.answers = answers

    def title(self, key: ObjectKey) -> str:
        """The name of an object; with its namespace if that is not the CR's."""
        return key.title(self.plan.resource.namespace)

    # -- children ----------------------------------------------------------------------------------------------------

    def tree(self) -> Iterator[Line]:
        return tree_lines([self._row(child) for child in self.plan.children], rooted=False)

    def _row(self, child: ChildReport) -> TreeRow:
        waits = [wait for wait in self.plan.waits if wait.child == child.id]
        sites = dict.fromkeys(self.place(wait.site) for wait in waits if wait.site is not None)
        notes = [*sites, *([child.template] if child.state in {State.FAILED, State.UNWANTED} else [])]
        text = ""
        rows: tuple[TreeRow, ...] = ()
        if waits:
            text = "; ".join(dict.fromkeys(f"waits for {wait.for_what}" for wait in waits))
        elif child.objects:
            several = len(child.objects) > 1
            text = f"{len(child.objects)} objects" if several else self._object(child.objects[0])
        elif all(problem.child != child.id for problem in self.plan.problems):
            text = child.message
        if len(child.objects) > 1:
            objects = (TreeRow("", one.state.value, _TONES[one.state], self._object(one)) for one in child.objects)
            rows = many(objects)
        return TreeRow(child.id, child.state.value, _TONES[child.state], text, "  ".join(notes), rows)

    def _object(self, report: ObjectReport) -> str:
        if not report.message or any(report.message == problem.message for problem in self.plan.problems):
            return self.title(report.key)
        joint = " " if report.message.startswith("is ") else ": "
        return f"{self.title(report.key)}{joint}{report.message}"

    def problems(self) -> Iterator[Line]:
        for problem in distinct(self.plan.problems):
            site = f"{self.place(problem.site)}: " if problem.site is not None else ""
            yield (Span("! ", Tone.BAD), Span(f"{problem.child}: ", Tone.BAD), Span(f"{site}{problem.message}"))

    # -- actions -----------------------------------------------------------------------------------------------------

    def actions(self) -> Iterator[Line]:
        answers = {id(each.action): self._without_problem(each) for each in self.answers}
        for action in self.plan.actions:
            yield from self._action(action)
            if (answer := answers.pop(id(action), None)) is not None:
                yield from _answer_lines(answer)
        for answer in answers.values():  # the writes that are refused are not in the plan any more
            if answer.action is not None:
                yield self._action_line("!", verb_of(answer.action), self.title(answer.action.key))
                yield from _answer_lines(answer)
        for held in self.plan.held:
            verb = Verb.DELETE if held.verb == "deletion" else Verb.RELEASE
            yield self._action_line("!", verb, self.title(held.key), f"held back {held.why}")
        for answer in self.answers:
            if answer.action is None:
                yield (Span(f"? {answer.child}: ", Tone.WAIT), *(Span(text) for text in answer.lines()))

    def _without_problem(self, answer: Answer) -> Answer:
        """The answer without a message that is shown as a problem."""
        is_shown = any(answer.message in problem.message for problem in self.plan.problems)
        return replace(answer, message="") if is_shown else answer

    def _action(self, action: Action) -> Iterator[Line]:
        verb, sign = verb_of(action), sign_of(action)
        if isinstance(action, FinalizerAction):
            joint = "to" if isinstance(action, AddFinalizer) else "from"
            yield self._action_line(sign, verb, f"{action.finalizer} {joint} {self.title(self.plan.resource)}")
            return
        how = ""
        if isinstance(action, ServerSideApply):
            how = "by server-side apply" if action.live is None else "server-side"
        details = filter(None, (self._item(action.key), reason_for(action), how))
        yield self._action_line(sign, verb, self.title(action.key), ", ".join(details))
        yield from self._changes(action)

    def _item(self, key: ObjectKey) -> str:
        """The item of an object whose name does not show it."""
        name = self.plan.items.get(key, "")
        return name if name and name.partition("[")[2].removesuffix("]") not in key.name else ""

    def _action_line(self, sign: str, verb: Verb, title: str, why: str = "") -> Line:
        return (
            Span(f"{sign} {verb.do} ", SIGNS[sign]),
            Span(title, Tone.TITLE),
            Span(f"  {why}" if why else "", Tone.FAINT),
        )

    def _changes(self, action: Action) -> Iterator[Line]:
        found = changes(action, self.kinds, self.plan.masks)
        shown = [each for each in found if not is_mark(each, self.plan.uid)]
        for each in shown:
            yield from _difference(each)
        if len(shown) < len(found):
            extent = "and" if shown else "only"
            yield (Span(f"      {extent} ruleop's own metadata", Tone.FAINT),)

    # -- status and events -------------------------------------------------------------------------------------------

    def status(self) -> Iterator[Line]:
        if self.plan.status is None:
            return
        before, after = (
            {name: value for name, value in (status or {}).items() if name not in _OWN_FIELDS}
            for status in (self.resource.get("status"), self.plan.status.status)
        )
        before, after = self.plan.masks.texts(before, after)
        changed = [line for each in differences(before, after) for line in _difference(each, indent="  ")]
        same = sorted(name for name in after if name in before and after[name] == before[name])
        rest: list[Line] = [(Span(f"    {name}: {shortened(flow(after[name]))}", Tone.FAINT),) for name in same]
        yield (Span("status", Tone.TITLE),)
        if missing := self.plan.status.missing:
            yield (Span(f"  ! {unwritten(self.plan.resource.kind, missing)}", Tone.BAD),)
        yield from changed
        yield from rest
        yield from self._conditions()

    def _conditions(self) -> Iterator[Line]:
        old = (self.resource.get("status") or {}).get("conditions")
        known = [each for each in old if type_of(each)] if isinstance(old, list) else []
        before = {type_of(each): shortened(str(each.get("status")), 20) for each in known}
        conditions = list(self.plan.conditions or ())
        wide = max((len(each.type) for each in conditions), default=0)
        above = [*(problem.message for problem in self.plan.problems), *(wait.for_what for wait in self.plan.waits)]
        turns = [_turn(before.get(each.type), each.status) for each in conditions]
        turned = max(map(len, turns), default=0)
        for each, turn in zip(conditions, turns, strict=True):
            detail = "" if any(text in each.message for text in above) else shortened(each.message, 120)
            tone = Tone.WAIT if not each.is_good else Tone.FAINT if each.type in NEGATIVE else Tone.GOOD
            yield (
                Span(f"    {each.type:<{wide}}  "),
                Span(f"{turn:<{turned}}  ", tone),
                Span(each.reason),
                Span(f"  {detail}" if detail else ""),
            )

    def events(self) -> Iterator[Line]:
        above = {each.message for each in self.plan.conditions or ()}
        for event in self.plan.events:
            message = "" if event.message in above else f"  {shortened(event.message, 120)}"
            yield (
                Span("event "),
                Span(event.reason, Tone.WAIT if event.type == "Warning" else Tone.GOOD),
                Span(message),
            )

    def time_check(self) -> Iterator[Line]:
        check = self.plan.time_check
        if check is not None:
            yield (Span(f"Reconciled again in {in_words(check.seconds)}: {check.reason}.", Tone.FAINT),)

    def summary(self) -> Line:
        writes = [each for each in self.plan.actions if not isinstance(each, FinalizerAction)]
        counts = Counter(map(sign_of, writes))
        parts = [f"{counts[sign]} to {word}" for sign, word in _TOTALS.items() if counts[sign]]
        waiting = len({wait.child for wait in self.plan.waits})
        parts += [f"{len(self.plan.held)} held back"] if self.plan.held else []
        parts += [f"{waiting} waiting"] if waiting else []
        parts += [counted(len(self.plan.problems), "error")] if self.plan.problems else []
        tone = Tone.BAD if self.plan.problems else Tone.TITLE
        if parts:
            return (Span(f"{', '.join(parts)}.", tone),)
        rest = " except finalizers" if self.plan.actions else "" if self.plan.quiet else " except writing the status"
        return (Span(f"Nothing to do{rest}.", Tone.GOOD),)


def _answer_lines(answer: Answer) -> Iterator[Line]:
    tone = {Verdict.ACCEPTED: Tone.GOOD, Verdict.REFUSED: Tone.BAD, Verdict.UNASKED: Tone.WAIT}[answer.verdict]
    for text in answer.lines():
        yield (Span(f"      {text}", tone),)
        tone = Tone.CHANGE


def _turn(was: str | None, now: str) -> str:
    return now if was is None or was == now else f"{was} -> {now}"


def sign_of(action: Action) -> str:
    if isinstance(action, (Delete, Expire, RemoveFinalizer)):
        return "-"
    return "+" if isinstance(action, AddFinalizer) or verb_of(action) is Verb.CREATE else "~"


def _difference(difference: Difference, indent: str = "    ") -> Iterator[Line]:
    before, after = difference.before, difference.after
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield (Span(f"{indent}  {difference.path}:"),)
        yield from _text(before, after, f"{indent}    ")
    elif before is NOTHING:
        for each in leaves(difference):
            yield (Span(f"{indent}+ ", Tone.ADD), Span(f"{each.path}: "), Span(shortened(flow(each.after)), Tone.ADD))
    elif after is NOTHING:
        yield (
            Span(f"{indent}- ", Tone.REMOVE),
            Span(f"{difference.path}: "),
            Span(shortened(flow(before)), Tone.REMOVE),
        )
    else:
        old, new = _apart(flow(before), flow(after))
        yield (Span(f"{indent}  {difference.path}: "), Span(old, Tone.REMOVE), Span(" -> "), Span(new, Tone.ADD))


def _apart(before: str, after: str) -> tuple[str, str]:
    """Two long values, shortened around their first difference, so that the difference is visible."""
    if max(len(before), len(after)) <= _LONG:
        return before, after
    start = next(
        (index for index, (left, right) in enumerate(zip(before, after, strict=False)) if left != right),
        min(len(before), len(after)),
    )
    skipped = max(0, start - _LONG // 3)
    lead = "…" if skipped else ""
    return lead + shortened(before[skipped:], _LONG), lead + shortened(after[skipped:], _LONG)


def differing_lines(before: Sequence[str], after: Sequence[str], *, neighbours: int) -> list[str]:
    """The lines that differ and some beside them, each behind its sign."""
    found = difflib.unified_diff(before, after, n=neighbours, lineterm="")
    return [line for line in found if not line.startswith(("---", "+++", "@@"))]


def _text(before: str, after: str, indent: str) -> Iterator[Line]:
    """The lines of a text that differ, each with its neighbours."""
    lines = differing_lines(before.splitlines(), after.splitlines(), neighbours=1)
    if not lines:
        yield (Span(f"{indent}only the line break at the end", Tone.FAINT),)
    for line in lines[:MAX_LINES]:
        tone = {"+": Tone.ADD, "-": Tone.REMOVE}.get(line[:1], Tone.FAINT)
        yield (Span(f"{indent}{line[:1]} {shortened(line[1:], 100)}", tone),)
    if len(lines) > MAX_LINES:
        yield (Span(f"{indent}and {len(lines) - MAX_LINES} more lines", Tone.FAINT),)
