"""A custom resource in its cluster, for people: the tree and the reasons first, then what happened and what comes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.plan_text import PlanText
from ruleop.authoring.report.spans import Line, Place, Span, Tone, fitted, sections, wrapped
from ruleop.authoring.report.tree import tree_lines
from ruleop.authoring.report.view_text import ViewText, condition_lines, no_source
from ruleop.language.status_limits import unwritten
from ruleop.planning.model.conditions import find_condition, type_of
from ruleop.planning.model.marks import PAUSED, is_paused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.authoring.report.views import ManagedField, ResourceView

MAX_FIELDS: Final = 12
"""Fields of one object that are listed; all of them with `every_field`."""


def explanation_lines(
    view: ResourceView, *, place: Place = str, source: Place = no_source, every_field: bool = False
) -> Iterator[Line]:
    """A custom resource in its cluster. `every_field`: also the fields that no other client has changed."""
    text = _ExplainText(view, place, source)
    return sections(
        [
            ("", text.tree()),
            ("Why it is not ready", (*text.state(), *text.reasons())),
            ("Conditions", text.conditions()),
            ("Fields", text.fields(every_field=every_field)),
            ("Events", text.events()),
            ("Next reconcile", text.next_reconcile()),
            ("", text.notes()),
        ]
    )


class _ExplainText(ViewText):
    """A custom resource in its cluster."""

    def tree(self) -> Iterator[Line]:
        return tree_lines([self.row()], fit=True)

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
        waits = [f"{each.child} waits for {each.for_}" for each in view.waits if each.why != "ready"]
        unready = (self.title(each.key) for each in view.objects if not each.ready)
        return any(part in text for text in (*view.problems, *waits)) or any(
            part == f"{title} is not ready" or part.startswith(f"{title}: ") for title in unready
        )

    def conditions(self) -> Iterator[Line]:
        """The message of Ready is among the reasons."""
        found = [each for each in self.view.conditions if isinstance(each, dict)]
        shown = [{**each, "message": ""} if type_of(each) == "Ready" else each for each in found]
        return condition_lines(shown, {}, self.view.now, "  ")

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
        text = PlanText(view, self.place, self.source)
        yield from ((Span("  "), *line) for line in (*text.actions(), *text.end()))

    def notes(self) -> Iterator[Line]:
        if self.view.rule:
            yield (Span(f"by the rule {self.view.rule}", Tone.FAINT),)
        for note in filter(None, (self.view.operator, *self.view.notes)):
            yield from wrapped(note, "", Tone.FAINT)
