"""The runs of the children of one custom resource in a plan: which objects they desire and keep, and their record."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.core.errors import RenderError
from ruleop.core.planning.child.child_plan import ready_when
from ruleop.core.planning.child.readiness import Readiness, readiness
from ruleop.core.planning.child.runs.once import (
    FAILED,
    MAX_RECORDED,
    RETRY,
    SUCCEEDED,
    Records,
    Runs,
    abridged,
    can_record,
    no_record,
    result_of,
    run_of,
)
from ruleop.core.planning.child.runs.schedules import Due, due_run, kept_entries
from ruleop.core.planning.rendering.desired import render, wait_for
from ruleop.core.planning.rendering.unplanned import ChildFails, ChildWaits
from ruleop.core.schema.crd.status_limits import OWN_CONDITIONS, limits_of, unwritten
from ruleop.core.schema.crd.structural import schema_at
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.core.kinds import Object, ObjectKey
    from ruleop.core.planning.child.child_plan import Existing
    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.planning.rendering.scope import Scope
    from ruleop.core.rules import Child


class ChildRuns:
    def __init__(self, scope: Scope, existing: Mapping[str, list[Existing]]) -> None:
        """`existing`: the existing objects, by child."""
        self.scope = scope
        self._existing = existing
        self._due: dict[str, Due] = {}  # of schedules, as far as it is known

    def skip(self, child: Child) -> None:
        """Its `when` is false: nothing is due."""
        self._due[child.id] = Due()

    def desired(self, child: Child) -> list[Desired] | None:
        """The object of the run that the CR asks for. There is none if it has ended, or if no run is asked for."""
        names, resource = self.scope.names, self.scope.resource
        if child.once is not None:
            run, key, instead = run_of(child, names, resource), "once", "change the request id, or"
            is_asked = run is not None
        else:
            times, begun = self.scope.time_functions(), self.of(child).begun
            due = self._due[child.id] = due_run(child, names, resource, times, begun)
            run, key, instead = due.run, "schedule", "wait for the next one, or change"
            is_asked = bool(due.entries)
        if is_asked and (why := self._why_no_record(key)):
            raise ChildFails(why, child.site)
        if run is None:
            return None
        result = result_of(resource, child, run)
        if result == FAILED:
            message = f"the run {run.id!r} has failed: {instead} the annotation {RETRY}{child.id}"
            raise ChildFails(message, child.site, reason="OnceFailed")
        if result == SUCCEEDED:
            return []
        if child.wait_for is not None:
            wait_for(child.wait_for, names)
        desired = [each.renamed(run.of(each.key.name)) for each in render(child, self.scope, names, 0)]
        keys = {each.key for each in desired}
        runs = self.of(child)
        other = next((each for each in runs.unfinished() if each.key not in keys), None)
        if other is not None and not any(each.key in keys for each in runs.objects):
            raise ChildWaits(f"{other.key} to finish", child.site, why="child")
        return desired

    def _why_no_record(self, key: str) -> str:
        """The reason that no result can be recorded, so that everything would run again; empty if it can."""
        rule = self.scope.rule
        info, kind = self.scope.observed.kinds.info(rule.kind), rule.kind.kind
        if not can_record(info):
            return no_record(kind, key)
        schema = info.status_schema or {}
        if not (schema_at(schema, ("status",)) or {}).get("required") or isinstance(rule.status, TextTemplate):
            return ""
        required = limits_of(schema, OWN_CONDITIONS, generation=info.status_subresource).required
        known = {*(rule.status.built if rule.status is not None else ()), *(self.scope.resource.get("status") or ())}
        missing = [name for name in required if name not in known]
        return unwritten(kind, missing) if missing else ""

    def of(self, child: Child) -> Runs:

        def ready(live: Object) -> Readiness:
            if child.ready_when is None:
                return readiness(live)
            with contextlib.suppress(RenderError):
                return ready_when(child, self.scope.names, live)
            return Readiness(False)

        return Runs.of(child, self.scope.resource, self._existing.get(child.id, ()), ready)

    def kept(self) -> set[ObjectKey]:
        """The objects of runs that stay."""
        return {key for child in self._children() for key in self.of(child).kept()}

    def records(self) -> Records:
        found: dict[str, list[dict[str, str]]] = {}
        skipped: list[tuple[Child, str]] = []
        prunes_next = False
        for child in self._children():
            runs = self.of(child)
            if child.schedule is not None:
                due = self._due.get(child.id) or kept_entries(child, self.scope.resource)
                skipped += [(child, due.skipped)] if due.skipped else []
                record = due.recorded_with(runs.record(due.run, self.scope.observed.now)[:MAX_RECORDED])
                found[child.id] = record
            else:
                current = None
                with contextlib.suppress(ChildWaits, ChildFails):
                    current = run_of(child, self.scope.names, self.scope.resource)
                record = runs.record(current, self.scope.observed.now)
                found[child.id] = abridged(record, runs.earlier)
            prunes_next |= replace(runs, recorded=record).kept() != runs.kept()
        return Records(found, skipped, prunes_next)

    def _children(self) -> Iterator[Child]:
        return (child for child in self.scope.rule.children.values() if child.runs)
