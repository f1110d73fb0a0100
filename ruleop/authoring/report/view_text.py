"""The text of `plan`, `explain` and `history`: the tree, why a custom resource is not ready, its conditions, what the
next pass does, and what has changed.

The reasons are never cut: the end of a message is usually what matters. Lines are wrapped at `WIDTH`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.change_summary import SIGNS, difference_lines, shown_changes, sign_of
from ruleop.authoring.report.spans import (
    WIDTH,
    Line,
    Place,
    Span,
    Tone,
    ago,
    counted,
    fitted,
    in_columns,
    in_words,
    sections,
    wrapped,
)
from ruleop.authoring.report.tree import tree_lines, view_row
from ruleop.authoring.report.views import Verdict, What
from ruleop.language.status_limits import unwritten
from ruleop.messages import shortened
from ruleop.planning.changes import Verb, differences, flow, reason_for, verb_of
from ruleop.planning.model.actions import Action, AddFinalizer, FinalizerAction, ServerSideApply, distinct
from ruleop.planning.model.conditions import NEGATIVE, find_condition, type_of
from ruleop.planning.model.marks import PAUSED, is_paused
from ruleop.planning.rollout import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.report.tree import TreeRow
    from ruleop.authoring.report.views import Answer, ManagedField, ObjectView, PastChange, ResourceView, WaitView
    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.planning.plan import Plan


MAX_UNREADY: Final = 12
"""The number of objects whose problems are listed."""

MAX_FIELDS: Final = 12
"""Fields of one object that are listed; all of them with `every_field`."""

MAX_CHANGES: Final = 200
"""The latest changes that are listed; `-o json` has all."""

MAX_NAMED: Final = 4
"""Fields of one write that are named; of more, the groups that they are in."""

MAX_GROUPS: Final = 6
_GROUP: Final = re.compile(r"[^.\[]*(\.[^.\[]+|\['[^']*'\])?")
"""The first two names of a path, of which the second may be in quotes."""

MAX_TITLE: Final = 28
"""Characters of a name in front of the text of its change; that of a longer one is below it."""

ONE_TIME: Final = (
    "The API server keeps one time for each field manager of an object: that of its last write, with all fields that "
    "the manager owns."
)
_OWN_FIELDS: Final = frozenset({"conditions", "observedGeneration"})  # of a status; conditions are shown separately
_ABOVE: Final = {"name conflict", "not desired"}
"""States that are among the errors or the actions."""

_TOTALS: Final = {"+": "create", "~": "change", "-": "delete"}
_VERDICTS: Final = {Verdict.ACCEPTED: Tone.GOOD, Verdict.REFUSED: Tone.BAD, Verdict.UNASKED: Tone.WAIT}


def no_source(_site: object) -> str:
    return ""


def plan_lines(view: ResourceView, *, place: Place = str, source: Place = no_source) -> Iterator[Line]:
    """The next pass over a custom resource. It is deterministic, and summarises the metadata that ruleop itself
    writes; the JSON document has it in full."""
    text = _ViewText(view, place, source)
    return sections(
        [
            ("", text.planned_tree()),
            ("Why it is not ready", text.reasons()),
            ("", text.actions()),
            ("status", text.status()),
            ("", text.planned_events()),
            ("", text.end()),
        ]
    )


def explanation_lines(
    view: ResourceView, *, place: Place = str, source: Place = no_source, every_field: bool = False
) -> Iterator[Line]:
    """A custom resource in its cluster. `every_field`: also the fields that no other client has changed."""
    text = _ViewText(view, place, source)
    return sections(
        [
            ("", tree_lines([text.row()], fit=True)),
            ("Why it is not ready", (*text.state(), *text.reasons())),
            ("Conditions", text.conditions()),
            ("Fields", text.fields(every_field=every_field)),
            ("Events", text.events()),
            ("Next reconcile", text.next_reconcile()),
            ("", text.notes()),
        ]
    )


def history_lines(view: ResourceView) -> Iterator[Line]:
    """The past changes of a custom resource, its children and the rules."""
    generation = view.obj["metadata"].get("generation")
    note = f"(generation {generation})" if generation is not None else ""
    notes = (line for text in (ONE_TIME, *view.notes) for line in wrapped(text, "", Tone.FAINT))
    return sections(
        [
            ("", tree_lines([replace(view_row(view), text="", note=note)])),
            ("", _change_lines(view)),
            ("", notes),
        ]
    )


class _ViewText:
    """`place` formats a place in the project's files, and `source` gives its line; empty: unknown."""

    def __init__(self, view: ResourceView, place: Place, source: Place) -> None:
        self.view, self.place, self.source = view, place, source
        self.objects, self.waits = view.objects, view.waits  # made by the view each time
        self.blocked = {wait.child for wait in self.waits if wait.why == "ready"}

    @property
    def plan(self) -> Plan:
        assert self.view.plan is not None
        return self.view.plan

    def title(self, key: ObjectKey) -> str:
        """The name of an object; with its namespace if that is not the resource's."""
        return key.title(self.view.obj["metadata"].get("namespace") or "")

    def ago(self, time: str) -> str:
        return ago(time, self.view.now)

    def row(self) -> TreeRow:
        return view_row(self.view, {number: self._note(each) for number, each in enumerate(self.objects)})

    def _note(self, each: ObjectView) -> str:
        write = each.last_change
        return f"({write.title}, {self.ago(write.time)})" if write is not None else each.template

    def reasons(self) -> Iterator[Line]:
        view = self.view
        for problem in distinct(view.errors):
            site = f"{self.place(problem.site)}: " if problem.site is not None else ""
            yield from wrapped(f"{problem.child}: {site}{problem.message}", "  ! ", Tone.BAD)
        # Before the waits, which often wait for them.
        unready = [lines for each in self.objects if (lines := list(self._object(each)))]
        for lines in unready[:MAX_UNREADY]:
            yield from lines
        if len(unready) > MAX_UNREADY:
            yield (Span(f"  and {len(unready) - MAX_UNREADY} more objects are not ready", Tone.WAIT),)
        for wait in self.waits:
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
        if each.ready or not each.exists or each.state in _ABOVE or each.child in self.blocked:
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

    def _condition_lines(
        self, found: Iterable[Mapping[str, Any]], before: Mapping[str, str], indent: str
    ) -> Iterator[Line]:
        """`before`: the statuses that they had, by their types."""
        rows, messages = [], []
        for each in found:
            type_, status = str(each.get("type")), str(each.get("status"))
            was, good = before.get(type_, status), (status == "True") != (type_ in NEGATIVE)
            tone = Tone.WAIT if not good else Tone.FAINT if type_ in NEGATIVE else Tone.GOOD
            since = self.ago(str(each["lastTransitionTime"])) if each.get("lastTransitionTime") else ""
            turn = status if was == status else f"{was} -> {status}"
            rows.append((Span(indent + type_), Span(turn, tone), Span(str(each.get("reason") or "")), Span(since)))
            messages.append(Span(str(each.get("message") or ""), Tone.FAINT))
        for head, message in zip(in_columns(rows), messages, strict=True):
            yield from fitted(head, (message,), f"{indent}    ") if message.text else [head]

    # -- plan ----------------------------------------------------------------------------------------------------------

    def planned_tree(self) -> Iterator[Line]:
        account = f", written as the ServiceAccount {self.plan.account}" if self.plan.account is not None else ""
        note = f"by the rule {self.plan.rule}{account}"
        if number := self.view.number:
            yield (Span(f"pass {number}", Tone.FAINT),)
        yield from tree_lines([replace(self.row(), state="", text="", note=note)])

    def actions(self) -> Iterator[Line]:
        answers = {id(each.action): self._without_problem(each) for each in self.view.answers}
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
        for answer in self.view.answers:
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
        shown, extent = shown_changes(action, self.view)
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
        yield from self._planned_conditions()

    def _planned_conditions(self) -> Iterator[Line]:
        """A message that has the text of a problem or of a wait is not repeated."""
        old = self.view.conditions
        before = {type_of(each): shortened(str(each.get("status")), 20) for each in old if type_of(each)}
        above = [*(problem.message for problem in self.plan.problems), *(wait.for_what for wait in self.plan.waits)]
        found = [each.as_json() for each in self.plan.conditions or ()]
        shown = [{**each, "message": ""} if any(text in each["message"] for text in above) else each for each in found]
        return self._condition_lines(shown, before, "    ")

    def planned_events(self) -> Iterator[Line]:
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

    # -- explain -------------------------------------------------------------------------------------------------------

    def state(self) -> Iterator[Line]:
        view, metadata = self.view, self.view.obj["metadata"]
        status: Mapping[str, Any] = view.obj.get("status") or {}
        if metadata.get("deletionTimestamp"):
            finalizers = ", ".join(metadata.get("finalizers") or ()) or "none"
            text = f"It is being deleted, since {self.ago(metadata['deletionTimestamp'])}; finalizers: {finalizers}"
            yield from wrapped(text, "  ")
        elif view.plan is not None and view.plan.expires:
            yield from wrapped(f"It expires at {view.plan.expires}", "  ")
        generation, observed = metadata.get("generation"), status.get("observedGeneration")
        if observed is not None and generation is not None and observed < generation:
            text = (
                f"The status is of generation {observed}, the spec of {generation}: the operator has not reconciled it"
            )
            yield from wrapped(text, "  ", Tone.WAIT)
        elif not status.get("conditions") and (view.plan is None or view.plan.status is not None):
            yield from wrapped(f"It has no conditions: {self._why_no_conditions()}", "  ", Tone.WAIT)
        rollout = find_condition(view.obj, "Rollout")
        if rollout.get("reason") == "HeldBack":
            text = f"It is held back: it has {rollout.get('message')}. What follows is by the rules of the project"
            yield from wrapped(text, "  ", Tone.WAIT)
        yield from self._report()

    def _why_no_conditions(self) -> str:
        status = self.view.plan.status if self.view.plan is not None else None
        if status is not None and status.missing:
            return unwritten(self.view.obj["kind"], status.missing)
        if status is not None and not status.status.get("conditions"):
            return "its CRD declares or allows none that ruleop writes; see its Events"
        return "no operator has reconciled it yet"

    def _report(self) -> Iterator[Line]:
        """The operator's last report, as far as a plan does not show it: a write that the API server rejected, or a
        field conflict. Without rules, it is all that is known."""
        ready = find_condition(self.view.obj, "Ready")
        parts = [] if ready.get("status") == "True" else str(ready.get("message") or "").split("; ")
        text = "; ".join(part for part in parts if part and not self._is_reported(part))
        if text:
            is_error = find_condition(self.view.obj, "Stalled").get("status") == "True"
            yield from wrapped(text, "  ! " if is_error else "  ", Tone.BAD if is_error else Tone.WAIT)

    def _is_reported(self, part: str) -> bool:
        """Whether a part of the message of Ready is among the reasons that the objects and the plan give."""
        view = self.view
        waits = [f"{each.child} waits for {each.for_}" for each in self.waits if each.why != "ready"]
        unready = (self.title(each.key) for each in self.objects if not each.ready)
        return any(part in text for text in (*view.problems, *waits)) or any(
            part == f"{title} is not ready" or part.startswith(f"{title}: ") for title in unready
        )

    def conditions(self) -> Iterator[Line]:
        """The message of Ready is among the reasons."""
        found = [each for each in self.view.conditions if isinstance(each, dict)]
        shown = [{**each, "message": ""} if type_of(each) == "Ready" else each for each in found]
        return self._condition_lines(shown, {}, "  ")

    def fields(self, *, every_field: bool) -> Iterator[Line]:
        objects = [each for each in self.objects if each.fields]
        total = sum(len(each.fields) for each in objects)
        if total and not every_field and not any(field.changed for each in objects for field in each.fields):
            yield (Span(f"  all {total} fields that ruleop sets are as it wrote them", Tone.FAINT),)
            return
        for each in objects:
            found = [field for field in each.fields if every_field or field.changed]
            if not found:
                continue
            names = Counter(field.managers[0].manager for field in each.fields if field.managers)
            counts = ", ".join(f"{count} by {name}" for name, count in names.most_common())
            yield (Span(f"  {self.title(each.key)}"), Span(f"  {counts}", Tone.FAINT))
            for field in found if every_field else found[:MAX_FIELDS]:
                managers = Span(self._managers(field), Tone.WAIT if field.changed else Tone.FAINT)
                yield from fitted((Span(f"      {field.path}"),), (managers,), "          ")
            if not every_field and len(found) > MAX_FIELDS:
                yield (Span(f"      and {len(found) - MAX_FIELDS} more", Tone.FAINT),)

    def _managers(self, field: ManagedField) -> str:
        if not field.managers:
            return "removed" if field.changed else "missing: the API server does not store it"
        return "; ".join(f"{each.manager} ({each.operation}), {self.ago(each.time)}" for each in field.managers)

    def events(self) -> Iterator[Line]:
        rows = []
        for each in self.view.events:
            tone = Tone.BAD if each.type == "Warning" else Tone.GOOD
            count = f" (x{each.count})" if each.count > 1 else ""
            ago = Span(f"  {self.ago(each.time)}", Tone.FAINT)
            rows.append((ago, Span(f"{each.reason}{count}", tone), Span(self.title(each.key))))
        for head, event in zip(in_columns(rows), self.view.events, strict=True):
            yield from fitted(head, (Span(event.message),), " " * 14)

    def next_reconcile(self) -> Iterator[Line]:
        view = self.view
        if view.plan is None:
            return
        if is_paused(view.obj):
            yield from wrapped(f"Nothing, while the annotation {PAUSED} stops all changes.", "  ", Tone.WAIT)
            return
        yield from ((Span("  "), *line) for line in (*self.actions(), *self.end()))

    def notes(self) -> Iterator[Line]:
        if self.view.rule:
            yield (Span(f"by the rule {self.view.rule}", Tone.FAINT),)
        for note in filter(None, (self.view.operator, *self.view.notes)):
            yield from wrapped(note, "", Tone.FAINT)


def _answer_lines(answer: Answer) -> Iterator[Line]:
    tone = _VERDICTS[answer.verdict]
    for text in answer.lines():
        yield (Span(f"      {text}", tone),)
        tone = Tone.CHANGE


# -- history -----------------------------------------------------------------------------------------------------------


def _change_lines(view: ResourceView) -> Iterator[Line]:
    if earlier := view.changes[:-MAX_CHANGES]:
        yield (Span(f"  {len(earlier)} earlier changes are not shown (-o json has them)", Tone.FAINT),)
    shown = view.changes[-MAX_CHANGES:]
    namespace = view.key.namespace
    titles = [change.key.title(namespace) if change.key is not None else "rules" for change in shown]
    width = max((len(title) for title in titles if len(title) <= MAX_TITLE), default=0)
    for change, title in zip(shown, titles, strict=True):
        head = f"  {change.time}  {ago(change.time, view.now):<10}  "
        start = (Span(head, Tone.FAINT), Span(f"{title:<{width}}", Tone.TITLE if change.key is None else Tone.PLAIN))
        lines = list(wrapped(_change(change), " " * (len(head) + width + 2), _tone(change)))
        yield (*start, Span("  "), lines.pop(0)[1]) if len(title) <= width else start
        yield from lines


def _change(change: PastChange) -> str:
    match change.what:
        case What.RULES:
            environment = ", with environment variables" if change.environment else ""
            held_back = "; held back here by its rollout" if change.held_back else ""
            number = (change.revision or "")[:SHORT]
            return f"revision {number}{' again' if change.again else ''}{environment}{held_back}"
        case What.RELEASED:
            return f"the rollout of revision {(change.revision or '')[:SHORT]} reached it"
        case What.CREATED:
            return "created"
        case What.DELETION:
            return "deletion requested"
        case What.EVENT:
            assert change.event is not None
            count = f" (x{change.event.count})" if change.event.count > 1 else ""
            return f"{change.event.reason}{count}: {change.event.message}"
    assert change.write is not None
    if change.what is What.STATUS:
        return f"status written by {change.write.manager}"
    generation = f" (generation {change.generation})" if change.generation is not None else ""
    names: Sequence[str] = change.fields or ()
    if len(names) > MAX_NAMED:
        groups = [*dict.fromkeys(found[0] for name in names if (found := _GROUP.match(name)))]
        more = [f"{len(groups) - MAX_GROUPS} more"] if len(groups) > MAX_GROUPS else []
        where = _in_words([*groups[:MAX_GROUPS], *more])
        return f"written by {change.write.manager}, which owns {len(names)} fields in {where}{generation}"
    return f"written by {change.write.manager}, which owns {_in_words(names)}{generation}"


def _in_words(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _tone(change: PastChange) -> Tone:
    if change.event is not None:
        return Tone.BAD if change.event.type == "Warning" else Tone.GOOD
    if change.what in {What.RULES, What.RELEASED, What.DELETION}:
        return Tone.CHANGE
    is_edit = change.what is What.WRITTEN and change.write is not None and not change.write.is_ruleop
    return Tone.WAIT if is_edit else Tone.PLAIN
