"""The runs of the children of one custom resource in a plan: which objects they desire and keep, and their record."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ruleop.core.errors import RenderError
from ruleop.core.planning.child.child_plan import ready_when
from ruleop.core.planning.child.readiness import Readiness, readiness
from ruleop.core.planning.child.runs.once import (
    FAILED,
    MAX_EARLIER_OF_ITEMS,
    MAX_ITEMS,
    MAX_RECORDED,
    RETRY,
    SUCCEEDED,
    Recorded,
    Records,
    Run,
    Runs,
    abridged,
    can_record,
    group_in,
    group_of,
    no_record,
    run_of,
)
from ruleop.core.planning.child.runs.schedules import Due, due_run, kept_entries
from ruleop.core.planning.rendering.desired import is_enabled, render, wait_for
from ruleop.core.planning.rendering.items import name_of
from ruleop.core.planning.rendering.unplanned import ChildFails, ChildWaits
from ruleop.core.schema.crd.status_limits import OWN_CONDITIONS, limits_of, unwritten
from ruleop.core.schema.crd.structural import schema_at
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.core.kinds import Object, ObjectKey
    from ruleop.core.planning.child.child_plan import Existing
    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.planning.rendering.items import Item
    from ruleop.core.planning.rendering.scope import Scope
    from ruleop.core.rules import Child


class ChildRuns:
    def __init__(self, scope: Scope, existing: Mapping[str, list[Existing]]) -> None:
        """`existing`: the existing objects, by child."""
        self.scope = scope
        self._existing = existing
        self._due: dict[str, Due] = {}  # of schedules, as far as it is known
        self._recorded: dict[str, Recorded] = {}  # by child
        self._items: dict[str, dict[str, Run | None]] = {}  # the runs that items ask for now, by child and item
        self._grouped: dict[str, Mapping[str, Runs]] = {}  # by child and item
        self._known: set[str] = set()  # the children whose items are all in there

    def skip(self, child: Child) -> None:
        """Its `when` is false: nothing is due."""
        self._due[child.id] = Due()

    def desired(self, child: Child) -> list[Desired] | None:
        """The object of the run that the CR asks for. There is none if it has ended, or if no run is asked for."""
        names, resource = self.scope.names, self.scope.resource
        if child.once is not None:
            run = run_of(child, names, resource)
            is_asked = run is not None
        else:
            times, begun = self.scope.time_functions(), self.of(child).begun
            due = self._due[child.id] = due_run(child, names, resource, times, begun)
            run = due.run
            is_asked = bool(due.entries)
        if is_asked:
            self._require_record(child)
        return self._objects_of(child, run, names) if run is not None else None

    def desired_of_item(self, child: Child, item: Item) -> list[Desired]:
        """The object of the run that the CR asks for an item."""
        name = name_of(child, item.names)
        runs = self._items.setdefault(child.id, {})
        if not name or name in runs or len(runs) == MAX_ITEMS:
            raise ChildFails(_why_no_item(name, known=name in runs), child.site)
        runs[name] = None
        if child.when is not None and not is_enabled(child.when, item.names):
            return []
        run = runs[name] = run_of(child, item.names, self.scope.resource, item=name)
        if run is None:
            return []
        self._require_record(child)
        return self._objects_of(child, run, item.names, item.index, name)

    def complete_items(self, child: Child) -> None:
        """All its items are known: the others have no runs any more."""
        self._items.setdefault(child.id, {})
        self._known.add(child.id)

    def _require_record(self, child: Child) -> None:
        if why := self._why_no_record("once" if child.once is not None else "schedule"):
            raise ChildFails(why, child.site)

    def _objects_of(
        self, child: Child, run: Run, names: Mapping[str, Any], index: int = 0, item: str = ""
    ) -> list[Desired]:
        """The object of a run, until it has ended."""
        result = self.recorded(child).results.get(run.name, "")
        if result == FAILED:
            instead = "change the request id, or" if child.once is not None else "wait for the next one, or change"
            which = f"{run.id!r} of {item}" if item else repr(run.id)
            message = f"the run {which} has failed: {instead} the annotation {RETRY}{child.id}"
            raise ChildFails(message, child.site, reason="OnceFailed")
        if result == SUCCEEDED:
            return []
        if child.wait_for is not None:
            wait_for(child.wait_for, names)
        desired = [each.renamed(run.of(each.key.name)) for each in render(child, self.scope, names, index)]
        keys = {each.key for each in desired}
        runs = self._of_item(child, group_of(item)) if item else self.of(child)
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
        known = {*(rule.status.fields if rule.status is not None else ()), *(self.scope.resource.get("status") or ())}
        missing = [name for name in required if name not in known]
        return unwritten(kind, missing) if missing else ""

    def recorded(self, child: Child) -> Recorded:
        if child.id not in self._recorded:
            self._recorded[child.id] = Recorded.of(self.scope.resource, child)
        return self._recorded[child.id]

    def of(self, child: Child) -> Runs:

        def ready(live: Object) -> Readiness:
            if child.ready_when is None:
                return readiness(live)
            with contextlib.suppress(RenderError):
                return ready_when(child, self.scope.names, live)
            return Readiness(False)

        return Runs.of(child, self.recorded(child), self._existing.get(child.id, ()), ready)

    def kept(self) -> set[ObjectKey]:
        """The objects of runs that stay."""
        found: set[ObjectKey] = set()
        for child in self._children():
            if child.id in self._known:
                for runs, _, is_item in self._of_items(child):
                    found |= runs.kept() if is_item else set()
            elif child.for_each:
                found.update(each.key for each in self._existing.get(child.id, ()))
            else:
                found |= self.of(child).kept()
        return found

    def _of_items(self, child: Child) -> Iterator[tuple[Runs, str, bool]]:
        """The runs of each item, with its name, and of those that there were; whether it is an item now."""
        names = {group_of(name): name for name in self._items[child.id]}
        recorded = self.recorded(child).runs
        titles = {group_in(each["run"]): each["item"] for each in recorded if isinstance(each.get("item"), str)}
        for group in dict.fromkeys([*names, *self._by_item(child)]):
            yield self._of_item(child, group), names.get(group) or titles.get(group, ""), group in names

    def _by_item(self, child: Child) -> Mapping[str, Runs]:
        if child.id not in self._grouped:
            self._grouped[child.id] = self.of(child).by_item()
        return self._grouped[child.id]

    def _of_item(self, child: Child, group: str) -> Runs:
        found = self._by_item(child).get(group)
        return replace(self.of(child), recorded=(), objects=()) if found is None else found

    def records(self) -> Records:
        found: dict[str, list[dict[str, str]]] = {}
        skipped: list[tuple[Child, str]] = []
        prunes_next = False
        for child in self._children():
            if child.for_each:
                found[child.id], changes = self._record_of_items(child)
                prunes_next |= changes
                continue
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
                found[child.id] = abridged(record, self.recorded(child).earlier)
            prunes_next |= replace(runs, recorded=record).kept() != runs.kept()
        return Records(found, skipped, prunes_next)

    def _record_of_items(self, child: Child) -> tuple[list[dict[str, str]], bool]:
        """The record of all items, newest runs first, and whether an object can be deleted when the status has it. The
        last run of each item is in it with all its fields."""
        recorded, most = self.recorded(child), MAX_EARLIER_OF_ITEMS
        if child.id not in self._known:
            entries = [dict(each) for each in recorded.runs]
            return abridged(entries, recorded.earlier, whole={each["run"] for each in entries}, most=most), False
        found: list[dict[str, str]] = []
        whole: set[str] = set()
        prunes = False
        for runs, name, is_item in self._of_items(child):
            entries = runs.record(self._items[child.id].get(name), self.scope.observed.now)
            found += [{**each, "item": name} for each in entries]
            if is_item:
                whole.update(each["run"] for each in entries[:1])
                prunes |= replace(runs, recorded=entries).kept() != runs.kept()
        found.sort(key=lambda each: each["time"], reverse=True)
        return abridged(found, recorded.earlier, whole=whole, most=most), prunes

    def _children(self) -> Iterator[Child]:
        return (child for child in self.scope.rule.children.values() if child.runs)


def _why_no_item(name: str, *, known: bool) -> str:
    """The reason that an item cannot have runs of its own."""
    if not name:
        return "an item has no name: for `once` it is text or a number, or a mapping with `id`, `name` or `key`"
    if known:
        return f"two items are named {name!r}, and `once` tells them apart by their names"
    return f"a child with `once` can have at most {MAX_ITEMS} items"
