"""Explains one custom resource of a cluster: reads it, what is below it, and plans its next reconcile.

Without rules the objects below it are known by their labels alone: why a child waits, and what the next reconcile
would do, is not.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.custom_resource_reader import ResourceReader
from ruleop.authoring.live.explained_objects import Found, explained_objects, unready_pods
from ruleop.authoring.live.operator import process_of
from ruleop.authoring.live.reading.reader import LiveObjects
from ruleop.authoring.report.plan_documents import with_masked_texts
from ruleop.authoring.report.views import ObjectView, ReadValue, RenderedLine, ResourceView, WaitView
from ruleop.files import read_regular
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.rules import MAX_CRD_BYTES
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.messages import shortened
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.planning import State, choose_rule
from ruleop.planning.child.shown import is_wait_of
from ruleop.planning.model.actions import distinct
from ruleop.planning.rendering.child_field_sites import MAX_LINES, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.live.reading.open_cluster import LiveCluster
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project
    from ruleop.planning import ChildReport, Plan

MAX_VALUE: Final = 400
"""Characters of a value of a rendered object."""


class Explainer:
    def __init__(self, cluster: LiveCluster, project: Project | None, notes: Iterable[str] = ()) -> None:
        """`notes`: what is not shown, and why."""
        self.cluster, self.reader, self.project = cluster, cluster.reader, project
        self.resource_reader = ResourceReader(cluster, notes)
        self.notes = self.resource_reader.notes
        if cluster.operator.others:
            self.notes.append(cluster.operator.problem)
        self.now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def explain(self, kind: str, name: str) -> ResourceView:
        """Raises NotFoundError, UnknownKindError and ApiError."""
        return await self.explain_resource(await self.resource_reader.resource(kind, name, self.project))

    async def explain_resource(self, live: Object, *, child: str = "") -> ResourceView:
        """Of one that was read. `child`: the one whose objects are shown as rendered. Raises ApiError."""
        key = ObjectKey.of(live)
        found = await self._found(live, child)
        masks = found.plan.masks if found.plan is not None else NO_MASKS
        objects = [each.masked(masks.text) for each in await self._with_pods(list(explained_objects(found)), found)]
        if found.plan is not None and (lines := _rendered(found.plan)):
            objects = [replace(each, rendered=lines.get(each.key)) for each in objects]
        keys = {key, *(each.key for each in objects), *(pod.key for each in objects for pod in each.pods)}
        events = await self.resource_reader.events(keys)
        plan = with_masked_texts(found.plan) if found.plan is not None else None
        status = found.resource.get("status")
        resource = {**found.resource, "status": masks.all(status) if isinstance(status, dict) else {}}
        return ResourceView(
            resource,
            kinds=self.cluster.kinds,
            now=self.now,
            plan=plan,
            rule=found.rule.title if found.rule is not None else None,
            problems=tuple(f"{each.child}: {each.message}" for each in distinct(plan.problems if plan else ())),
            waits=tuple(self._waits(plan)) if plan is not None else (),
            objects=tuple(objects),
            events=tuple(replace(each, message=masks.text(each.message)) for each in events),
            operator=await process_of(self.reader, self.cluster.operator, found.resource),
            notes=tuple(self.notes),
        )

    # -- the resource and its children ---------------------------------------------------------------------------------

    async def _found(self, live: Object, traced: str = "") -> Found:
        if self.project is not None:
            rule = choose_rule(self.project.rules, live)
            if rule is not None:
                planner = self.cluster.planner(self.project)
                planner.traced = traced
                (planned,) = await planner.plan([live])
                if planned.error:
                    self.notes.append(f"the next reconcile cannot be planned: {planned.error}")
                return Found(planned.resource, planner.objects, self.cluster.kinds, rule, planned.plan)
            self.notes.append(f"no rule of {self.project.root} selects it (see selector and namespaces)")
        objects = LiveObjects()
        await self.resource_reader.read_children(live, objects)
        return Found(live, objects, self.cluster.kinds)

    async def _with_pods(self, objects: Sequence[ObjectView], found: Found) -> list[ObjectView]:
        result = []
        for each in objects:
            live = found.objects.find(each.key)
            pods: list[ObjectView] = []
            if live is not None and not each.ready:
                try:
                    pods = await unready_pods(self.reader, live)
                except ApiError as error:
                    self.resource_reader.note_forbidden("pods", error)
            result.append(replace(each, pods=tuple(pods)) if pods else each)
        return result

    # -- why, and what happened ----------------------------------------------------------------------------------------

    def _waits(self, plan: Plan) -> Iterator[WaitView]:
        blocking = {(each.child, each.key): each for each in plan.blocking}
        states = {each.id: each for each in plan.children}
        for wait in plan.waits:
            expression = blocking.get((wait.child, "waitFor"))
            if expression is not None and is_wait_of(wait, wait.child, expression.site):
                del blocking[wait.child, "waitFor"]
            else:
                expression = None
            found = expression.values if expression is not None else _child_value(wait.for_what, wait.why, states)
            values = tuple(ReadValue(path, value) for path, value in found)
            text = expression.expression if expression is not None else ""
            yield WaitView(wait.child, wait.for_what, wait.why, wait.site, text, values, self._source(wait.site))
        for each in blocking.values():
            if each.key == "readyWhen":
                for_what = f"readyWhen: {each.expression}"
                source = self._source(each.site)
                values = tuple(ReadValue(path, value) for path, value in each.values)
                yield WaitView(each.child, for_what, "ready", each.site, each.expression, values, source)

    def _source(self, site: Site | None) -> str:
        """The line of the project at a place."""
        if site is None or not site.line or self.project is None:
            return ""
        try:
            text = read_regular(Path(self.project.root, site.path), MAX_CRD_BYTES).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return ""
        lines = text.split("\n")
        return lines[site.line - 1].strip() if site.line <= len(lines) else ""


def _child_value(for_what: str, why: str, states: dict[str, ChildReport]) -> Iterator[tuple[str, str]]:
    """The state of the child, or the object, that another one waits for."""
    if why == "object" and for_what.endswith(")"):
        yield for_what.rpartition("(")[2].removesuffix(")"), "does not exist"
    report = states.get(for_what.partition(" ")[0].partition(".")[0]) if why in {"child", "value"} else None
    if report is None:
        return
    unready = [each for each in report.objects if each.state is not State.READY]
    titles = [f"{each.key.kind}/{each.key.name}: {each.message}".removesuffix(": ") for each in unready[:3]]
    yield report.id, "; ".join([report.state.value, *titles])


def _rendered(plan: Plan) -> dict[ObjectKey, tuple[RenderedLine, ...]]:
    """Of the objects that the plan has traced, with values of Secrets masked."""
    objects = {ObjectKey.of(obj): obj for _, _, obj in plan.rendered}
    return {key: tuple(_rendered_lines(plan, objects[key])) for key in plan.traced if key in objects}


def _rendered_lines(plan: Plan, rendered: Object) -> Iterator[RenderedLine]:
    """The masked object has the same lines, unless a name of a field is masked: then no line is known."""
    masked = list(islice(lines_of(plan.masks.object(rendered)), MAX_LINES))
    sites = plan.traced[ObjectKey.of(rendered)]
    is_same = [path for path, _ in masked] == [path for path, _ in islice(lines_of(rendered), MAX_LINES)]
    for number, (path, value) in enumerate(masked):
        name = step if isinstance(step := path[-1], str) else "-"
        has_more = isinstance(value, dict | list) and bool(value)
        text = None if has_more else shortened(json.dumps(value, ensure_ascii=False), MAX_VALUE)
        site = sites[number] if is_same and number < len(sites) else None
        yield RenderedLine(len(path) - 1, name, text, site)
