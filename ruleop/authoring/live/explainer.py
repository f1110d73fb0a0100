"""Explains one custom resource of a cluster: reads it, what is below it, and plans its next reconcile.

Without rules the objects below it are known by their labels alone: why a child waits, and what the next reconcile
would do, is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.custom_resource_reader import ResourceReader
from ruleop.authoring.live.history import last_change, managed_fields
from ruleop.authoring.live.live_planner import LivePlanner
from ruleop.authoring.live.open_cluster import Processes
from ruleop.authoring.report import (
    STATE_WORDS,
    ObjectView,
    RenderedLine,
    ResourceView,
    object_problems,
    object_view,
    pod_reason,
    view_without_object,
    wait_message,
)
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.language.rules import Once, Patched, Scheduled
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.messages import shortened
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.planning import HELD_ADVICE, MAX_LINES, Owner, Plan, State, choose_rule, lines_of
from ruleop.planning.changes import changes
from ruleop.planning.model.actions import Delete, ResourceAction
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import RULEOP, claim_on, is_paused, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.live.open_cluster import LiveCluster
    from ruleop.authoring.live.reader import LiveObjects
    from ruleop.language.rules import Project
    from ruleop.planning import ChildReport, Kinds, ObjectReport


# -- objects -----------------------------------------------------------------------------------------------------------
# The objects of a custom resource, each with its state: as it is, and as the plan of the next reconcile sees it.


class _Objects:
    def __init__(self, planned: ResourceView, read: LiveObjects, kinds: Kinds) -> None:
        self.planned, self.read, self.kinds = planned, read, kinds
        self.plan = planned.plan or Plan(planned.key, "", "")  # without rules, nothing is known of the next reconcile
        actions = reversed(self.plan.actions)
        self._actions = {each.key: each for each in actions if not isinstance(each, ResourceAction)}
        self._held = {each.key: each for each in self.plan.held}

    def views(self) -> Iterator[ObjectView]:
        """The desired objects in the order of the rules, then the others that the custom resource owns."""
        owner = Owner.of(self.planned.obj)
        owned = {
            key: obj
            for obj in self.read.children(owner.part_of)
            if claim_on(obj, key := ObjectKey.of(obj), owner).owned
        }
        for report in self.plan.children:
            if report.state is State.UNWANTED:
                continue
            for each in report.objects:
                owned.pop(each.key, None)
                yield self._desired(report, each)
            if report.objects:
                continue
            existing = [key for key, obj in owned.items() if object_view(obj).child == report.id]
            if not existing and (report.state is not State.READY or isinstance(self._form(report), Once | Scheduled)):
                view = view_without_object(report, self.planned)
                yield replace(view, message="its run has succeeded") if report.state is State.READY else view
            for key in existing:
                if key not in self._held and key not in self._actions:
                    yield _kept(owned.pop(key), report)
        for key, obj in owned.items():
            yield self._other(key, obj)

    def _form(self, report: ChildReport) -> object:
        rule = self.planned.chosen
        child = rule.children.get(report.id) if rule is not None else None
        return child.form if child is not None else None

    def _desired(self, report: ChildReport, each: ObjectReport) -> ObjectView:
        resource, live, action = self.planned.obj, self.read.find(each.key), self._actions.get(each.key)
        state, message = STATE_WORDS[each.state], each.message
        if each.state is State.WAITING:
            message = wait_message(message) if live is None else _update_of(message)
        if live is None:
            missing = "missing" if each.state is State.PROGRESSING else state
            return ObjectView(each.key, missing, message, report.id, exists=False)
        is_stopped = is_paused(resource) and message.startswith("not ")
        if each.state is State.READY or (each.state is State.PROGRESSING and (action is not None or is_stopped)):
            own, more = object_view(live), ""
            if is_stopped:
                more = "will not be changed while the CR is paused"
            elif action is not None:
                failed = report.id in _failed_children(resource)
                more = "its last change failed" if failed else "will be changed"
            state, message = own.state, _joined(own.message, more)
        planned = [] if action is None else [each.path for each in changes(action, self.kinds, self.plan.masks)]
        manager = RULEOP
        if isinstance(self._form(report), Patched):
            label = part_of(resource)
            names = (one.name for one in managers_on(live) if (one.part_of, one.child) == (label, report.id))
            manager = next(names, "")  # empty: it has set no field
            if each.state is State.READY:  # whatever its own controller says of the object
                state, message = "ready", ""
            elif held := _held_by_others(resource, each.key):
                state, message = "not ready", held
        return _of_live(live, state, message, report.id, planned, manager)

    def _other(self, key: ObjectKey, obj: Object) -> ObjectView:
        """An owned object that is not among the desired ones, or of which no rules are known."""
        own, action, held = object_view(obj), self._actions.get(key), self._held.get(key)
        state, message = own.state, own.message
        if action is not None:
            state, message = "not desired", "will be deleted" if isinstance(action, Delete) else "will be released"
        elif held is not None:
            state, message = "not desired", f"its {held.verb} is held back {held.why}"
        return _of_live(obj, state, message, own.child)


def _kept(obj: Object, report: ChildReport) -> ObjectView:
    """An object of a child that waits, cannot be rendered, or has runs that ended: it stays as it is."""
    own = object_view(obj)
    more = _update_of(report.message) if report.message else ""
    return _of_live(obj, own.state, _joined(own.message, more), report.id)


def _update_of(message: str) -> str:
    """The reason that an existing object is not updated."""
    text = wait_message(message)
    return f"its update {text}" if text.startswith("waits for ") else f"its update: {text}"


def _of_live(
    obj: Object, state: str, message: str, child: str, planned: Sequence[str] = (), manager: str = RULEOP
) -> ObjectView:
    return ObjectView(
        ObjectKey.of(obj),
        state,
        message,
        child,
        problems=() if state == "ready" else object_problems(obj),
        last_change=last_change(obj),
        fields=tuple(managed_fields(obj, planned, manager=manager)) if state != "name conflict" else (),
    )


def _failed_children(resource: Object) -> set[str]:
    """The children that the operator reported an error of."""
    if find_condition(resource, "Stalled").get("status") != "True":
        return set()
    parts = str(find_condition(resource, "Ready").get("message") or "").split("; ")
    return {part.partition(": ")[0] for part in parts}


def _held_by_others(resource: Object, key: ObjectKey) -> str:
    """The fields of an object that others hold, as the operator has reported."""
    _, names_it, text = str(find_condition(resource, "Ready").get("message") or "").partition(f"{key}: ")
    ends = [end for advice in HELD_ADVICE if (end := text.find(advice) + len(advice)) >= len(advice)]
    return text[: min(ends)] if names_it and ends else ""


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


# -- the custom resource -----------------------------------------------------------------------------------------------

POD: Final = Kind("", "v1", "Pod")
MAX_PODS: Final = 5
MAX_VALUE: Final = 400
"""Characters of a value of a rendered object."""


class Explainer(ResourceReader):
    def __init__(self, cluster: LiveCluster, project: Project | None, notes: Iterable[str] = ()) -> None:
        super().__init__(cluster, notes)
        self.project = project
        if cluster.operator.others:
            self.notes.append(cluster.operator.problem)

    async def explain(self, kind: str, name: str) -> ResourceView:
        """Raises RuleopError."""
        return await self.explain_resource(await self.find(kind, name, self.project))

    async def explain_resource(self, live: Object, *, child: str = "") -> ResourceView:
        """The view of a custom resource that was read. `child`: its objects are shown as rendered. Raises ApiError."""
        planned, read = await self._planned(live, child)
        plan = planned.plan
        masks = plan.masks if plan is not None else NO_MASKS
        lines = _rendered(plan) if plan is not None else {}
        objects = [
            replace((await self._with_pods(each, read)).masked(masks.text), rendered=lines.get(each.key))
            for each in _Objects(planned, read, self.cluster.kinds).views()
        ]
        keys = {planned.key, *(each.key for each in objects), *(pod.key for each in objects for pod in each.pods)}
        events, processes = await self.events(keys), await Processes.of(self.reader, self.cluster.operator)
        status = planned.obj.get("status")
        resource = {**planned.obj, "status": masks.all(status) if isinstance(status, dict) else {}}
        return replace(
            planned,
            obj=resource,
            now=self.now,
            found=tuple(objects),
            events=tuple(replace(each, message=masks.text(each.message)) for each in events),
            operator=processes.reconciling(planned.obj),
            notes=tuple(self.notes),
        )

    # -- the resource and its children ---------------------------------------------------------------------------------

    async def _planned(self, live: Object, traced: str) -> tuple[ResourceView, LiveObjects]:
        if self.project is not None:
            if choose_rule(self.project.rules, live) is not None:
                planner = LivePlanner(self.cluster, self.project, traced=traced)
                (planned,) = await planner.plan([live])
                if planned.error:
                    self.notes.append(f"the next reconcile cannot be planned: {planned.error}")
                return planned, planner.objects
            self.notes.append(f"no rule of {self.project.root} selects it (see selector and namespaces)")
        return ResourceView(live), await self.read_children(live)

    async def _with_pods(self, view: ObjectView, read: LiveObjects) -> ObjectView:
        """A workload with its pods that are not ready, at most `MAX_PODS`; other objects have none. Raises ApiError."""
        live = read.find(view.key) if not view.ready else None
        if live is None or not (labels := _match_labels(live)):
            return view
        selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
        pods: list[ObjectView] = []
        try:
            async for page in self.reader.pages(POD, view.key.namespace, labels=selector):
                for pod in page:
                    found = object_view(pod)
                    if not found.ready and len(pods) < MAX_PODS:
                        why, change = object_problems(pod), last_change(pod)
                        pods.append(replace(found, message=pod_reason(pod), problems=why, last_change=change))
        except ApiError as error:
            self.note_forbidden("pods", error)
        return replace(view, pods=tuple(pods))


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
