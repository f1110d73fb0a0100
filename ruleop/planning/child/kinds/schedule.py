"""Children with `schedule`: an object is made once for each time of a cron schedule.

A run by the schedule is one of `once` whose request id is its time. The record has two more entries: since when the
schedule is in force, because no run is due for an earlier time, and the run that was skipped last. Only the last time
is made up for, within the child's deadline: an earlier run that has not begun is skipped.

The record is what keeps a time from being due twice. So where the clock was set back, nothing is due before the time
of the last run has come again; a record of more than a day ahead is of a clock that was wrong, and does not count.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ruleop.errors import RenderError
from ruleop.kubernetes.cron import last_time, next_time, schedule_fault, zone_fault
from ruleop.planning.child.kinds.once import RunPlan
from ruleop.planning.child.kinds.run_records import (
    ENDED,
    MAX_RECORDED,
    SCHEDULED,
    SKIPPED,
    Run,
    RunRecord,
    digest_of_texts,
)
from ruleop.planning.model.observed import parse_time
from ruleop.planning.rendering.desired import is_enabled
from ruleop.planning.rendering.unplanned import ChildFails, child_error
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Scheduled
    from ruleop.language.templates import StringTemplate
    from ruleop.planning.rendering.desired import Desired
    from ruleop.planning.rendering.items import LoopItem

_OF_SCHEDULE: Final = frozenset({SKIPPED, SCHEDULED})
_AHEAD: Final = 24 * 3600.0  # seconds for which a record of the future counts


@dataclass(frozen=True, slots=True)
class Due:
    """The run that a schedule asks for now, if any, and the entries of the record about the schedule."""

    run: Run | None = None
    skipped: str = ""  # the time of a run that this pass skips
    entries: tuple[Mapping[str, str], ...] = ()

    def recorded_with(self, runs: list[dict[str, str]]) -> list[dict[str, str]]:
        """The record with the runs, newest first."""
        names = {each["run"] for each in runs}
        skipped = [dict(each) for each in self.entries if each["result"] == SKIPPED and each["run"] not in names]
        in_force = [dict(each) for each in self.entries if each["result"] == SCHEDULED]
        return [*sorted([*runs, *skipped], key=lambda each: _moment(each) or 0.0, reverse=True), *in_force]


class SchedulePlan(RunPlan):
    key: ClassVar[str] = "schedule"
    remedy: ClassVar[str] = "wait for the next one, or change"
    form: Scheduled
    _due: Due | None = None  # None: not known

    def desired(self, item: LoopItem) -> list[Desired] | None:
        """The object of the run that is due. There is none if it has ended, or if nothing is due."""
        if self.child.when is not None and not is_enabled(self.child.when, item.names):
            self._due = Due()
            return None
        due = self._due = self._find_due(item.names)
        if due.entries:
            self.require_record()
        return self.objects_of(due.run, item, self.runs) if due.run is not None else None

    def record(self) -> RunRecord:
        due, recorded = self._due, self.recorded.runs
        if due is None:
            due = Due(entries=tuple(each for each in recorded if each["result"] in _OF_SCHEDULE))
        runs = self.runs.record(due.run, self.context.scope.observed.now)
        entries = due.recorded_with(runs[:MAX_RECORDED])
        return RunRecord(entries, self.runs.prunes(entries), due.skipped)

    def _find_due(self, names: Mapping[str, Any]) -> Due:
        """Raises ChildWaits and ChildFails."""
        resource, times, begun = self.context.scope.resource, self.context.scope.time_functions(), self.runs.begun
        text, zone = _text(self.form.text, names, schedule_fault), "UTC"
        if self.form.zone is not None:
            zone = _text(self.form.zone, names, zone_fault) or zone
        if not text:
            return Due()
        recorded, now = self.recorded.runs, times.now
        in_force = _in_force(recorded, text, zone, resource, now)
        since = parse_time(in_force["time"])
        runs = [each for each in recorded if each["result"] != SCHEDULED and (_moment(each) or now) <= now + _AHEAD]
        latest = max((moment for each in runs if (moment := _moment(each)) is not None), default=-math.inf)

        def due(run: Run | None, skipped: str = "", *, starts_until: float = now) -> Due:
            if (following := next_time(text, max(now, latest), zone)) is not None:
                times.changes_at(following, f"the next run of {self.child.id} is due")
            times.changes_at(starts_until, f"the startingDeadline of {self.child.id} ends")
            last = (
                {"id": skipped, "run": self.requested(skipped).name, "result": SKIPPED, "time": times.text}
                if skipped
                else next((each for each in recorded if each["result"] == SKIPPED), None)
            )
            return Due(run, skipped, (*([last] if last is not None else ()), in_force))

        moment = last_time(text, now, zone, since=since)
        is_new = moment is not None and moment > latest
        if moment is None or not is_new:
            moment = latest
        if moment == -math.inf:
            return due(None)
        run, until = self.requested(_stamp(moment)), moment + self.form.deadline
        results = {each["run"]: each["result"] for each in runs if each.get("id") == run.id}
        if results and not self.retry:
            run = Run(run.id, next(iter(results)))
        missed = ""
        if is_new and (earlier := last_time(text, moment - 1, zone, since=max(since, latest + 1))) is not None:
            missed = _stamp(earlier)
            missed = "" if self.requested(missed).name in begun else missed
        result = results.get(run.name, "")
        if run.name in begun or result in ENDED or (results and not result):  # the last: a new retry
            return due(run, missed)
        if result != SKIPPED and now < until:
            return due(run, missed, starts_until=until)
        others = (each for each in runs if each["result"] in ENDED or each["run"] in begun)
        before = next((Run(each["id"], each["run"]) for each in others if _moment(each) is not None), None)
        return due(before, "" if result == SKIPPED else run.id)


def _text(template: StringTemplate, names: Mapping[str, Any], fault: Callable[[str], str]) -> str:
    try:
        text = template.string(names)
    except RenderError as error:
        raise child_error(error) from None
    if problem := fault(text):
        raise ChildFails(problem, template.site, redacted="the schedule or its time zone is not valid")
    return text


def _in_force(
    recorded: Iterable[Mapping[str, str]], text: str, zone: str, resource: Object, now: float
) -> Mapping[str, str]:
    """The entry of the schedule, with the time since which it is in force. That of a custom resource without a status
    is in force since its creation; another one is new, or was changed."""
    name = digest_of_texts(text, zone)
    for each in recorded:
        if each["result"] == SCHEDULED and each["run"] == name and _seconds(each["time"], math.inf) <= now + _AHEAD:
            return each
    created = now if resource.get("status") else _seconds(resource["metadata"].get("creationTimestamp"), now)
    return {"id": f"{text} {zone}", "run": name, "result": SCHEDULED, "time": _stamp(min(created, now))}


def _moment(entry: Mapping[str, str]) -> float | None:
    """The time of a run by a schedule; None for a run by `once`."""
    found = _seconds(entry.get("id"), -math.inf)
    return found if found != -math.inf and _stamp(found) == entry["id"] else None


def _seconds(text: Any, otherwise: float) -> float:
    try:
        return parse_time(text)
    except (TypeError, ValueError, OverflowError):
        return otherwise


def _stamp(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
