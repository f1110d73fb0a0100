"""Changes of fields as text, and the summary of many plans: how many custom resources would change, and which fields.

Each plan is added and dropped: the summary keeps counts and a few names, not plans.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ruleop.authoring.report.documents import HIDDEN, as_document
from ruleop.authoring.report.spans import Line, Place, Span, Tone, fitted, listed
from ruleop.authoring.report.views import Verdict
from ruleop.messages import shortened
from ruleop.planning.changes import NOTHING, Difference, Verb, changes, flow, is_mark, leaves, verb_of
from ruleop.planning.model.actions import AddFinalizer, Delete, Expire, FinalizerAction, RemoveFinalizer
from ruleop.planning.rollout import WaveView, in_order, size_of_wave
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.authoring.report.views import Answer, ResourceView
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rollout, Rule
    from ruleop.planning import Action, Plan


# -- changes as text ---------------------------------------------------------------------------------------------------
# Fields that change, as lines: before and after, line by line for a text, each behind the sign of what is done.

MAX_LINES: Final = 16
"""The number of shown lines of a changed text."""

_LONG: Final = 60  # characters of a value in a line with another one

SIGNS: Final = {"+": Tone.ADD, "~": Tone.CHANGE, "-": Tone.REMOVE, "!": Tone.BAD}


def sign_of(action: Action) -> str:
    if isinstance(action, (Delete, Expire, RemoveFinalizer)):
        return "-"
    return "+" if isinstance(action, AddFinalizer) or verb_of(action) is Verb.CREATE else "~"


def shown_changes(action: Action, view: ResourceView) -> tuple[list[Difference], str]:
    """The fields that an action changes, and how ruleop's own metadata is mentioned, which is not among them: `and`,
    `only`, or empty if it does not change."""
    plan, kinds = view.plan, view.kinds
    assert plan is not None
    assert kinds is not None
    found = changes(action, kinds, plan.masks)
    shown = [each for each in found if not is_mark(each, plan.uid)]
    return shown, "" if len(shown) == len(found) else "and" if shown else "only"


def difference_lines(difference: Difference, indent: str = "    ") -> Iterator[Line]:
    before, after = difference.before, difference.after
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield (Span(f"{indent}  {difference.path}:"),)
        yield from _text_lines(before, after, f"{indent}    ")
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


def _text_lines(before: str, after: str, indent: str) -> Iterator[Line]:
    """The lines of a text that differ, each with its neighbours."""
    lines = differing_lines(before.splitlines(), after.splitlines(), neighbours=1)
    if not lines:
        yield (Span(f"{indent}only the line break at the end", Tone.FAINT),)
    for line in lines[:MAX_LINES]:
        tone = {"+": Tone.ADD, "-": Tone.REMOVE}.get(line[:1], Tone.FAINT)
        yield (Span(f"{indent}{line[:1]} {shortened(line[1:], 100)}", tone),)
    if len(lines) > MAX_LINES:
        yield (Span(f"{indent}and {len(lines) - MAX_LINES} more lines", Tone.FAINT),)


# -- summary of many plans ---------------------------------------------------------------------------------------------

MAX_NAMES: Final = 3
"""The number of custom resources that are named for one change."""

MAX_GROUPS: Final = 200
"""The number of different changes, and of different problems, that are kept."""

MARKS: Final = "only ruleop's own metadata"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One kind of change: what is done to a child, and to which field of it."""

    rule: str
    child: str
    sign: str = dataclasses.field(metadata=HIDDEN)
    action: str
    kind: str
    field: str = ""  # empty: the whole object


@dataclass(frozen=True, slots=True)
class ProblemCause:
    """One kind of problem. The messages of several custom resources may differ in names and values."""

    rule: str
    child: str
    reason: str
    site: Site | None


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence of the API server about a write, besides its verdict."""

    rule: str
    child: str
    text: str


@dataclass(slots=True)
class ChangeGroup:
    """The custom resources with the same change, or with the same problem."""

    resources: int = 0
    objects: int = 0
    examples: list[str] = field(default_factory=list)
    message: str | None = None  # of the first problem
    values: set[tuple[str, str]] = field(default_factory=set, metadata=HIDDEN)
    """Before and after; two are enough to see that they vary."""
    last: str = field(default="", metadata=HIDDEN)

    def add(self, name: str, values: tuple[str, str] | None = None) -> None:
        self.objects += 1
        if name != self.last:
            self.last = name
            self.resources += 1
            if len(self.examples) < MAX_NAMES:
                self.examples.append(name)
        if values is not None and len(self.values) < 2:
            self.values.add(values)

    def __str__(self) -> str:
        more = self.resources - len(self.examples)
        return f"in {self.resources}: {', '.join(self.examples)}" + (f" and {more} more" if more else "")


K = TypeVar("K", FieldChange, ProblemCause, Remark)


@dataclass(slots=True)
class ChangeSummary:
    resources: int = 0
    changed: int = 0
    status_only: int = 0  # only their status would be written
    held_back: int = 0  # with deletions that are held back
    failed: int = 0  # with problems, or without a plan
    unmatched: int = 0
    more: int = 0  # changes and problems that are not kept
    changes: dict[FieldChange, ChangeGroup] = field(default_factory=dict, metadata=HIDDEN)
    problems: dict[ProblemCause, ChangeGroup] = field(default_factory=dict, metadata=HIDDEN)
    remarks: dict[Remark, ChangeGroup] = field(default_factory=dict, metadata=HIDDEN)
    verdicts: Counter[Verdict] = field(default_factory=Counter, metadata=HIDDEN)  # of the API server on the writes
    rollouts: dict[str, tuple[Rollout, list[WaveView]]] = field(default_factory=dict, metadata=HIDDEN)
    """The custom resources that an edit reaches in waves, by rule."""

    def add(self, view: ResourceView) -> None:
        self.resources += 1
        plan, name = view.plan, view.title
        if view.chosen is None:
            self.unmatched += 1
            return
        if plan is None:
            self.failed += 1
            self._group(self.problems, ProblemCause(view.chosen.title, "", "Unplanned", None), view.error).add(name)
            return
        if plan.actions:
            self.changed += 1
            for action in plan.actions:
                self._add_action(plan, action, view)
        elif not plan.quiet:
            self.status_only += 1
        if plan.held:
            self.held_back += 1
        if plan.problems:
            self.failed += 1
            for problem in plan.problems:
                cause = ProblemCause(plan.rule, problem.child, problem.reason, problem.site)
                self._group(self.problems, cause, problem.message).add(name)
        for answer in view.answers:
            self._add_answer(plan.rule, answer, name)

    def _add_answer(self, rule: str, answer: Answer, name: str) -> None:
        """Counts the verdict. A refusal is among the problems, and fields that are added to all objects of a kind are
        no news."""
        if answer.action is not None:
            self.verdicts[answer.verdict] += 1
        for text in list(answer.lines())[0 if answer.verdict is Verdict.UNASKED else 1 :]:
            self._group(self.remarks, Remark(rule, answer.child, text)).add(name)

    def add_to_rollout(self, rule: Rule, resource: Object) -> None:
        """Adds a custom resource that the rules reach in a wave."""
        assert rule.rollout is not None
        view = WaveView.of(resource, rule.rollout.label)
        if not view.exempt:
            self.rollouts.setdefault(rule.title, (rule.rollout, []))[1].append(view)

    def _add_action(self, plan: Plan, action: Action, view: ResourceView) -> None:
        name, verb, sign = view.title, verb_of(action).do, sign_of(action)
        if isinstance(action, Delete) and action.why == "recreate":
            verb = "delete and recreate"
        if isinstance(action, FinalizerAction):
            self._group(self.changes, FieldChange(plan.rule, "", sign, verb, action.finalizer)).add(name)
            return
        whole = FieldChange(plan.rule, action.child, sign, verb, action.key.kind)
        shown, extent = shown_changes(action, view)
        for each in shown:
            self._group(self.changes, replace(whole, field=each.path)).add(name, _values(each))
        if not shown:
            self._group(self.changes, replace(whole, field=MARKS) if extent else whole).add(name)

    def _group(self, groups: dict[K, ChangeGroup], key: K, message: str | None = None) -> ChangeGroup:
        """The group of a change, a problem or a remark; one that is not kept if there are too many."""
        if key not in groups and len(groups) >= MAX_GROUPS:
            self.more += 1
            return ChangeGroup()
        return groups.setdefault(key, ChangeGroup(message=message))

    # -- as text -------------------------------------------------------------------------------------------------------

    def lines(self, place: Place = str) -> Iterator[Line]:
        named = (each.rule for found in (self.changes, self.problems, self.remarks) for each in found)
        for rule in dict.fromkeys(named):
            yield (Span(rule, Tone.TITLE),)
            yield from self._changes_of(rule)
            for cause, group in self.problems.items():
                if cause.rule == rule:
                    child = f"! {cause.child}: " if cause.child else "! "
                    where = f"{place(cause.site)}: " if cause.site is not None else ""
                    yield from _with_count((Span(child, Tone.BAD), Span(f"{where}{group.message}")), group)
            for remark, group in self.remarks.items():
                if remark.rule == rule:
                    yield from _with_count((Span(f"? {remark.child}: ", Tone.WAIT), Span(remark.text)), group)
            yield ()
        for rule, (rollout, views) in self.rollouts.items():
            yield from _rollout_lines(rule, rollout, views)
        if self.more:
            yield (Span(f"and {self.more} more of other kinds", Tone.FAINT),)
        if total := self.verdicts.total():
            counts = ", ".join(f"{count} {_word(verdict)}" for verdict in Verdict if (count := self.verdicts[verdict]))
            yield (Span(f"{total} write{'' if total == 1 else 's'} by dry run: {counts}."),)
        yield self._total()

    def _changes_of(self, rule: str) -> Iterator[Line]:
        objects: dict[FieldChange, list[tuple[FieldChange, ChangeGroup]]] = {}
        for change, group in self.changes.items():
            if change.rule == rule:
                objects.setdefault(replace(change, field=""), []).append((change, group))
        for whole, fields in objects.items():
            child = f"  {whole.child}" if whole.child else ""
            alone = fields[0][1] if len(fields) == 1 and not fields[0][0].field else None
            count = f"  {alone}" if alone is not None else ""
            yield (
                Span(f"{whole.sign} {whole.action} ", SIGNS[whole.sign]),
                Span(whole.kind, Tone.TITLE),
                Span(f"{child}{count}", Tone.FAINT),
            )
            for change, group in fields:
                if change.field:
                    yield from _field_lines(change, group)

    def _total(self) -> Line:
        total = f"{self.changed} of {self.resources} would change"
        rest = {
            "would only get a new status": self.status_only,
            "with deletions that are held back": self.held_back,
            "with errors": self.failed,
            "not selected by any rule": self.unmatched,
        }
        parts = [total, *(f"{count} {text}" for text, count in rest.items() if count)]
        tone = Tone.BAD if self.failed else Tone.CHANGE if self.changed else Tone.GOOD
        return (Span(f"{', '.join(parts)}.", tone),)

    # -- for programs --------------------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """The values before and after a change are there if they are the same in all objects."""
        changes: list[dict[str, Any]] = []
        for change, group in self.changes.items():
            before, after = next(iter(group.values)) if len(group.values) == 1 else (None, None)
            changes.append({**as_document(change), **as_document(group), "before": before, "after": after})
        found: dict[str, Any] = {**as_document(self), "changes": changes, "problems": _documents(self.problems)}
        if self.rollouts:
            found["rollouts"] = [
                {
                    "rule": rule,
                    "resources": len(views),
                    "maxUnavailable": size_of_wave(rollout, len(views)),
                    "pauseAfter": rollout.pause_after,
                    "first": [each.title for each in _first_wave(rollout, views)],
                }
                for rule, (rollout, views) in self.rollouts.items()
            ]
        if self.verdicts or self.remarks:
            verdicts = {each.value: self.verdicts[each] for each in Verdict}
            found["server"] = {**verdicts, "remarks": _documents(self.remarks)}
        return found


def _documents(groups: Mapping[K, ChangeGroup]) -> list[dict[str, Any]]:
    return [{**as_document(key), **as_document(group)} for key, group in groups.items()]


def _word(verdict: Verdict) -> str:
    return "cannot be asked" if verdict is Verdict.UNASKED else verdict.value


def _first_wave(rollout: Rollout, views: list[WaveView]) -> list[WaveView]:
    return in_order(rollout, views)[: size_of_wave(rollout, len(views))]


def _rollout_lines(rule: str, rollout: Rollout, views: list[WaveView]) -> Iterator[Line]:
    first, total = [each.title for each in _first_wave(rollout, views)], len(views)
    pause = f", with a pause after {rollout.pause_after}" if rollout.pause_after is not None else ""
    threshold = rollout.failure_threshold.of(total)
    yield (
        Span(f"{rule}: ", Tone.TITLE),
        Span(f"{total} in waves of at most {len(first)}{pause}; stops when more than {threshold} fail"),
    )
    yield (Span(f"    first {listed(first, MAX_NAMES)}", Tone.FAINT),)


def _field_lines(change: FieldChange, group: ChangeGroup) -> Iterator[Line]:
    values: tuple[Span, ...] = ()
    if len(group.values) == 1:
        ((before, after),) = group.values
        old = (Span(f": {before}", Tone.REMOVE), Span(" -> ")) if before else (Span(": "),)
        values = (*old, Span(after, Tone.ADD))
    elif group.values:
        values = (Span(": different values", Tone.FAINT),)
    yield from _with_count((Span(f"    {change.field}"), *values), group)


def _with_count(line: Line, group: ChangeGroup) -> Iterator[Line]:
    """The line with the custom resources that it concerns, which have a line of their own if it gets too wide."""
    return fitted(line, (Span(str(group), Tone.FAINT),), " " * 8)


def _values(difference: Difference) -> tuple[str, str]:
    return _text(difference.before), _text(difference.after)


def _text(value: Any) -> str:
    return "" if value is NOTHING else shortened(flow(value))
