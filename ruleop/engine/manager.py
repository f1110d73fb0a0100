"""The operator as a whole: what is started in which order, what listens to what, and how it ends.

Start: credentials, discovery, the inventory; then the watches; then, once every store is synced and this process leads, the workers. Stop:
the workers take no new work and finish what runs, then the watches, then the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog

from ruleop.engine.api import ConfigMapShelf, ServerApi
from ruleop.engine.classify import classify
from ruleop.engine.controller import Reconciler, Surroundings
from ruleop.engine.executor import Executor
from ruleop.engine.feeds import Feed, Feeds, Need
from ruleop.engine.health import Check, Health
from ruleop.engine.inventory import Entry, Inventory
from ruleop.engine.metrics import Metrics
from ruleop.engine.needs import CHILD_LABELS, child_needs, observe_need
from ruleop.engine.queue import Urgency
from ruleop.engine.reload import Reloader
from ruleop.engine.room import Room
from ruleop.engine.routes import Request
from ruleop.engine.schemas import Schemas
from ruleop.engine.workers import Workers
from ruleop.engine.world import World
from ruleop.errors import RuleopError
from ruleop.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kube.client import Client
from ruleop.kube.credentials import Credentials, find_credentials
from ruleop.kube.discovery import Difference, Discovery
from ruleop.kube.election import Election
from ruleop.kube.errors import ApiError, Problem
from ruleop.kube.events import EventRecorder, Happening
from ruleop.kube.session import Session
from ruleop.kube.store import Change, Origin, State
from ruleop.planning import AddFinalizer, Create, Event, Plan, ServerSideApply
from ruleop.planning.marks import PART_OF
from ruleop.schema.crds import parse_crd
from ruleop.schema.findings import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ruleop.engine.options import Options
    from ruleop.rules import Project, ProjectErrors, Rule
    from ruleop.schema.table import ResourceInfo

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
NO_PRUNE_AFTER_RELOAD = 30.0
DISCOVERY_LAG = 0.2  # seconds to the first new look at what is served; then twice as long each time
LOOK_FOR_KINDS = 60.0  # seconds between discoveries where definitions cannot be watched


@dataclass(slots=True)
class Controller:
    """One watched kind at work."""

    kind: Kind
    rules: tuple[Rule, ...]
    reconciler: Reconciler
    workers: Workers
    needs: frozenset[Need] = frozenset()  # without which no CR of it is looked at; worked out with the watches

    def kinds(self) -> list[Kind]:
        """What it writes: CRs and children."""
        return [self.kind, *sorted(need.kind for need in self.needs if need.labels == CHILD_LABELS)]


class Manager:
    def __init__(self, project: Project, root: Path, options: Options) -> None:
        self.project = project
        self.root = root
        self.options = options
        self.metrics = Metrics()
        self.log = structlog.get_logger()
        self.controllers: dict[GroupKind, Controller] = {}
        self.leading = not options.leader_elect
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self.room = Room()
        self.refused = ""  # why the rules on disk are not the ones that run
        self.stopping = asyncio.Event()
        self._refreshing = asyncio.Event()
        self._schemas_missing = asyncio.Event()
        self._undefined: set[GroupKind] = set()  # kinds whose definition has gone
        self._pruning_again: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # -- start and stop ------------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until `stopping` is set. Raises RuleopError where the surroundings are such that nothing can be begun."""
        credentials = find_credentials(self.options.kubeconfig, self.options.context, environ=self.options.environ)
        session = await Session.open(credentials)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(session.close)
            self.client = Client(session, qps=self.options.qps, observe=self._request_done)
            self.discovery = Discovery(self.client)
            self.api = ServerApi(self.client, self.lookup)
            self.world = World(self.api, self.lookup)
            self.schemas = Schemas(self.discovery, self.world)
            self.feeds = Feeds(self.client, self.lookup, self.options.namespaces, changed=self._changed, stirred=self._stirred)
            stack.push_async_callback(self.feeds.stop)
            self.home = self.options.operator_namespace or credentials.namespace
            self.inventory = Inventory(ConfigMapShelf(self.api, ObjectKey("", "ConfigMap", self.home, f"{self.options.name}-inventory")))
            self.recorder = EventRecorder(self.client, reporter="ruleop", instance=self.identity, clock=time.monotonic)
            self.recorder.start()
            stack.push_async_callback(self.recorder.stop)
            self.surroundings = self._surroundings()
            health = Health(self._checks, self.metrics)
            stack.push_async_callback(health.stop)
            await health.serve(health=self.options.health_address, metrics=self.options.metrics_address)
            await self._first_contact()
            if self.options.leader_elect:
                # Released last of all that writes: whoever takes over must find nobody else at work.
                stack.push_async_callback(self._stand(credentials).release)
            stack.push_async_callback(self._stop_workers)
            self._adopt(self.project)
            for each in (self._follow_discovery, self._follow_schemas, self._beat):
                self._tasks.append(asyncio.create_task(each(), name=each.__name__.strip("_")))
            if self.options.reload:
                reloader = Reloader(
                    self.root, self.options.environ, current=self.project.digest, changed=self._reloaded, refused=self._refused
                )
                reloader.start()
                stack.push_async_callback(reloader.stop)
            self.log.info("started", server=session.server, kinds=[str(kind) for kind in self.controllers], project=str(self.root))
            await self.stopping.wait()
            self.log.info("stopping")

    async def _first_contact(self) -> None:
        """The API server may be starting too; what cannot get better by waiting is told at once."""
        wait = 0.5
        while not self.stopping.is_set():
            try:
                await self.discovery.refresh()
                if not self.options.dry_run:
                    await self.inventory.load()
            except ApiError as error:
                if not error.retryable or error.problem is Problem.UNAUTHORIZED:
                    raise
                self.log.warning("the API server does not answer; trying again", error=str(error), again_in=wait)
            else:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), wait)
            wait = min(10.0, wait * 2)

    def _stand(self, credentials: Credentials) -> Election:
        """A candidate keeps its stores warm, and works when it leads. Losing the lease ends the process."""
        election = Election(credentials, ObjectKey("coordination.k8s.io", "Lease", self.home, self.options.name), self.identity)

        async def lead() -> None:
            await election.leading()
            if not self.options.dry_run:
                await self.inventory.load()
            self.leading = True
            self.metrics.leader.labels(self.options.name).set(1)
            self._open()

        self.metrics.leader.labels(self.options.name).set(0)
        election.start()
        self._tasks.append(asyncio.create_task(lead(), name="election"))
        return election

    async def _stop_workers(self) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.options.grace):
                await asyncio.gather(*(controller.workers.stop() for controller in self.controllers.values()))

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            world=self.world,
            executor=Executor(self.api, self.world, classify),
            write_status=self._write_status,
            say=self._say,
            before_writes=self._before_writes,
            metrics=self.metrics,
            clock=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            seed=lambda: secrets.token_bytes(32),
            finalizer=f"ruleop.dev/{self.options.name}",
            dry_run=self.options.dry_run,
        )

    # -- rules ---------------------------------------------------------------------------------------------------------------------------

    def _adopt(self, project: Project) -> None:
        """Makes these the rules that run. A controller whose rules are the same goes on as it is."""
        self.project = project
        by_kind: dict[GroupKind, list[Rule]] = {}
        for rule in project.rules:
            by_kind.setdefault(rule.kind.versionless, []).append(rule)
        for gone in [kind for kind in self.controllers if kind not in by_kind]:
            controller = self.controllers.pop(gone)
            self._tasks.append(asyncio.create_task(controller.workers.stop(), name=f"end {gone}"))
        for kind, rules in by_kind.items():
            self._adopt_kind(kind, tuple(rules))
        self._watch()
        self._open()

    def _adopt_kind(self, kind: GroupKind, rules: tuple[Rule, ...]) -> None:
        controller = self.controllers.get(kind)
        self.room.look(rules, self.world.definitions)
        if controller is not None:
            controller.rules = rules
            controller.reconciler.rules, controller.reconciler.kind = rules, rules[0].kind
            return
        limit = self.options.max_concurrent or max(rule.max_concurrent for rule in rules)
        workers = Workers(str(kind), limit=limit, metrics=self.metrics)
        reconciler = Reconciler(rules, self.surroundings, busy=workers.queue.has_ready)
        self.controllers[kind] = Controller(rules[0].kind, rules, reconciler, workers)
        workers.start(reconciler.reconcile)

    def _needs_of(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Iterator[Need]:
        yield Need(rules[0].kind)
        yield Need(CRD)  # its schema says what may be written into the status
        yield from self._child_needs(kind, rules)
        for rule in rules:
            for observe in rule.observe.values():
                yield observe_need(observe)

    def _child_needs(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Iterator[Need]:
        remembered = self.inventory.of(kind)
        preferred = {each: found.info.kind for each in remembered.children if (found := self.discovery.get(each)) is not None}
        return child_needs(rules, remembered, preferred)

    def _watch(self) -> None:
        """Watches what the rules need, and tells the world which feed is for what. What is needed is worked out anew: a kind that only the
        inventory remembers can be watched once it is served."""
        needs: dict[Need, None] = {Need(CRD): None}
        self.world.primary, self.world.children_of, self.world.observed = {}, {}, {}
        for kind, controller in self.controllers.items():
            controller.needs = frozenset(self._needs_of(kind, controller.rules))
            needs.update(dict.fromkeys(sorted(controller.needs, key=str)))
        self.feeds.want(needs)
        feeds = self.feeds.feeds
        for kind, controller in self.controllers.items():
            self.world.primary[kind] = feeds[Need(controller.kind)]
            for need in self._child_needs(kind, controller.rules):
                self.world.children_of.setdefault(need.kind.versionless, feeds[need])
            for rule in controller.rules:
                for observe in rule.observe.values():
                    watching = self.world.observed.setdefault(observe.kind.versionless, [])
                    if feeds[observe_need(observe)] not in watching:
                        watching.append(feeds[observe_need(observe)])
        self.world.forget()

    def _open(self) -> None:
        """A controller works while all that its rules need is known, or known not to be had."""
        for controller in self.controllers.values():
            states = [self.feeds.feeds[need].state for need in controller.needs]
            known = State.PENDING not in states
            if known and self.schemas.missing(controller.kinds()):
                known = False
                self._schemas_missing.set()
            controller.workers.open(self.leading and known)

    def _reloaded(self, project: Project) -> None:
        self.refused = ""
        self.metrics.reloads.labels("done").inc()
        self.metrics.reload_failed.set(0)
        touched = [kind for kind, controller in self.controllers.items() if controller.rules != project.rules]
        self.log.info("rules reloaded", rules=len(project.rules))
        self._adopt(project)
        for kind in touched:
            if kind in self.controllers:
                self._all_again(self.controllers[kind])
                self.controllers[kind].reconciler.may_prune = False
        if self._pruning_again is not None:
            self._pruning_again.cancel()  # files of one edit may arrive one after the other
        self._pruning_again = asyncio.get_running_loop().call_later(NO_PRUNE_AFTER_RELOAD, self._prune_again)

    def _prune_again(self) -> None:
        for controller in self.controllers.values():
            if not controller.reconciler.may_prune:
                controller.reconciler.may_prune = True
                self._all_again(controller)

    def _refused(self, errors: ProjectErrors) -> None:
        self.refused = str(errors)
        self.metrics.reloads.labels("refused").inc()
        self.metrics.reload_failed.set(1)
        self.log.error("the changed rules are refused; the last good ones go on", mistakes=str(errors))

    def _all_again(self, controller: Controller) -> None:
        for store in self.world.primary[controller.kind.versionless].stores():
            for key in store.select_keys():
                controller.workers.add(Request(key.namespace, key.name), Urgency.SWEEP)

    # -- events --------------------------------------------------------------------------------------------------------------------------

    def _changed(self, feed: Feed, change: Change) -> None:
        if feed.need.kind == CRD:
            self._definition_changed(feed, change)
            return
        kind = change.key.group_kind
        urgency = Urgency.SWEEP if change.origin is Origin.LIST else Urgency.CHANGE
        if self.world.primary.get(kind) is feed and change.outside_status:
            self.controllers[kind].workers.add(Request(change.key.namespace, change.key.name), urgency)
        if self.world.children_of.get(kind) is feed and change.origin is not Origin.WRITE:
            for entry in (change.old, change.new):
                if entry is not None and entry.part_of:
                    self._child_changed(entry.part_of, urgency)
        if feed in self.world.observed.get(kind, ()):
            self._observed_changed(feed, change, urgency)

    def _child_changed(self, part_of: str, urgency: Urgency) -> None:
        for controller in self.controllers.values():
            request = controller.reconciler.routes.owner_of({PART_OF: part_of})
            if request is not None:
                controller.workers.add(request, urgency)

    def _observed_changed(self, feed: Feed, change: Change, urgency: Urgency) -> None:
        for entry in (change.old, change.new):
            obj = self.world.parse(feed, change.key, entry) if entry is not None else None
            if obj is None:
                continue
            for controller in self.controllers.values():
                for request in controller.reconciler.routes.observers_of(obj):
                    controller.workers.add(request, urgency)

    def _stirred(self, feed: Feed) -> None:
        """A store is synced, or its kind is gone or forbidden: what needs it may go on, or has to wait."""
        self.world.forget()
        self._open()
        for controller in self.controllers.values():
            if feed.need in controller.needs and controller.kind.versionless in self.world.primary:
                self._all_again(controller)

    def _definition_changed(self, feed: Feed, change: Change) -> None:
        obj = self.world.parse(feed, change.key, change.new or change.old) if change.new or change.old else None  # type: ignore[arg-type]
        if obj is None or (not change.outside_status and not _established_changed(change)):
            return
        with contextlib.suppress(SchemaError):
            definition = parse_crd(obj)
            kind = GroupKind(definition.group, definition.kind)
            if change.new is not None:
                self.world.definitions[kind] = definition
                self._undefined.discard(kind)
            else:
                self.world.definitions.pop(kind, None)
                self._undefined.add(kind)
            self.world.forget()
            if (controller := self.controllers.get(kind)) is not None and change.outside_status:
                self.room.look(controller.rules, self.world.definitions)
                self._all_again(controller)
        self.world.forget()
        self._refreshing.set()

    async def _follow_discovery(self) -> None:
        """Looks at what is served when a definition changed, until it is what the definitions say: the server publishes it a moment later.
        Where definitions cannot be watched, now and then."""
        pause = DISCOVERY_LAG
        while True:
            crds = self.feeds.feeds[Need(CRD)]
            wait = None if crds.state is State.SYNCED else LOOK_FOR_KINDS
            late = self._out_of_step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause if late else wait):
                    await self._refreshing.wait()
            if self._refreshing.is_set():
                pause = DISCOVERY_LAG
                self.feeds.wake()  # a kind that went and came between two looks has only its watch to tell
            elif late:
                pause = min(LOOK_FOR_KINDS, pause * 2)
            self._refreshing.clear()
            try:
                difference = await self.discovery.refresh()
            except RuleopError as error:
                self.log.warning("discovery failed; trying again", error=str(error))
                await asyncio.sleep(1.0)
                self._refreshing.set()
                continue
            self._take(difference)
            if wait is not None and (known := self.schemas.known()):
                await self._look_at_schemas(known)

    def _out_of_step(self) -> bool:
        """Something that is watched is defined and not served yet, or still served although its definition has gone."""
        for need in self.feeds.feeds:
            definition = self.world.definitions.get(need.kind.versionless)
            version = definition.version(need.kind.version) if definition is not None else None
            defined, served = version is not None and version.served, self.discovery.get(need.kind) is not None
            if served != defined and (defined or need.kind.versionless in self._undefined):
                return True
        return False

    def _take(self, difference: Difference) -> None:
        """Kinds that came, went, or are another."""
        if difference:
            self.world.forget()
            self.feeds.look_again()
            self._watch()
            self._open()

    async def _follow_schemas(self) -> None:
        """Looks for what is published of kinds whose definition cannot be read. Their CRs wait for it."""
        while True:
            await self._schemas_missing.wait()
            self._schemas_missing.clear()
            await self._look_at_schemas(
                [kind for controller in self.controllers.values() for kind in self.schemas.missing(controller.kinds())]
            )
            self._open()
            if self._schemas_missing.is_set():
                await asyncio.sleep(0.5)

    async def _look_at_schemas(self, kinds: list[Kind]) -> None:
        try:
            self._take(await self.discovery.refresh())
            new = await self.schemas.look(kinds)
        except RuleopError as error:
            self.log.warning("discovery failed; trying again", error=str(error))
            return
        for controller in self.controllers.values() if new else ():
            self._all_again(controller)

    async def _beat(self) -> None:
        """Measures how late the event loop turns."""
        while True:
            start = time.monotonic()
            await asyncio.sleep(1.0)
            self.metrics.lag.set(max(0.0, time.monotonic() - start - 1.0))

    # -- what reconcilers ask for ----------------------------------------------------------------------------------------------------------

    def lookup(self, kind: Kind) -> ResourceInfo | None:
        found = self.discovery.get(kind)
        return found.info if found is not None else None

    async def _write_status(self, kind: Kind, key: ObjectKey, patch: Mapping[str, Any], *, subresource: bool) -> Object:
        answer = await self.api.write_status(kind, key, patch, subresource=subresource)
        self.world.put(answer)
        return answer

    def _say(self, resource: Object, event: Event) -> None:
        key = ObjectKey.of(resource)
        self.log.info("event", resource=str(key), reason=event.reason, message=event.message)
        if not self.options.dry_run:
            uid, version = resource["metadata"].get("uid", ""), Kind.of(resource).version
            self.recorder.record(Happening(key, version, uid, event.reason, event.message, warning=event.type == "Warning"))

    async def _before_writes(self, rule: Rule, plan: Plan) -> None:
        kinds = {action.key.group_kind for action in plan.actions if isinstance(action, (Create, ServerSideApply))}
        finalizer = any(isinstance(action, AddFinalizer) for action in plan.actions)
        entry = Entry(frozenset(kinds), finalizer)
        await self.inventory.ensure(rule.kind.versionless, entry)

    def _request_done(self, verb: str, status: int, seconds: float) -> None:
        self.metrics.requests.labels(str(status), verb).inc()
        self.metrics.request_time.labels(verb).observe(seconds)

    def _checks(self) -> Iterator[Check]:
        for need, feed in self.feeds.feeds.items():
            state = feed.state
            yield Check(f"watch {need.kind}", state is State.SYNCED, feed.problem or state.value, counts=state is State.PENDING)
        yield Check("rules", not self.refused, self.refused, counts=False)


def _established_changed(change: Change) -> bool:
    return change.old is None or change.new is None or change.old.status != change.new.status
