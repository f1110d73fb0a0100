"""Explains one custom resource of a cluster: reads it, what is below it, and plans its next reconcile.

Without rules the objects below it are known by their labels alone: why a child waits, and what the next reconcile
would do, is not.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.custom_resource_reader import ResourceReader
from ruleop.authoring.live.explained_objects import Found, explained_objects
from ruleop.authoring.live.field_managers import last_change
from ruleop.authoring.live.live_planner import LivePlanner
from ruleop.authoring.live.operator import process_of
from ruleop.authoring.live.reading.reader import LiveObjects
from ruleop.authoring.report import (
    ObjectView,
    Planned,
    RenderedLine,
    ResourceView,
    object_problems,
    object_view,
    pod_reason,
    waits_of,
)
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.messages import shortened
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.planning import choose_rule
from ruleop.planning.rendering.child_field_sites import MAX_LINES, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.live.reading.open_cluster import LiveCluster
    from ruleop.authoring.live.reading.reader import Reader
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project
    from ruleop.planning import Plan

POD: Final = Kind("", "v1", "Pod")
MAX_PODS: Final = 5
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
        """The view of a custom resource that was read. `child`: its objects are shown as rendered. Raises ApiError."""
        found = await self._found(live, child)
        planned, plan = found.planned, found.plan
        masks = plan.masks if plan is not None else NO_MASKS
        objects = [each.masked(masks.text) for each in await self._with_pods(list(explained_objects(found)), found)]
        if plan is not None and (lines := _rendered(plan)):
            objects = [replace(each, rendered=lines.get(each.key)) for each in objects]
        keys = {planned.key, *(each.key for each in objects), *(pod.key for each in objects for pod in each.pods)}
        events = await self.resource_reader.events(keys)
        status = planned.resource.get("status")
        resource = {**planned.resource, "status": masks.all(status) if isinstance(status, dict) else {}}
        return ResourceView(
            replace(planned, resource=resource),
            kinds=self.cluster.kinds,
            now=self.now,
            waits=tuple(waits_of(plan)) if plan is not None else (),
            objects=tuple(objects),
            events=tuple(replace(each, message=masks.text(each.message)) for each in events),
            operator=await process_of(self.reader, self.cluster.operator, planned.resource),
            notes=tuple(self.notes),
        )

    # -- the resource and its children ---------------------------------------------------------------------------------

    async def _found(self, live: Object, traced: str = "") -> Found:
        if self.project is not None:
            if choose_rule(self.project.rules, live) is not None:
                planner = LivePlanner(self.cluster, self.project, traced=traced)
                (planned,) = await planner.plan([live])
                if planned.error:
                    self.notes.append(f"the next reconcile cannot be planned: {planned.error}")
                return Found(planned, planner.objects, self.cluster.kinds)
            self.notes.append(f"no rule of {self.project.root} selects it (see selector and namespaces)")
        objects = LiveObjects()
        await self.resource_reader.read_children(live, objects)
        return Found(Planned(live), objects, self.cluster.kinds)

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


async def unready_pods(reader: Reader, workload: Object) -> list[ObjectView]:
    """The pods of a workload that are not ready, at most `MAX_PODS`; none for other objects. Raises ApiError."""
    labels = _match_labels(workload)
    if not labels:
        return []
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    found: list[ObjectView] = []
    async for page in reader.pages(POD, workload["metadata"].get("namespace", ""), labels=selector):
        for pod in page:
            view = object_view(pod)
            if not view.ready and len(found) < MAX_PODS:
                why, change = object_problems(pod), last_change(pod)
                found.append(replace(view, message=pod_reason(pod), problems=why, last_change=change))
    return found


def _match_labels(workload: Object) -> Mapping[str, Any]:
    spec = workload.get("spec")
    selector = spec.get("selector") if isinstance(spec, Mapping) and "template" in spec else None
    labels = selector.get("matchLabels") if isinstance(selector, Mapping) else None
    return labels if isinstance(labels, Mapping) else {}


def _rendered(plan: Plan) -> dict[ObjectKey, tuple[RenderedLine, ...]]:
    """The lines of the objects that the plan has traced, with values of Secrets masked."""
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
