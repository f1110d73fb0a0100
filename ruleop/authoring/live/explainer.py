"""Explains one custom resource of a cluster: reads it, what is below it, and plans its next reconcile.

Without rules the objects below it are known by their labels alone: why a child waits, and what the next reconcile
would do, is not.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.custom_resource_reader import ResourceReader
from ruleop.authoring.live.explained_objects import Found, explained_objects, unready_pods
from ruleop.authoring.live.happenings import EVENT, events_about
from ruleop.authoring.live.operator import process_of
from ruleop.authoring.live.reading.reader import LiveObjects
from ruleop.authoring.live.rendered_lines import rendered_lines
from ruleop.authoring.report.explain_documents import Blocker, ExplainedObject, Explanation
from ruleop.authoring.report.plan_documents import with_masked_texts
from ruleop.authoring.report.spans import Tone
from ruleop.authoring.report.tree import Node, resource_node
from ruleop.files import read_regular
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.rules import MAX_CRD_BYTES
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.planning import State, choose_rule
from ruleop.planning.child.shown import is_wait_of
from ruleop.planning.model.actions import distinct
from ruleop.planning.model.conditions import find_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.live.reading.open_cluster import LiveCluster
    from ruleop.authoring.report.explain_documents import Occurrence
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project
    from ruleop.planning import ChildReport, Plan

_TONES: Final = {"ready": Tone.GOOD, "failed": Tone.BAD, "name conflict": Tone.BAD}


class Explainer:
    def __init__(self, cluster: LiveCluster, project: Project | None, notes: Iterable[str] = ()) -> None:
        """`notes`: what is not shown, and why."""
        self.cluster, self.reader, self.project = cluster, cluster.reader, project
        self.resource_reader = ResourceReader(cluster, notes)
        self.notes = self.resource_reader.notes
        if cluster.operator.others:
            self.notes.append(cluster.operator.problem)
        self.now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def explain(self, kind: str, name: str) -> Explanation:
        """Raises NotFoundError, UnknownKindError and ApiError."""
        return await self.explain_resource(await self.resource_reader.resource(kind, name, self.project))

    async def explain_resource(self, live: Object, *, child: str = "") -> Explanation:
        """Of one that was read. `child`: the one whose objects are shown as rendered. Raises ApiError."""
        key = ObjectKey.of(live)
        found = await self._found(live, child)
        masks = found.plan.masks if found.plan is not None else NO_MASKS
        objects = [each.masked(masks.text) for each in await self._with_pods(list(explained_objects(found)), found)]
        if found.plan is not None and (lines := rendered_lines(found.plan)):
            objects = [replace(each, rendered=lines.get(each.key, ())) for each in objects]
        events = [replace(each, message=masks.text(each.message)) for each in await self._events(key, objects)]
        plan = with_masked_texts(found.plan) if found.plan is not None else None
        status = found.resource.get("status")
        resource = {**found.resource, "status": masks.all(status) if isinstance(status, dict) else {}}
        return Explanation(
            resource=resource,
            tree=_tree(resource, objects, plan),
            kinds=self.cluster.kinds,
            now=self.now,
            rule=found.rule.title if found.rule is not None else "",
            objects=tuple(objects),
            blockers=tuple(self._blockers(plan)) if plan is not None else (),
            problems=tuple(f"{each.child}: {each.message}" for each in distinct(plan.problems if plan else ())),
            events=tuple(events),
            plan=found.plan,
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

    async def _with_pods(self, objects: Sequence[ExplainedObject], found: Found) -> list[ExplainedObject]:
        result = []
        for each in objects:
            live = found.objects.find(each.key)
            pods: list[ExplainedObject] = []
            if live is not None and not each.is_ready:
                try:
                    pods = await unready_pods(self.reader, live)
                except ApiError as error:
                    self.resource_reader.note_forbidden("pods", error)
            result.append(replace(each, parts=tuple(pods)) if pods else each)
        return result

    # -- why, and what happened ----------------------------------------------------------------------------------------

    def _blockers(self, plan: Plan) -> Iterator[Blocker]:
        blocking = {(each.child, each.key): each for each in plan.blocking}
        states = {each.id: each for each in plan.children}
        for wait in plan.waits:
            expression = blocking.get((wait.child, "waitFor"))
            if expression is not None and is_wait_of(wait, wait.child, expression.site):
                del blocking[wait.child, "waitFor"]
            else:
                expression = None
            values = (
                expression.values if expression is not None else tuple(_child_value(wait.for_what, wait.why, states))
            )
            text = expression.expression if expression is not None else ""
            yield Blocker(wait.child, wait.for_what, wait.why, wait.site, text, values, self._source(wait.site))
        for each in blocking.values():
            if each.key == "readyWhen":
                for_what = f"readyWhen: {each.expression}"
                source = self._source(each.site)
                yield Blocker(each.child, for_what, "ready", each.site, each.expression, each.values, source)

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

    async def _events(self, key: ObjectKey, objects: Sequence[ExplainedObject]) -> list[Occurrence]:
        keys = {key, *(each.key for each in objects), *(part.key for each in objects for part in each.parts)}
        try:
            return await events_about(self.reader, keys)
        except ApiError as error:
            self.resource_reader.note_forbidden(EVENT.kind.lower() + "s", error)
            return []


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


def _tree(resource: Object, objects: Sequence[ExplainedObject], plan: Plan | None) -> Node:
    namespace = resource["metadata"].get("namespace", "")
    node = replace(resource_node(resource, ()), children=tuple(_node(each, namespace) for each in objects))
    if plan is None or plan.status is not None or plan.conditions is None or find_condition(resource, "Ready"):
        return node
    ready = plan.conditions.ready  # the rule writes no status
    is_ready = ready.status == "True"
    state, tone = ("ready", Tone.GOOD) if is_ready else (ready.reason, Tone.WAIT)
    return replace(node, state=state, message=ready.message, tone=tone)


def _node(each: ExplainedObject, namespace: str) -> Node:
    key = each.key
    stub = {"kind": key.kind or "child", "metadata": {"name": key.name or f"({each.child})"}}
    own = key.namespace if key.namespace != namespace else ""
    parts = tuple(_node(part, key.namespace) for part in each.parts)
    return Node(stub, each.state, each.message, _TONES.get(each.state, Tone.WAIT), parts, own)
