"""Summarises the plans of many custom resources: how many would change, and which fields, grouped.

Each plan is added and dropped: the summary keeps counts and a few names, not plans.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.authoring.report.plan_documents import site_json, with_masked_texts
from ruleop.authoring.report.plan_text import sign_of
from ruleop.authoring.report.server_answers import Verdict
from ruleop.authoring.report.spans import Line, Place, Span, Tone
from ruleop.messages import shortened
from ruleop.planning.changes.differences import NOTHING, Difference, flow
from ruleop.planning.changes.writes import changes, is_mark, verb_of
from ruleop.planning.model.actions import Delete, FinalizerAction
from ruleop.planning.rollout.waves import View, in_order, size_of_wave

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.report.server_answers import Answer
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.language.rules import Rollout, Rule
    from ruleop.planning import Action, Plan
    from ruleop.planning.model.observed import Kinds

MAX_NAMES: Final = 3
"""The number of custom resources that are named for one change."""

WIDTH: Final = 120

MAX_GROUPS: Final = 200
"""The number of different changes, and of different problems, that are kept."""

MARKS: Final = "only ruleop's own metadata"
_TONES: Final = {"+": Tone.ADD, "~": Tone.CHANGE, "-": Tone.REMOVE}


class Change(NamedTuple):
    """One kind of change: what is done to a child, and to which field of it."""

    rule: str
    child: str
    sign: str
    verb: str
    kind: str
    path: str = ""  # empty: the whole object


class Cause(NamedTuple):
    """One kind of problem. The messages of several custom resources may differ in names and values."""

    rule: str
    child: str
    reason: str
    site: Site | None = None


class Remark(NamedTuple):
    """Something that the API server says of a write, besides its verdict."""

    rule: str
    child: str
    text: str


@dataclass(slots=True)
class Group:
    """The custom resources with the same change, or with the same problem."""

    resources: int = 0
    objects: int = 0
    names: list[str] = field(default_factory=list)
    values: set[tuple[str, str]] = field(default_factory=set)  # before and after; two are enough to see that they vary
    last: str = ""
    message: str = ""  # of the first

    def add(self, name: str, values: tuple[str, str] | None = None) -> None:
        self.objects += 1
        if name != self.last:
            self.last = name
            self.resources += 1
            if len(self.names) < MAX_NAMES:
                self.names.append(name)
        if values is not None and len(self.values) < 2:
            self.values.add(values)

    def titles(self) -> str:
        more = self.resources - len(self.names)
        return ", ".join(self.names) + (f" and {more} more" if more else "")


@dataclass(slots=True)
class ChangeSummary:
    resources: int = 0
    changed: int = 0
    status_only: int = 0  # only their status would be written
    held: int = 0  # with deletions that are held back
    failed: int = 0  # with problems, or without a plan
    unmatched: int = 0
    changes: dict[Change, Group] = field(default_factory=dict)
    problems: dict[Cause, Group] = field(default_factory=dict)
    more: int = 0  # changes and problems that are not kept
    verdicts: Counter[Verdict] = field(default_factory=Counter)  # of the API server on the writes
    remarks: dict[Remark, Group] = field(default_factory=dict)  # what else it says
    rollouts: dict[str, tuple[Rollout, list[View]]] = field(default_factory=dict)  # by rule, the CRs in waves

    def add(self, plan: Plan, kinds: Kinds, answers: Iterable[Answer] = ()) -> None:
        plan = with_masked_texts(plan)
        self.resources += 1
        name = _title(plan.resource)
        if plan.actions:
            self.changed += 1
            for action in plan.actions:
                self._add_action(plan, action, kinds, name)
        elif not plan.quiet:
            self.status_only += 1
        if plan.held:
            self.held += 1
        if plan.problems:
            self.failed += 1
            for problem in plan.problems:
                cause = Cause(plan.rule, problem.child, problem.reason, problem.site)
                self._group(self.problems, cause, problem.message).add(name)
        for answer in answers:
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
        view = View.of(resource, rule.rollout.label)
        if not view.exempt:
            self.rollouts.setdefault(rule.title, (rule.rollout, []))[1].append(view)

    def add_failed(self, key: ObjectKey, rule: str, message: str) -> None:
        """Adds a custom resource that cannot be planned."""
        self.resources += 1
        self.failed += 1
        self._group(self.problems, Cause(rule, "", "Unplanned"), message).add(_title(key))

    def add_unmatched(self) -> None:
        """Adds a custom resource that no rule selects."""
        self.resources += 1
        self.unmatched += 1

    def _add_action(self, plan: Plan, action: Action, kinds: Kinds, name: str) -> None:
        verb, sign = verb_of(action).do, sign_of(action)
        if isinstance(action, Delete) and action.why == "recreate":
            verb = "delete and recreate"
        if isinstance(action, FinalizerAction):
            self._group(self.changes, Change(plan.rule, "", sign, verb, action.finalizer)).add(name)
            return
        whole = Change(plan.rule, action.child, sign, verb, action.key.kind)
        found = changes(action, kinds, plan.masks)
        shown = [each for each in found if not is_mark(each, plan.uid)]
        for each in shown:
            self._group(self.changes, whole._replace(path=each.path)).add(name, _values(each))
        if found and not shown:
            self._group(self.changes, whole._replace(path=MARKS)).add(name)
        elif not found:
            self._group(self.changes, whole).add(name)

    def _group(self, groups: dict[Any, Group], key: tuple[Any, ...], message: str = "") -> Group:
        """The group of a change, a problem or a remark; one that is not kept if there are too many."""
        if key not in groups and len(groups) >= MAX_GROUPS:
            self.more += 1
            return Group()
        return groups.setdefault(key, Group(message=message))

    # -- as text -------------------------------------------------------------------------------------------------------

    def lines(self, place: Place = str) -> Iterator[Line]:
        named = (each.rule for found in (self.changes, self.problems, self.remarks) for each in found)
        for rule in dict.fromkeys(named):
            yield (Span(rule, Tone.TITLE),)
            yield from self._changes_of(rule)
            for cause, group in self.problems.items():
                if cause.rule == rule:
                    yield from _problem_lines(cause, group, place)
            for remark, group in self.remarks.items():
                if remark.rule == rule:
                    yield from _with_count((Span(f"? {remark.child}: ", Tone.WAIT), Span(remark.text)), group)
            yield ()
        for rule, (rollout, views) in self.rollouts.items():
            yield from _rollout_lines(rule, rollout, views)
        if self.more:
            yield (Span(f"and {self.more} more of other kinds", Tone.FAINT),)
        if total := self.verdicts.total():
            counts = ", ".join(f"{count} {verdict.value}" for verdict in Verdict if (count := self.verdicts[verdict]))
            yield (Span(f"{total} write{'' if total == 1 else 's'} by dry run: {counts}."),)
        yield self._total()

    def _changes_of(self, rule: str) -> Iterator[Line]:
        objects: dict[Change, list[tuple[Change, Group]]] = {}
        for change, group in self.changes.items():
            if change.rule == rule:
                objects.setdefault(change._replace(path=""), []).append((change, group))
        for whole, fields in objects.items():
            child = f"  {whole.child}" if whole.child else ""
            alone = fields[0][1] if len(fields) == 1 and not fields[0][0].path else None
            count = f"  {_count(alone)}" if alone is not None else ""
            yield (
                Span(f"{whole.sign} {whole.verb} ", _TONES[whole.sign]),
                Span(whole.kind, Tone.TITLE),
                Span(f"{child}{count}", Tone.FAINT),
            )
            for change, group in fields:
                if change.path:
                    yield from _field_lines(change, group)

    def _total(self) -> Line:
        total = f"{self.changed} of {self.resources} would change"
        parts = [total, *(f"{count} {text}" for count, text in self._rest() if count)]
        tone = Tone.BAD if self.failed else Tone.CHANGE if self.changed else Tone.GOOD
        return (Span(f"{', '.join(parts)}.", tone),)

    def _rest(self) -> Iterable[tuple[int, str]]:
        return (
            (self.status_only, "would only get a new status"),
            (self.held, "with deletions that are held back"),
            (self.failed, "with errors"),
            (self.unmatched, "not selected by any rule"),
        )

    # -- for programs --------------------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        return {
            "resources": self.resources,
            "changed": self.changed,
            "statusOnly": self.status_only,
            "heldBack": self.held,
            "failed": self.failed,
            "unmatched": self.unmatched,
            "changes": [
                {
                    "rule": change.rule,
                    "child": change.child,
                    "action": change.verb,
                    "kind": change.kind,
                    "field": change.path,
                    **_counts(group),
                    "before": _same(group, 0),
                    "after": _same(group, 1),
                }
                for change, group in self.changes.items()
            ],
            "problems": [
                {
                    "rule": cause.rule,
                    "child": cause.child,
                    "reason": cause.reason,
                    "site": site_json(cause.site),
                    "message": group.message,
                    **_counts(group),
                }
                for cause, group in self.problems.items()
            ],
            "more": self.more,
            **({"rollouts": self._rollouts_json()} if self.rollouts else {}),
            **({"server": self._server_json()} if self.verdicts or self.remarks else {}),
        }

    def _rollouts_json(self) -> list[dict[str, Any]]:
        return [
            {
                "rule": rule,
                "resources": len(views),
                "maxUnavailable": size_of_wave(rollout, len(views)),
                "pauseAfter": rollout.pause_after,
                "first": [each.title for each in _first_wave(rollout, views)],
            }
            for rule, (rollout, views) in self.rollouts.items()
        ]

    def _server_json(self) -> dict[str, Any]:
        remarks = [{**remark._asdict(), **_counts(group)} for remark, group in self.remarks.items()]
        return {**{verdict.name.lower(): self.verdicts[verdict] for verdict in Verdict}, "remarks": remarks}


def _first_wave(rollout: Rollout, views: list[View]) -> list[View]:
    return in_order(rollout, views)[: size_of_wave(rollout, len(views))]


def _rollout_lines(rule: str, rollout: Rollout, views: list[View]) -> Iterator[Line]:
    first, total = [each.title for each in _first_wave(rollout, views)], len(views)
    pause = f", with a pause after {rollout.pause_after}" if rollout.pause_after is not None else ""
    threshold = rollout.failure_threshold.of(total)
    yield (
        Span(f"{rule}: ", Tone.TITLE),
        Span(f"{total} in waves of at most {len(first)}{pause}; stops when more than {threshold} fail"),
    )
    more = f" and {len(first) - MAX_NAMES} more" if len(first) > MAX_NAMES else ""
    yield (Span(f"    first {', '.join(first[:MAX_NAMES])}{more}", Tone.FAINT),)


def _problem_lines(cause: Cause, group: Group, place: Place) -> Iterator[Line]:
    child = f"{cause.child}: " if cause.child else ""
    where = f"{place(cause.site)}: " if cause.site is not None else ""
    yield from _with_count((Span(f"! {child}", Tone.BAD), Span(f"{where}{group.message}")), group)


def _field_lines(change: Change, group: Group) -> Iterator[Line]:
    values: tuple[Span, ...] = ()
    if len(group.values) == 1:
        ((before, after),) = group.values
        values = (
            (Span(f": {before}", Tone.REMOVE), Span(" -> "), Span(after, Tone.ADD))
            if before
            else (
                Span(": "),
                Span(f"{after}", Tone.ADD),
            )
        )
    elif group.values:
        values = (Span(": different values", Tone.FAINT),)
    yield from _with_count((Span(f"    {change.path}"), *values), group)


def _with_count(line: Line, group: Group) -> Iterator[Line]:
    """The line with the custom resources that it concerns, which have a line of their own if it gets too wide."""
    count = Span(f"  {_count(group)}", Tone.FAINT)
    if sum(len(span.text) for span in (*line, count)) <= WIDTH:
        yield (*line, count)
    else:
        yield line
        yield (Span(f"      {count.text}", Tone.FAINT),)


def _count(group: Group) -> str:
    return f"in {group.resources}: {group.titles()}"


def _counts(group: Group) -> dict[str, Any]:
    return {"resources": group.resources, "objects": group.objects, "examples": list(group.names)}


def _same(group: Group, side: int) -> str | None:
    """The value before or after the change, if it is the same in all of them."""
    return next(iter(group.values))[side] if len(group.values) == 1 else None


def _values(difference: Difference) -> tuple[str, str]:
    return _text(difference.before), _text(difference.after)


def _text(value: Any) -> str:
    return "" if value is NOTHING else shortened(flow(value))


def _title(key: ObjectKey) -> str:
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"
