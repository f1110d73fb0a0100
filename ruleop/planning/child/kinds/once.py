"""Children of which an object is made once for each run: the object of the run that is asked for is desired until it
has ended, and those of earlier runs stay for a while. With `once`, a run is asked for by a request id."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ruleop.errors import RenderError
from ruleop.kubernetes.crd import declares, schema_at
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.status_limits import OWN_CONDITIONS, limits_of, unwritten
from ruleop.language.templates import Later, ObjectsView, Origin, TextTemplate
from ruleop.messages import shortened
from ruleop.planning.child.child_plan import ready_when
from ruleop.planning.child.existing import existing_view
from ruleop.planning.child.kinds.ordinary import OrdinaryPlan
from ruleop.planning.child.kinds.run_records import (
    FAILED,
    MAX_EARLIER_OF_ITEMS,
    MAX_ID,
    MAX_ITEMS,
    PLACE,
    RETRY,
    SUCCEEDED,
    Recorded,
    Run,
    RunRecord,
    Runs,
    abridged,
    digest_of_texts,
    group_in,
    group_of,
)
from ruleop.planning.child.readiness import Readiness, readiness
from ruleop.planning.model.marks import annotations_of
from ruleop.planning.rendering.desired import is_enabled, render, wait_for
from ruleop.planning.rendering.items import name_of
from ruleop.planning.rendering.unplanned import ChildFails, ChildWaits, child_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Child, Once, Scheduled
    from ruleop.planning.child.child_plan import PassContext
    from ruleop.planning.child.existing import Existing
    from ruleop.planning.rendering.desired import Desired
    from ruleop.planning.rendering.items import LoopItem


class RunPlan(OrdinaryPlan):
    failure: ClassVar[str] = "OnceFailed"
    key: ClassVar[str]  # in the rules
    remedy: ClassVar[str]  # after a failed run
    form: Once | Scheduled

    @abstractmethod
    def record(self) -> RunRecord: ...

    @property
    def retry(self) -> str:
        found: str = annotations_of(self.context.scope.resource).get(RETRY + self.child.id, "")
        return found

    def requested(self, request: str) -> Run:
        return Run(shortened(request, MAX_ID), digest_of_texts(request, self.retry))

    def require_record(self) -> None:
        """Raises ChildFails if no result can be recorded: everything would run again."""
        scope, rule = self.context.scope, self.context.scope.rule
        info, kind, body = scope.observed.kinds.info(rule.kind), rule.kind.kind, rule.status.body
        if info.status_schema is not None and not declares(info.status_schema, ("status", *PLACE)):
            message = f"the CRD of {kind} has no status.{'.'.join(PLACE)}, so the API server would drop the results of "
            remedy = f"`{self.key}`: add it to the schema, with x-kubernetes-preserve-unknown-fields"
            raise ChildFails(message + remedy, self.child.site)
        schema = info.status_schema or {}
        if not (schema_at(schema, ("status",)) or {}).get("required") or isinstance(body, TextTemplate):
            return
        required = limits_of(schema, OWN_CONDITIONS, generation=info.status_subresource).required
        known = {*(body.fields if body is not None else ()), *(scope.resource.get("status") or ())}
        if missing := [name for name in required if name not in known]:
            raise ChildFails(unwritten(kind, missing), self.child.site)

    def objects_of(self, run: Run, item: LoopItem, runs: Runs, name: str = "") -> list[Desired]:
        """The object of a run, until it has ended. `runs`: all of the child, or those of the item of this name."""
        child = self.child
        result = self.recorded.results.get(run.name, "")
        if result == FAILED:
            which = f"{run.id!r} of {name}" if name else repr(run.id)
            message = f"the run {which} has failed: {self.remedy} the annotation {RETRY}{child.id}"
            raise ChildFails(message, child.site, reason="OnceFailed")
        if result == SUCCEEDED:
            return []
        if child.wait_for is not None:
            wait_for(child.wait_for, item.names)
        rendered = render(child, self.context.scope, item.names, item.place)
        desired = [each.renamed(run.of(each.key.name)) for each in rendered]
        keys = {each.key for each in desired}
        other = next((each for each in runs.unfinished() if each.key not in keys), None)
        if other is not None and not any(each.key in keys for each in runs.objects):
            raise ChildWaits(f"{other.key} to finish", child.site, why="child")
        return desired

    @cached_property
    def recorded(self) -> Recorded:
        return Recorded.of(self.context.scope.resource, self.child)

    @cached_property
    def runs(self) -> Runs:
        child, names = self.child, self.context.scope.names

        def ready(live: Object) -> Readiness:
            if child.ready_when is None:
                return readiness(live)
            with contextlib.suppress(RenderError):
                return ready_when(child, names, live)
            return Readiness(False)

        return Runs.of(self.form.history, self.recorded, self.context.by_id.get(child.id, ()), ready)

    def kept(self) -> frozenset[ObjectKey]:
        """The objects of runs that stay."""
        return self.runs.kept()

    def unknown_scopes(self) -> list[Mapping[str, Any]]:
        return []

    def view(self, existing: list[Existing]) -> Any:
        """The objects of ended runs, too, which are not desired any more."""
        if self.child.many and not self.incomplete:
            made = {each.desired.key: one for each, one in zip(self.objects, self.results(), strict=True) if one}
            ended = (each.live for each in existing if each.key not in made)
            return ObjectsView([*made.values(), *ended], self.child.id, Origin.LATER)
        if not self.objects:
            return existing_view(self.child, existing, Origin.LATER) if existing else Later(self.child.id)
        return super().view(existing)


class OncePlan(RunPlan):
    key: ClassVar[str] = "once"
    remedy: ClassVar[str] = "change the request id, or"

    form: Once

    def __init__(self, child: Child, context: PassContext) -> None:
        super().__init__(child, context)
        self._asked: dict[str, Run | None] = {}  # the runs that items ask for now, by item
        self._is_known = False  # all items are in there

    def items(self) -> Iterable[LoopItem] | None:
        found = super().items()
        return self._complete(found) if found is not None else None

    def _complete(self, items: Iterable[LoopItem]) -> Iterator[LoopItem]:
        """Notes afterwards that all items are known: the others have no runs any more."""
        yield from items
        self._is_known = True

    def desired(self, item: LoopItem) -> list[Desired] | None:
        """The object of the run that the CR asks for. There is none if it has ended, or if no run is asked for."""
        child, name = self.child, ""
        if child.for_each:
            name = name_of(child, item.names)
            if not name or name in self._asked or len(self._asked) == MAX_ITEMS:
                raise ChildFails(_why_no_item(name, known=name in self._asked), child.site)
            self._asked[name] = None
        if child.when is not None and not is_enabled(child.when, item.names):
            return None
        run = self._run(item.names, name)
        if name:
            self._asked[name] = run
        if run is None:
            return None
        self.require_record()
        return self.objects_of(run, item, self._of_item(group_of(name)) if name else self.runs, name)

    def _run(self, names: Mapping[str, Any], item: str = "") -> Run | None:
        """The run of the current request id; None if that is empty. `item`: the name of the item whose run it is.
        Raises ChildWaits and ChildFails."""
        try:
            request = self.form.request.string(names)
        except RenderError as error:
            raise child_error(error) from None
        if not request:
            return None
        return self._run_of_item(request, item) if item else self.requested(request)

    def _run_of_item(self, request: str, item: str) -> Run:
        """The run of an item. A retry is for the items that have failed: one that has succeeded stays as it is."""
        id_, group = shortened(request, MAX_ID), group_of(item)
        run = Run(id_, group + digest_of_texts(item, request))
        if not self.retry or self.recorded.results.get(run.name) == SUCCEEDED:
            return run
        for each in self.recorded.runs:
            if each.get("id") == id_ and each["result"] == SUCCEEDED and group_in(each["run"]) == group:
                return Run(id_, each["run"])
        return Run(id_, group + digest_of_texts(item, request, self.retry))

    @cached_property
    def _by_item(self) -> Mapping[str, Runs]:
        return self.runs.by_item()

    def _of_item(self, group: str) -> Runs:
        found = self._by_item.get(group)
        return replace(self.runs, recorded=(), objects=()) if found is None else found

    def _of_items(self) -> Iterator[tuple[Runs, str, bool]]:
        """The runs of each item, with its name, and of those that there were; whether it is an item now."""
        names = {group_of(name): name for name in self._asked}
        titles = {
            group_in(each["run"]): each["item"] for each in self.recorded.runs if isinstance(each.get("item"), str)
        }
        for group in dict.fromkeys([*names, *self._by_item]):
            yield self._of_item(group), names.get(group) or titles.get(group, ""), group in names

    def kept(self) -> frozenset[ObjectKey]:
        if not self.child.for_each:
            return super().kept()
        if not self._is_known:
            return frozenset(each.key for each in self.context.by_id.get(self.child.id, ()))
        return frozenset[ObjectKey]().union(*(runs.kept() for runs, _, is_item in self._of_items() if is_item))

    def record(self) -> RunRecord:
        recorded, now = self.recorded, self.context.scope.observed.now
        if self.child.for_each:
            return self._record_of_items(recorded, now)
        current = None
        with contextlib.suppress(ChildWaits, ChildFails):
            current = self._run(self.context.scope.names)
        entries = self.runs.record(current, now)
        return RunRecord(abridged(entries, recorded.earlier), self.runs.prunes(entries))

    def _record_of_items(self, recorded: Recorded, now: str) -> RunRecord:
        """The record of all items, newest runs first. The last run of each item is in it with all its fields."""
        most = MAX_EARLIER_OF_ITEMS
        if not self._is_known:
            kept = [dict(each) for each in recorded.runs]
            return RunRecord(
                abridged(kept, recorded.earlier, whole={each["run"] for each in kept}, most=most), prunes_next=False
            )
        found: list[dict[str, str]] = []
        whole: set[str] = set()
        prunes = False
        for runs, name, is_item in self._of_items():
            entries = runs.record(self._asked.get(name), now)
            found += [{**each, "item": name} for each in entries]
            if is_item:
                whole.update(each["run"] for each in entries[:1])
                prunes |= runs.prunes(entries)
        found.sort(key=lambda each: each["time"], reverse=True)
        return RunRecord(abridged(found, recorded.earlier, whole=whole, most=most), prunes)


def _why_no_item(name: str, *, known: bool) -> str:
    """The reason that an item cannot have runs of its own."""
    if not name:
        return "an item has no name: for `once` it is text or a number, or a mapping with `id`, `name` or `key`"
    if known:
        return f"two items are named {name!r}, and `once` tells them apart by their names"
    return f"a child with `once` can have at most {MAX_ITEMS} items"
