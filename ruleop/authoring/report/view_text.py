"""Formats a view for people: the tree first, then why it is not ready, then what happened and what comes; and the
history of a custom resource, the latest change last.

Messages are never cut: the end of one is usually what matters. Lines are wrapped at `WIDTH`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.plan_text import action_lines
from ruleop.authoring.report.spans import WIDTH, Line, Place, Span, Tone, ago, fitted, sections, wrapped
from ruleop.authoring.report.tree import tree_lines, view_row
from ruleop.authoring.report.views import ResourceView, What
from ruleop.language.definitions.status_limits import unwritten
from ruleop.messages import shortened
from ruleop.planning.model.conditions import NEGATIVE, find_condition
from ruleop.planning.model.marks import PAUSED, is_paused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.report.views import ManagedField, ObjectView, PastChange, ResourceHistory, WaitView
    from ruleop.kubernetes.kinds import ObjectKey

MAX_UNREADY: Final = 12
"""The number of objects whose problems are listed."""

MAX_FIELDS: Final = 12
"""Fields of one object that are listed; all of them with `every_field`."""

_CONFLICT: Final = {"name conflict", "not desired"}
"""States that are among the errors or the actions."""


def view_lines(view: ResourceView, *, place: Place = str, every_field: bool = False) -> Iterator[Line]:
    """`every_field`: also the fields that no other client has changed."""
    text = _Text(view, place)
    return sections(
        [
            ("", text.tree()),
            ("Why it is not ready", text.reasons()),
            ("Conditions", text.conditions()),
            ("Fields", text.fields(every_field=every_field)),
            ("Events", text.events()),
            ("Next reconcile", text.next_reconcile()),
            ("", text.notes()),
        ]
    )


class _Text:
    def __init__(self, view: ResourceView, place: Place) -> None:
        self.view, self.place = view, place
        self.status: dict[str, Any] = view.obj.get("status") or {}

    def title(self, key: ObjectKey) -> str:
        """The name of an object; with its namespace if that is not the resource's."""
        return key.title(self.view.obj["metadata"].get("namespace") or "")

    def ago(self, time: str) -> str:
        return ago(time, self.view.now)

    def tree(self) -> Iterator[Line]:
        writes = {number: each.last_change for number, each in enumerate(self.view.objects)}
        notes = {number: f"({each.title}, {self.ago(each.time)})" for number, each in writes.items() if each}
        return tree_lines([view_row(self.view, notes)], fit=True)

    # -- why -----------------------------------------------------------------------------------------------------------

    def reasons(self) -> Iterator[Line]:
        view, metadata = self.view, self.view.obj["metadata"]
        if metadata.get("deletionTimestamp"):
            finalizers = ", ".join(metadata.get("finalizers") or ()) or "none"
            text = f"It is being deleted, since {self.ago(metadata['deletionTimestamp'])}; finalizers: {finalizers}"
            yield from wrapped(text, "  ")
        elif view.plan is not None and view.plan.expires:
            yield from wrapped(f"It expires at {view.plan.expires}", "  ")
        generation, observed = metadata.get("generation"), self.status.get("observedGeneration")
        if observed is not None and generation is not None and observed < generation:
            text = (
                f"The status is of generation {observed}, the spec of {generation}: the operator has not reconciled it"
            )
            yield from wrapped(text, "  ", Tone.WAIT)
        elif not self.status.get("conditions") and (view.plan is None or view.plan.status is not None):
            yield from wrapped(f"It has no conditions: {self._why_no_conditions()}", "  ", Tone.WAIT)
        rollout = find_condition(view.obj, "Rollout")
        if rollout.get("reason") == "HeldBack":
            text = f"It is held back: it has {rollout.get('message')}. What follows is by the rules of the project"
            yield from wrapped(text, "  ", Tone.WAIT)
        yield from self._report()
        for problem in view.problems:
            yield from wrapped(problem, "  ! ", Tone.BAD)
        # Before the waits, which often wait for them.
        unready = [lines for each in view.objects if (lines := list(self._object(each)))]
        for lines in unready[:MAX_UNREADY]:
            yield from lines
        if len(unready) > MAX_UNREADY:
            yield (Span(f"  and {len(unready) - MAX_UNREADY} more objects are not ready", Tone.WAIT),)
        for wait in view.waits:
            yield from self._wait(wait)

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
        waits = [f"{each.child} waits for {each.for_}" for each in view.waits if each.why != "ready"]
        unready = (self.title(each.key) for each in view.objects if not each.ready)
        return any(part in text for text in (*view.problems, *waits)) or any(
            part == f"{title} is not ready" or part.startswith(f"{title}: ") for title in unready
        )

    def _wait(self, wait: WaitView) -> Iterator[Line]:
        place = self.place(wait.site) if wait.site is not None else ""
        if wait.expression:
            key, head = ("readyWhen", "is not ready") if wait.why == "ready" else ("waitFor", "waits")
            yield from wrapped(f"{wait.child} {head}: its {key} is not true", "  ", Tone.WAIT)
            yield from wrapped(f"{key}: {wait.expression}", "      ")
            yield (Span(f"      {place}", Tone.FAINT),)
        else:
            yield from wrapped(f"{wait.child} waits for {wait.for_}", "  ", Tone.WAIT)
            if place:
                source = Span(shortened(wait.source, WIDTH - 6))
                yield from fitted((Span(f"      {place}", Tone.FAINT),), (source,), "      ")
        for each in wait.values:
            yield (Span(f"      now {each.path}: ", Tone.FAINT), Span(each.value, Tone.TITLE))

    def _object(self, each: ObjectView) -> Iterator[Line]:
        blocked = {wait.child for wait in self.view.waits if wait.why == "ready"}
        if each.ready or not each.exists or each.state in _CONFLICT or each.child in blocked:
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

    # -- conditions and fields -----------------------------------------------------------------------------------------

    def conditions(self) -> Iterator[Line]:
        conditions = [each for each in self.view.conditions if isinstance(each, dict)]
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

    def fields(self, *, every_field: bool) -> Iterator[Line]:
        objects = [each for each in self.view.objects if each.fields]
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

    # -- what happened and what comes ----------------------------------------------------------------------------------

    def events(self) -> Iterator[Line]:
        for each in self.view.events:
            tone = Tone.BAD if each.type == "Warning" else Tone.GOOD
            count = f" (x{each.count})" if each.count > 1 else ""
            head = (
                Span(f"  {self.ago(each.time):<10}  ", Tone.FAINT),
                Span(f"{each.reason}{count}", tone),
                Span(f"  {self.title(each.key)}"),
            )
            yield from fitted(head, (Span(each.message),), " " * 14)

    def next_reconcile(self) -> Iterator[Line]:
        view = self.view
        if view.plan is None:
            return
        if is_paused(view.obj):
            yield from wrapped(f"Nothing, while the annotation {PAUSED} stops all changes.", "  ", Tone.WAIT)
            return
        assert view.kinds is not None
        yield from ((Span("  "), *line) for line in action_lines(view.plan, view.obj, view.kinds, place=self.place))

    def notes(self) -> Iterator[Line]:
        if self.view.rule:
            yield (Span(f"by the rule {self.view.rule}", Tone.FAINT),)
        for note in filter(None, (self.view.operator, *self.view.notes)):
            yield from wrapped(note, "", Tone.FAINT)


# -- history -----------------------------------------------------------------------------------------------------------

MAX_CHANGES: Final = 200
"""The latest changes that are listed; `-o json` has all."""

MAX_NAMED: Final = 4
"""Fields of one write that are named; of more, the groups that they are in."""

MAX_GROUPS: Final = 6
MAX_TITLE: Final = 28
"""Characters of a name in front of the text of its change; that of a longer one is below it."""

SHORT: Final = 12
"""Characters of the digest of a revision."""

ONE_TIME: Final = (
    "The API server keeps one time for each field manager of an object: that of its last write, with all fields that "
    "the manager owns."
)


def history_lines(history: ResourceHistory) -> Iterator[Line]:
    generation = history.resource.generation
    row = view_row(ResourceView(history.obj), note=f"(generation {generation})" if generation is not None else "")
    yield from tree_lines([replace(row, text="")])
    yield ()
    if earlier := history.changes[:-MAX_CHANGES]:
        yield (Span(f"  {len(earlier)} earlier changes are not shown (-o json has them)", Tone.FAINT),)
    shown = history.changes[-MAX_CHANGES:]
    namespace = history.resource.namespace
    titles = [change.key.title(namespace) if change.key is not None else "rules" for change in shown]
    width = max((len(title) for title in titles if len(title) <= MAX_TITLE), default=0)
    for change, title in zip(shown, titles, strict=True):
        head = f"  {change.time}  {ago(change.time, history.now):<10}  "
        start = (Span(head, Tone.FAINT), Span(f"{title:<{width}}", Tone.TITLE if change.key is None else Tone.PLAIN))
        lines = list(wrapped(_change(change), " " * (len(head) + width + 2), _tone(change)))
        yield (*start, Span("  "), lines.pop(0)[1]) if len(title) <= width else start
        yield from lines
    yield ()
    for text in (ONE_TIME, *history.notes):
        yield from wrapped(text, "", Tone.FAINT)


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
            count = f" (x{change.count})" if (change.count or 0) > 1 else ""
            return f"{change.reason}{count}: {change.message}"
    assert change.write is not None
    if change.what is What.STATUS:
        return f"status written by {change.write.manager}"
    generation = f" (generation {change.generation})" if change.generation is not None else ""
    names: Sequence[str] = change.fields or ()
    if len(names) > MAX_NAMED:
        more = [f"{len(change.groups) - MAX_GROUPS} more"] if len(change.groups) > MAX_GROUPS else []
        groups = _listed([*change.groups[:MAX_GROUPS], *more])
        return f"written by {change.write.manager}, which owns {len(names)} fields in {groups}{generation}"
    return f"written by {change.write.manager}, which owns {_listed(names)}{generation}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _tone(change: PastChange) -> Tone:
    if change.what is What.EVENT:
        return Tone.BAD if change.type == "Warning" else Tone.GOOD
    if change.what in {What.RULES, What.RELEASED, What.DELETION}:
        return Tone.CHANGE
    is_edit = change.what is What.WRITTEN and change.write is not None and not change.write.is_ruleop
    return Tone.WAIT if is_edit else Tone.PLAIN
