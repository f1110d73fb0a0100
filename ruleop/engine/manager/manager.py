"""The operator as a whole: what is started in which order, what listens to what, and how it ends.

Start: credentials, discovery, the inventory; then the watches; then, once every store is synced and this process leads, the workers. Stop:
the workers take no new work and finish what runs, then the watches, then the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog

from ruleop.engine.api.server_api import ConfigMapShelf, ServerApi
from ruleop.engine.cache.cache import Cache
from ruleop.engine.cache.informers import Informer, Informers
from ruleop.engine.cache.own_writes import OwnWrites
from ruleop.engine.cache.published_schemas import PublishedSchemas
from ruleop.engine.clock import Clock
from ruleop.engine.manager import ready_checks as checks
from ruleop.engine.manager.collector import StateCollector
from ruleop.engine.manager.controller_set import CRD, ControllerSet
from ruleop.engine.manager.controllers import Controller, Controllers
from ruleop.engine.manager.discovery_sync import DiscoverySync
from ruleop.engine.manager.event_handler import EventHandler
from ruleop.engine.manager.inventory import Inventory
from ruleop.engine.manager.inventory_gc import InventoryCollector
from ruleop.engine.manager.reload import Reloader
from ruleop.engine.queue.workers import Workers
from ruleop.engine.reconcile.events import Events
from ruleop.engine.reconcile.executor import Executor
from ruleop.engine.reconcile.failures import classify
from ruleop.engine.reconcile.reconciler import Environment, Reconciler
from ruleop.engine.reconcile.recorder import PassFiles
from ruleop.engine.reconcile.status_debounce import StatusDebounce
from ruleop.engine.reconcile.status_schema import StatusSchemas
from ruleop.engine.telemetry.loop_watchdog import LoopWatchdog
from ruleop.engine.telemetry.metrics import Metrics
from ruleop.engine.telemetry.probes import Check, Probes
from ruleop.errors import RuleopError
from ruleop.kinds import Kind, ObjectKey
from ruleop.kube.auth.credentials import find_credentials
from ruleop.kube.client.client import Client
from ruleop.kube.client.discovery import Discovery
from ruleop.kube.client.errors import ApiError, Problem
from ruleop.kube.client.event_recorder import EventRecorder
from ruleop.kube.client.session import Session
from ruleop.kube.leader.election import Election
from ruleop.names import RESERVED_PREFIX
from ruleop.permissions import grant, place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from pathlib import Path

    from ruleop.engine.manager.options import Options
    from ruleop.kube.http.access import Credentials
    from ruleop.kube.watch.store import Change
    from ruleop.rules import Project
    from ruleop.schema.table import ResourceInfo


AT_ONCE = 16  # CRs of a kind, where no rule says how many
FIRST_WAIT, LONGEST_WAIT = 0.5, 10.0
_HOPELESS = {
    Problem.UNAUTHORIZED: "the API server does not accept the credentials; log in again, or name others",
    Problem.UNTRUSTED: "this may not be the API server; name the CA that signed its certificate",
}


class Manager:
    def __init__(self, project: Project, root: Path, options: Options) -> None:
        self.project = project  # as it was started
        self.root = root
        self.options = options
        self.metrics = Metrics()
        self.loop_watchdog = LoopWatchdog(self.metrics.lag.observe)
        self.election: Election | None = None
        self.log = structlog.get_logger()
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self.stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._waits_for = "the API server"  # before it can begin
        self._in_order = True

    # -- start and stop ------------------------------------------------------------------------------------------------------------------

    async def run(self) -> bool:
        """Until `stopping` is set; whether it ended in order. Raises RuleopError where the surroundings are such that nothing can be
        begun."""
        async with contextlib.AsyncExitStack() as stack:
            beginning = asyncio.create_task(self._begin(stack), name="begin")
            stopping = asyncio.create_task(self.stopping.wait(), name="stopping")
            await asyncio.wait({beginning, stopping}, return_when=asyncio.FIRST_COMPLETED)
            beginning.cancel()  # nothing, where it has begun
            with contextlib.suppress(asyncio.CancelledError):
                await beginning
            await stopping
            self.log.info("stopping")
        return self._in_order

    async def _begin(self, stack: contextlib.AsyncExitStack) -> None:
        """What is begun here ends when the stack does, the last first."""
        credentials = self._credentials()
        session = await Session.open(credentials)
        stack.push_async_callback(session.close)
        self._compose(session, credentials)
        stack.push_async_callback(self.informers.stop)
        stack.callback(self._keep(self.loop_watchdog.beat(), "loop_watchdog").cancel)
        health = Probes(self._checks, self.metrics, self.loop_watchdog)
        stack.push_async_callback(health.stop)
        await health.serve(health=self.options.health_address, metrics=self.options.metrics_address)
        await self._until_possible(self._first_contact)
        if self.options.leader_elect and not self.options.dry_run:
            # Released last of all that writes: whoever takes over must find nobody else at work.
            stack.push_async_callback(self._release, self._stand())
        else:
            self.controller_set.lead()
        self.recorder.start()
        stack.push_async_callback(self.recorder.stop)
        stack.push_async_callback(self._stop_workers)
        self.controller_set.adopt(self.project)
        if not self.options.dry_run:
            self._spawn(self.inventory_gc.follow(), "inventory_gc")
        for each in (self.discovery_sync.follow_discovery, self.discovery_sync.follow_schemas):
            self._spawn(each(), each.__name__)
        if self.options.reload:
            reloader = Reloader(
                self.root,
                self.options.variables,
                current=self.project.digest,
                changed=self.controller_set.reloaded,
                refused=self.controller_set.refuse,
            )
            reloader.start()
            stack.push_async_callback(reloader.stop)
        kinds = [str(kind) for kind in self.controllers.by_kind]
        namespaces = list(self.options.namespaces) or "all"
        dry_run = {"dry_run": True} if self.options.dry_run else {}
        self.log.info("started", server=session.server, kinds=kinds, namespaces=namespaces, project=str(self.root), **dry_run)

    def _credentials(self) -> Credentials:
        """Anew for each event loop that uses them."""
        return find_credentials(self.options.kubeconfig, self.options.context, environ=self.options.environ)

    def _spawn(self, part: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(self._keep(part, name))

    def _keep(self, part: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(part, name=name)
        task.add_done_callback(self._part_ended)
        return task

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """Without it the rest would go on half blind; a new process is better."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log.error("a part failed in a way that ruleop did not expect; this process ends", part=task.get_name(), exc_info=error)
            self._in_order = False
            self.stopping.set()

    def _compose(self, session: Session, credentials: Credentials) -> None:
        """All the parts, and who knows whom."""
        self.host = urlsplit(session.server).netloc
        self.client = Client(session, qps=self.options.qps, observe=self._request_done)
        self.discovery = Discovery(self.client)
        self.api = ServerApi(self.client, self.lookup)
        self.world = Cache(self.api, self.lookup, namespaces=self.options.namespaces)
        self.informers = Informers(
            self.client,
            self.lookup,
            self.options.namespaces,
            changed=self._changed,
            stirred=self._stirred,
            needed=lambda kind: self.controller_set.verbs(kind),  # noqa: PLW0108 - the controller_set is made after the informers
        )
        self.home = self.options.operator_namespace or credentials.namespace
        self.inventory = Inventory(ConfigMapShelf(self.api, ObjectKey("", "ConfigMap", self.home, f"{self.options.name}-inventory")))
        self.own_writes = OwnWrites()
        self.debounce = StatusDebounce(time.monotonic, asyncio.get_running_loop().call_later)
        self.recorder = EventRecorder(
            self.client, reporter="ruleop", instance=self.identity, clock=time.monotonic, busy=lambda: self.debounce.busy
        )
        self.environment = self._environment()
        self.controllers = Controllers(self.world)
        collector = StateCollector(controllers=self.controllers, informers=self.informers.informers.values, recorder=self.recorder)
        self.metrics.registry.register(collector)
        self.dispatch = EventHandler(self.world, self.controllers, self.own_writes, statuses=self.options.dry_run)
        schemas = PublishedSchemas(self.discovery, self.world)
        self.controller_set = ControllerSet(
            self.controllers,
            informers=self.informers,
            discovery=self.discovery,
            schemas=schemas,
            inventory=self.inventory,
            room=StatusSchemas(),
            metrics=self.metrics,
            make=self._controller,
            limit=self.options.max_concurrent,
            pause=self.options.prune_after_reload,
        )
        self.inventory_gc = InventoryCollector(self.controller_set, finalizer=self.environment.finalizer)
        self.discovery_sync = DiscoverySync(
            self.discovery, schemas, world=self.world, informers=self.informers, controller_set=self.controller_set
        )

    async def _first_contact(self) -> None:
        await self.discovery.refresh()
        await self.inventory.load()

    async def _until_possible(self, step: Callable[[], Awaitable[None]]) -> None:
        """The API server may be starting too, or a right be granted later; what cannot get better by waiting is told at once."""
        wait = FIRST_WAIT
        while True:
            try:
                await step()
            except ApiError as error:
                self._waits_for = str(error)
                if error.problem in _HOPELESS:
                    raise RuleopError(f"{_HOPELESS[error.problem]}: {error}") from error
                if error.problem is Problem.FORBIDDEN:
                    inventory = grant("configmaps", place(self.home), ("get", "create", "update"))
                    self.log.warning("not permitted; trying again", error=str(error), grant=inventory, again_in=wait)
                elif error.retryable:
                    self.log.warning("the API server does not answer; trying again", error=str(error), again_in=wait)
                else:
                    raise
            else:
                self._waits_for = ""
                return
            await asyncio.sleep(wait)
            wait = min(LONGEST_WAIT, wait * 2)

    def _stand(self) -> Election:
        """A candidate keeps its stores warm, and works when it leads. Losing the lease ends the process."""
        key = ObjectKey("coordination.k8s.io", "Lease", self.home, self.options.name)
        election = self.election = Election(self._credentials(), key, self.identity, timing=self.options.lease)

        async def lead() -> None:
            await election.leading()
            await self._until_possible(self.inventory.load)
            self.metrics.leader.labels(self.options.name).set(1)
            self.controller_set.lead()

        self.metrics.leader.labels(self.options.name).set(0)
        election.start()
        self._spawn(lead(), "election")
        return election

    async def _release(self, election: Election) -> None:
        """Where work was cut off, a write of it may still be on its way: the lease is left to run out."""
        await election.release(hand_over=self._in_order)

    async def _stop_workers(self) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.options.grace):
                await self.controller_set.stop()
                return
        self._in_order = False
        self.log.error("the grace period is over; what still ran is cut off, and the next start finishes it", grace=self.options.grace)

    def _environment(self) -> Environment:
        return Environment(
            cache=self.world,
            executor=Executor(self.api, self.world, classify, self.own_writes),
            inventory=self.inventory,
            events=Events(self.recorder, dry_run=self.options.dry_run),
            metrics=self.metrics,
            debounce=self.debounce,
            clock=Clock(),
            finalizer=f"{RESERVED_PREFIX}{self.options.name}",
            dry_run=self.options.dry_run,
            pass_files=PassFiles(self.options.record) if self.options.record is not None else None,
        )

    def _controller(self, kind: Kind) -> Controller:
        workers = Workers(str(kind.versionless), limit=self.options.max_concurrent or AT_ONCE, metrics=self.metrics, ended=self._part_ended)
        return Controller(kind, (), Reconciler(kind, (), self.environment, workers), workers)

    # -- what the stores say -------------------------------------------------------------------------------------------------------------

    def _changed(self, informer: Informer, change: Change) -> None:
        if informer.need.kind == CRD:
            self.discovery_sync.definition_changed(informer, change)
        else:
            self.dispatch.changed(informer, change)
            self.inventory_gc.changed(informer, change)

    def _stirred(self, informer: Informer) -> None:
        self.controller_set.stirred(informer)

    # -- what reconcilers ask for ----------------------------------------------------------------------------------------------------------

    def lookup(self, kind: Kind) -> ResourceInfo | None:
        found = self.discovery.get(kind)
        return found.info if found is not None else None

    # -- what is measured ----------------------------------------------------------------------------------------------------------------

    def _request_done(self, verb: str, status: int, seconds: float) -> None:
        self.metrics.request_done(self.host, verb, status, seconds)

    def _checks(self) -> Iterator[Check]:
        if self._waits_for:
            yield Check("begin", ok=False, message=self._waits_for)
        yield checks.of_rules(self.controller_set)
        if self.election is not None:
            yield checks.of_election(self.election.leads(), self.election.holder)
        yield from checks.of_watches(self.informers)
        for controller in self.controllers:
            yield checks.of_controller(controller, self.controller_set)
