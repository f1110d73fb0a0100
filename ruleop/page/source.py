"""The content of the page, from a running operator: as plain data, without HTML."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlencode

from ruleop.authoring.generate import figure, rule_graph
from ruleop.authoring.live import (
    Explainer,
    LiveCluster,
    LiveKinds,
    Operator,
    Reader,
    rollout_documents,
)
from ruleop.authoring.report import Tone, plan_document
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.permissions import listed
from ruleop.language.rules.checking import build_with_sources
from ruleop.operator.queue import Request
from ruleop.operator.rollouts import watch_key
from ruleop.operator.wire.watch.store import StoreState
from ruleop.planning import choose_rule
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.marks import part_of
from ruleop.planning.rollout import WaveView, in_order, member_of, size_of_wave
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from ruleop.authoring.generate import GraphNode, RuleGraph
    from ruleop.authoring.report import ObjectView, ResourceView
    from ruleop.kubernetes.kinds import GroupKind, Kind, Object
    from ruleop.language.rules import Observe, Project, Rule
    from ruleop.language.rules.loading import Loaded
    from ruleop.operator.cache import Cache, Informer
    from ruleop.operator.controllers import Controller
    from ruleop.operator.manager.manager import Manager
    from ruleop.operator.manager.parts import Server
    from ruleop.operator.wire.watch.store import StoreEntry
    from ruleop.planning import KindInfo, Plan, Served
    from ruleop.planning.rollout import RolloutRecord


# -- own reading -------------------------------------------------------------------------------------------------------
# Reads the cluster for the page of one custom resource: with the permissions of the operator, which has no `get` for
# objects that it observes, and by what the operator knows already.
#
# Kinds and observed objects come from its caches, as in its passes. Children are listed, because the caches leave out
# whose fields are whose.


class OwnReader(Reader):
    def __init__(self, server: Server, cache: Cache) -> None:
        super().__init__(server.session, server.namespace, server.discovery)
        self._cache = cache

    async def get(self, kind: Kind, key: ObjectKey) -> Object | None:
        if any(_has(informer, kind, key) for informer in self._cache.observed.get(key.group_kind, ())):
            return self._cache.get(key, version=kind.version, partial=True)
        return await super().get(kind, key)


def _has(informer: Informer, kind: Kind, key: ObjectKey) -> bool:
    """Whether the cache has the object if it exists."""
    need = informer.need
    return (
        need.kind == kind
        and not need.labels
        and need.fields in {"", f"metadata.name={key.name}"}
        and need.namespace in {"", key.namespace}
        and informer.state_in(key.namespace) is StoreState.SYNCED
    )


class OwnKinds(LiveKinds):
    """The kinds as the passes of one custom resource see them."""

    def __init__(self, cache: Cache, namespace: str) -> None:
        self._seen = cache.seen_from(namespace)
        self.forbidden, self.unread = set(), set()

    def info(self, kind: Kind) -> KindInfo:
        return self._seen.info(kind)

    def state_of(self, observe: Observe) -> Served:
        return self._seen.state_of(observe)

    def forbid(self, kind: Kind) -> None:
        raise RuleopError(f"not permitted to read {kind.kind}")

    async def learn(self, kinds: Iterable[Kind]) -> None:
        """The caches know them."""


# -- source ------------------------------------------------------------------------------------------------------------

CHUNK: Final = 1000  # custom resources between two turns of the loop
PAGE: Final = 50  # custom resources of one page of the list
MAX_TILES: Final = 400  # of one group of a rollout
MAX_ORDERED: Final = 500  # custom resources that are parsed to know their waves

Health = Literal["ready", "waiting", "failed", "unknown"]
STATES: Final[tuple[Health, ...]] = ("failed", "waiting", "ready", "unknown")
HEALTHS: Final[Mapping[Tone, Health]] = {Tone.GOOD: "ready", Tone.WAIT: "waiting", Tone.BAD: "failed"}
_MARKS: Final = {"ready": "●", "waiting": "◐", "failed": "✕"}


class NotFound(Exception):  # noqa: N818 - an answer to a request, not an error of the program
    """There is nothing of this name."""


@dataclass(frozen=True, slots=True)
class PageFilter:
    """The custom resources that are listed. An empty field selects all."""

    kind: str = ""
    namespace: str = ""
    reason: str = ""
    state: str = ""
    text: str = ""
    page: int = 1

    def query(self, **changes: Any) -> str:
        """The query of the URL of the list with these changes."""
        found = {name: changes.get(name, getattr(self, name)) for name in self.__slots__}
        return urlencode({name: value for name, value in found.items() if value and (name, value) != ("page", 1)})


@dataclass(frozen=True, slots=True)
class _Line:
    """A custom resource, as far as the list is filtered by it."""

    key: ObjectKey
    entry: StoreEntry
    reason: str
    state: Health
    words: str  # that the operator reported

    @property
    def message(self) -> str:
        return self.words.strip() if self.reason == "Error" else str(self._ready.get("message") or "")

    @property
    def since(self) -> str:
        return str(self._ready.get("lastTransitionTime") or "")

    @property
    def _ready(self) -> Mapping[str, object]:
        return find_condition(self.entry.parsed(), "Ready")


@dataclass(slots=True)
class _Graphs:
    """The rules with their sources, which the graph is made of, as long as they are in force."""

    digest: str = ""
    loaded: Loaded | None = None
    graphs: dict[str, RuleGraph] = field(default_factory=dict)


class PageSource:
    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self._graphs = _Graphs()

    # -- kinds ---------------------------------------------------------------------------------------------------------

    async def kinds(self) -> list[dict[str, Any]]:
        """Of each watched kind the number of its custom resources, by state and by reason."""
        return [await self._kind(each) for each in self._controllers()]

    def _controllers(self, kind: str = "") -> list[Controller]:
        """All, or that of one kind."""
        return [
            each for each in self.manager.work.controllers if kind in {"", str(each.kind.versionless), each.kind.kind}
        ]

    async def _kind(self, controller: Controller) -> dict[str, Any]:
        lines = [line async for line in self._lines(controller)]
        states, reasons = Counter(each.state for each in lines), Counter((each.state, each.reason) for each in lines)
        return {
            "title": str(controller.kind.versionless),
            "kind": controller.kind,
            "watches": [rule.title for rule in controller.rules],
            "total": len(lines),
            "states": {state: states[state] for state in STATES if states[state]},
            "reasons": [
                {"reason": reason, "state": state, "count": count}
                for (state, reason), count in sorted(
                    reasons.items(), key=lambda each: (STATES.index(each[0][0]), -each[1], each[0][1])
                )
            ],
        }

    async def _lines(self, controller: Controller) -> AsyncIterator[_Line]:
        """All custom resources of a kind, by what the operator reported of them last; only one that it did not
        reconcile yet, or does not reconcile, is parsed."""
        reports = controller.reconciler.pass_log.reported
        async for key, entry in self._entries(controller.kind.versionless):
            report = reports.get(Request(key.namespace, key.name))
            if report is not None and (report.state or report.failure):
                reason = "Error" if report.failure else report.reason
                words = " ".join((report.failure, report.status_failure, *report.waiting))
                yield _Line(key, entry, reason, "failed" if report.failure else report.state or "unknown", words)
            else:
                obj = entry.parsed()
                reason = str(find_condition(obj, "Ready").get("reason") or "Unknown")
                yield _Line(key, entry, reason, _state_of(obj), "")

    async def _entries(self, kind: GroupKind) -> AsyncIterator[tuple[ObjectKey, StoreEntry]]:
        """The custom resources of a kind. Others run in between, because there may be many."""
        for number, each in enumerate(list(self.manager.known.cache.resources(kind))):
            if number % CHUNK == CHUNK - 1:
                await asyncio.sleep(0)
            yield each

    # -- the list ------------------------------------------------------------------------------------------------------

    async def resources(self, chosen: PageFilter) -> dict[str, Any]:
        """The custom resources that the filter selects, one page of them."""
        lines = [line for each in self._controllers(chosen.kind) async for line in self._lines(each)]
        text = chosen.text.casefold()
        found = [
            line
            for line in lines
            if chosen.namespace in {"", line.key.namespace}
            and chosen.reason in {"", line.reason}
            and chosen.state in {"", line.state}
            and (not text or text in f"{line.key.namespace}/{line.key.name} {line.reason} {line.words}".casefold())
        ]
        found.sort(key=lambda line: (line.key.namespace, line.key.name, line.key.kind))
        pages = max(1, -(-len(found) // PAGE))
        page = min(max(1, chosen.page), pages)
        return {
            "filter": replace(chosen, page=page),
            "kinds": [str(each.kind.versionless) for each in self.manager.work.controllers],
            "namespaces": sorted({line.key.namespace for line in lines if line.key.namespace}),
            "reasons": sorted({line.reason for line in lines if line.reason}),
            "states": STATES,
            "total": len(lines),
            "matching": len(found),
            "pages": pages,
            "rows": found[PAGE * (page - 1) : PAGE * page],
        }

    # -- one custom resource -------------------------------------------------------------------------------------------

    def controller(self, title: str) -> Controller:
        """Raises NotFound."""
        found = self._controllers(title)
        if not title or not found:
            raise NotFound(f"no rule watches {title}")
        return found[0]

    async def resource(self, title: str, namespace: str, name: str, node: str = "") -> dict[str, Any]:
        """The view of a custom resource that `explain` prints, and the graph of its rule. `node`: the child whose
        objects are shown as rendered. Raises NotFound and RuleopError."""
        kind = self.controller(title).kind
        key = ObjectKey(kind.group, kind.kind, namespace, name)
        cluster = self._cluster(namespace)
        live = await cluster.reader.get(kind, key)
        if live is None:
            raise NotFound(f"{title} {f'{namespace}/' if namespace else ''}{name} does not exist")
        project = self._project_of(live)
        found = await _explanation(cluster, project, live, node)
        rule = choose_rule(project.rules, live)
        graph = await self._graph(project, rule) if rule is not None else None
        return {
            "explained": found,
            "next": plan_document(found) if found.plan is not None else None,
            "key": key,
            "graph": figure(_coloured(graph, found, key, node), f"Graph of {key.kind} {key.name}") if graph else "",
            "node": node,
            "label": part_of(live),
        }

    def _project_of(self, resource: Object) -> Project:
        """That which its next pass goes by: a rollout may not have reached it."""
        rollouts = self.manager.known.rollouts
        disk = rollouts.disk or self.manager.project
        rule = choose_rule(disk.rules, resource)
        record = rollouts.records.get(watch_key(rule, rollouts.prefix)) if rule is not None else None
        if record is None:
            return disk
        revision = record.revision_of(member_of(resource["metadata"].get("uid") or ""))
        return rollouts.projects.get(revision, disk)

    def _cluster(self, namespace: str) -> LiveCluster:
        """The connection of the operator, for reading only."""
        server, known, name = self.manager.server, self.manager.known, self.manager.options.name
        reader, kinds = OwnReader(server, known.cache), OwnKinds(known.cache, namespace)
        operator = Operator(name, server.namespace, known.inventory.entries)
        return LiveCluster("", reader, kinds, operator, finish=self._finish)

    async def _finish(self, made: Callable[[], Plan]) -> Plan:
        """As the plans of the operator: on its loop, or in a thread if that takes long."""
        return await self.manager.work.environment.large_plans.make(made)

    async def _graph(self, project: Project, rule: Rule) -> RuleGraph | None:
        known = self._graphs
        if known.digest != project.digest or known.loaded is None:
            variables = self.manager.options.variables
            loaded = await asyncio.to_thread(build_with_sources, project.files, root=project.root, environ=variables)
            known = self._graphs = _Graphs(project.digest, loaded)
        assert known.loaded is not None
        if rule.title not in known.graphs:
            watch = next((each for each in known.loaded.watches if each.rule.title == rule.title), None)
            if watch is None:
                return None
            known.graphs[rule.title] = rule_graph(watch, known.loaded)
        return known.graphs[rule.title]

    # -- rollouts ------------------------------------------------------------------------------------------------------

    async def rollouts(self) -> list[dict[str, Any]]:
        """The document of `rollout status -o json`, with the custom resources by wave."""
        known = self.manager.known.rollouts
        disk = known.disk or self.manager.project
        rules = {watch_key(rule, known.prefix): rule for rule in disk.rules if rule.rollout is not None}
        records = {watch: record for watch, record in known.records.items() if watch in rules}
        return [
            {**document, "groups": [group async for group in self._groups(records[watch], rules[watch])]}
            for watch, document in zip(sorted(records), rollout_documents(records), strict=True)
        ]

    async def _groups(self, record: RolloutRecord, rule: Rule) -> AsyncIterator[dict[str, Any]]:
        groups: dict[str, dict[ObjectKey, StoreEntry]] = {"failed": {}, "pending": {}, "current": {}, "held": {}}
        async for key, entry in self._entries(rule.kind.versionless):
            groups[_place(record, member_of(entry.uid))][key] = entry
        titles = {
            "failed": "Failed",
            "pending": "In this wave: released, not ready yet",
            "current": "Current: have this revision",
        }
        for name, title in titles.items():
            if groups[name]:
                yield _group(name, title, sorted(groups[name]))
        held = groups["held"]
        if held and (len(held) > MAX_ORDERED or rule.rollout is None):
            yield _group("held", "Held back", sorted(held))
        elif held and rule.rollout is not None:
            views = {WaveView.of(_whole(rule, entry), rule.rollout.label): key for key, entry in held.items()}
            ordered = [views[view] for view in in_order(rule.rollout, views)]
            size = size_of_wave(rule.rollout, sum(map(len, groups.values())))
            for number, start in enumerate(range(0, len(ordered), size), 1):
                yield _group("held", f"Held back, wave {number} from now", ordered[start : start + size])

    # -- the operator --------------------------------------------------------------------------------------------------

    def operator(self) -> dict[str, Any]:
        """The process: its readiness checks, which name its shard, the permissions that it lacks, and slow passes."""
        manager = self.manager
        checks = list(manager.checks())
        forbidden = [each for each in manager.known.informers.informers.values() if each.state is StoreState.FORBIDDEN]
        return {
            "name": manager.options.name,
            "namespace": manager.server.namespace,
            "identity": manager.identity,
            "ready": all(check.ok for check in checks if check.counts),
            "checks": checks,
            "permissions": [
                {
                    "kind": str(each.need.kind),
                    "namespace": each.need.namespace,
                    "problem": each.problem,
                    "needed": listed(manager.work.controller_set.verbs(each.need.kind.versionless)),
                }
                for each in forbidden
            ],
            "controllers": [_work(each) for each in manager.work.controllers],
            "revision": (manager.known.rollouts.disk or manager.project).revision,
        }


async def _explanation(cluster: LiveCluster, project: Project, live: Object, node: str) -> ResourceView:
    """Without a plan, if something that it reads may not be read. Raises RuleopError."""
    try:
        return await Explainer(cluster, project).explain_resource(live, child=node)
    except RuleopError as error:
        notes = [f"the next reconcile cannot be planned: {error}"]
        return await Explainer(cluster, None, notes).explain_resource(live)


def resource_url(key: ObjectKey, **more: str) -> str:
    query = {"kind": str(key.group_kind), "namespace": key.namespace, "name": key.name, **more}
    return "/resource?" + urlencode({name: value for name, value in query.items() if value})


def _state_of(obj: Mapping[str, Any]) -> Health:
    if find_condition(obj, "Ready").get("status") == "True":
        return "ready"
    if find_condition(obj, "Stalled").get("status") == "True":
        return "failed"
    return "waiting" if find_condition(obj, "Ready") else "unknown"


def _coloured(graph: RuleGraph, explained: ResourceView, key: ObjectKey, chosen: str) -> RuleGraph:
    """The graph of the rule with the states of the objects of one custom resource."""
    objects: dict[str, list[ObjectView]] = {}
    for each in explained.objects:
        objects.setdefault(each.child, []).append(each)
    nodes = []
    for node in graph.nodes:
        if node.role == "resource":
            lines = (node.lines[0], key.name, f"{_MARKS[HEALTHS[explained.tone]]} {explained.state}")
            node = replace(node, lines=lines, state=HEALTHS[explained.tone], href=resource_url(key))  # noqa: PLW2901
        elif node.role == "child":
            node = _marked(node, objects.get(node.name, []), chosen=node.name == chosen)  # noqa: PLW2901
            node = replace(node, href=resource_url(key, node=node.name) + "#node")  # noqa: PLW2901
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _marked(node: GraphNode, objects: Sequence[ObjectView], *, chosen: bool) -> GraphNode:
    """A child with the state of its objects: the worst of several."""
    healths = [HEALTHS[each.tone] for each in objects]
    state = min(healths, key=STATES.index, default="none")
    text = objects[0].state if objects else "no object"
    if len(objects) > 1:
        text = f"{healths.count('ready')} of {len(objects)} ready"
    return replace(
        node,
        lines=(*node.lines, f"{_MARKS.get(state, '○')} {text}"),
        state=state + (" chosen" if chosen else ""),
    )


def _place(record: RolloutRecord, member: str) -> str:
    if member in record.failed:
        return "failed"
    if member in record.pending:
        return "pending"
    return "current" if record.is_complete or record.has_target(member) else "held"


def _group(name: str, title: str, keys: Sequence[ObjectKey]) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "count": len(keys),
        "tiles": keys[:MAX_TILES],
        "more": max(0, len(keys) - MAX_TILES),
    }


def _whole(rule: Rule, entry: StoreEntry) -> Object:
    return {"apiVersion": rule.kind.api_version, "kind": rule.kind.kind, **entry.parsed()}


def _work(controller: Controller) -> dict[str, Any]:
    work = controller.workers.statistics()
    return {
        "title": controller.workers.title,
        "running": int(work["active_workers"]),
        "queued": int(work["depth"]),
        "failing": int(work["failing"]),
        "slow": [
            {"title": str(request), "href": resource_url(controller.reconciler.key(request))}
            for request in sorted(controller.reconciler.large)
        ],
    }
