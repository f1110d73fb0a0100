"""A plan for people: the tree and the reasons of its view, the actions, the status, the Events, and a count.

It masks values of Secrets, is deterministic, and summarises the metadata that ruleop itself writes; the JSON document
of `plan_documents` has it in full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.change_text import SIGNS, difference_lines, shown_changes, sign_of
from ruleop.authoring.report.planned import Verdict
from ruleop.authoring.report.spans import Line, Place, Span, Tone, counted, in_words, sections
from ruleop.authoring.report.tree import tree_lines
from ruleop.authoring.report.view_text import ViewText, condition_lines, no_source
from ruleop.language.status_limits import unwritten
from ruleop.messages import shortened
from ruleop.planning.changes import Verb, differences, flow, reason_for, verb_of
from ruleop.planning.model.actions import Action, AddFinalizer, FinalizerAction, ServerSideApply
from ruleop.planning.model.conditions import type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.report.planned import Answer
    from ruleop.authoring.report.views import ResourceView
    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.planning.model.observed import Kinds
    from ruleop.planning.plan import Plan

_OWN_FIELDS: Final = frozenset({"conditions", "observedGeneration"})  # of a status; conditions are shown separately
_TOTALS: Final = {"+": "create", "~": "change", "-": "delete"}
_VERDICTS: Final = {Verdict.ACCEPTED: Tone.GOOD, Verdict.REFUSED: Tone.BAD, Verdict.UNASKED: Tone.WAIT}


def plan_lines(view: ResourceView, *, place: Place = str, source: Place = no_source) -> Iterator[Line]:
    """The next pass over a custom resource."""
    text = PlanText(view, place, source)
    return sections(
        [
            ("", text.tree()),
            ("Why it is not ready", text.reasons()),
            ("", text.actions()),
            ("status", text.status()),
            ("", text.events()),
            ("", text.end()),
        ]
    )


class PlanText(ViewText):
    """The plan of the next pass."""

    def __init__(self, view: ResourceView, place: Place, source: Place) -> None:
        super().__init__(view, place, source)
        assert view.plan is not None
        assert view.kinds is not None
        self.plan: Plan = view.plan
        self.kinds: Kinds = view.kinds

    def tree(self) -> Iterator[Line]:
        account = f", written as the ServiceAccount {self.plan.account}" if self.plan.account is not None else ""
        note = f"by the rule {self.plan.rule}{account}"
        if number := self.view.planned.number:
            yield (Span(f"pass {number}", Tone.FAINT),)
        yield from tree_lines([replace(self.row(), state="", text="", note=note)])

    def actions(self) -> Iterator[Line]:
        answers = {id(each.action): self._without_problem(each) for each in self.view.planned.answers}
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
        for answer in self.view.planned.answers:
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
        shown, extent = shown_changes(action, self.kinds, self.plan)
        for each in shown:
            yield from difference_lines(each)
        if extent:
            yield (Span(f"      {extent} ruleop's own metadata", Tone.FAINT),)

    def status(self) -> Iterator[Line]:
        if self.plan.status is None:
            return
        before, after = (
            {name: value for name, value in (status or {}).items() if name not in _OWN_FIELDS}
            for status in (self.view.obj.get("status"), self.plan.status.status)
        )
        before, after = self.plan.masks.texts(before, after)
        changed = [line for each in differences(before, after) for line in difference_lines(each, indent="  ")]
        same = sorted(name for name in after if name in before and after[name] == before[name])
        rest: list[Line] = [(Span(f"    {name}: {shortened(flow(after[name]))}", Tone.FAINT),) for name in same]
        if missing := self.plan.status.missing:
            yield (Span(f"  ! {unwritten(self.plan.resource.kind, missing)}", Tone.BAD),)
        yield from changed
        yield from rest
        yield from self._conditions()

    def _conditions(self) -> Iterator[Line]:
        """A message that has the text of a problem or of a wait is not repeated."""
        old = self.view.conditions
        before = {type_of(each): shortened(str(each.get("status")), 20) for each in old if type_of(each)}
        above = [*(problem.message for problem in self.plan.problems), *(wait.for_what for wait in self.plan.waits)]
        found = [each.as_json() for each in self.plan.conditions or ()]
        shown = [{**each, "message": ""} if any(text in each["message"] for text in above) else each for each in found]
        return condition_lines(shown, before, self.view.now, "    ")

    def events(self) -> Iterator[Line]:
        above = {each.message for each in self.plan.conditions or ()}
        for event in self.plan.events:
            message = "" if event.message in above else f"  {shortened(event.message, 120)}"
            yield (
                Span("event "),
                Span(event.reason, Tone.WAIT if event.type == "Warning" else Tone.GOOD),
                Span(message),
            )

    def end(self) -> Iterator[Line]:
        if (check := self.plan.time_check) is not None:
            yield (Span(f"Reconciled again in {in_words(check.seconds)}: {check.reason}.", Tone.FAINT),)
        yield self._summary()

    def _summary(self) -> Line:
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
    tone = _VERDICTS[answer.verdict]
    for text in answer.lines():
        yield (Span(f"      {text}", tone),)
        tone = Tone.CHANGE
