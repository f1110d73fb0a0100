"""The operator as a whole: its parts, and the order in which they start and stop.

Start: credentials, discovery, the inventory, the owner key; then the watches; then, once all caches are synced and this
process leads, the workers. Stop: the workers finish running reconciles and start no others; then the watches stop, then
the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
import uuid
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from ruleop.core.buckets import BUCKETS
from ruleop.core.errors import RuleopError
from ruleop.core.kinds import Kind, ObjectKey
from ruleop.core.names import RESERVED_PREFIX, SELECTOR, lease_name
from ruleop.core.permissions import STORED, grant, place
from ruleop.core.rules import ProjectErrors, RuleFiles
from ruleop.operator.engine.api.server_api import ServerApi, StoredData
from ruleop.operator.engine.cache.cache import Cache
from ruleop.operator.engine.cache.informers import Informers, WatchSpec, belief, selection
from ruleop.operator.engine.cache.own_writes import OwnWrites
from ruleop.operator.engine.cache.published_schemas import PublishedSchemas
from ruleop.operator.engine.cache.share import Share
from ruleop.operator.engine.clock import Clock
from ruleop.operator.engine.manager import ready_checks
from ruleop.operator.engine.manager.collector import StateCollector
from ruleop.operator.engine.manager.controller_set import ControllerSet
from ruleop.operator.engine.manager.controllers import Controller, Controllers
from ruleop.operator.engine.manager.discovery_sync import DiscoverySync
from ruleop.operator.engine.manager.event_handler import EventHandler
from ruleop.operator.engine.manager.inventory import Inventory, inventory_key
from ruleop.operator.engine.manager.inventory_gc import InventoryCollector
from ruleop.operator.engine.manager.reload import Reloader
from ruleop.operator.engine.manager.remarking import Remarking
from ruleop.operator.engine.manager.rule_checks import RuleChecks, no_errors
from ruleop.operator.engine.queue.workers import Workers
from ruleop.operator.engine.reconcile.executor import Executor
from ruleop.operator.engine.reconcile.other_operators import OtherOperators
from ruleop.operator.engine.reconcile.owner_key import OwnerKey, owner_key_key
from ruleop.operator.engine.reconcile.pass_log import Events
from ruleop.operator.engine.reconcile.reconciler import Reconciler
from ruleop.operator.engine.reconcile.shared_objects import Environment
from ruleop.operator.engine.reconcile.status.status_debounce import StatusDebounce
from ruleop.operator.engine.reconcile.status.status_schema import StatusSchemas
from ruleop.operator.engine.revisions.revision_data import revisions_key
from ruleop.operator.engine.revisions.revision_store import RevisionStore
from ruleop.operator.engine.rollouts.rollout_driver import RolloutDriver
from ruleop.operator.engine.rollouts.rollout_store import RolloutStore, prefix_of, rollouts_key
from ruleop.operator.engine.rollouts.rollouts import Rollouts
from ruleop.operator.engine.shards.ownership import BySelector, Ownership, Pod, Sharding
from ruleop.operator.engine.shards.process_leases import ProcessLeases, lease_labels
from ruleop.operator.engine.shards.unowned import UnownedResources
from ruleop.operator.engine.telemetry.authorization import Authorizer, review
from ruleop.operator.engine.telemetry.loop_watchdog import LoopWatchdog, call_on_loop, run_on_loop
from ruleop.operator.engine.telemetry.metrics import Metrics
from ruleop.operator.engine.telemetry.probes import Check, Probes
from ruleop.operator.engine.telemetry.server_certificate import ServerCertificate
from ruleop.operator.kube.auth.credentials import find_credentials
from ruleop.operator.kube.client.client import Client
from ruleop.operator.kube.client.discovery import Discovery
from ruleop.operator.kube.client.event_recorder import EventRecorder
from ruleop.operator.kube.client.server_errors import ApiError, Problem
from ruleop.operator.kube.client.session import Session
from ruleop.operator.kube.leader.election import Election
from ruleop.operator.kube.leader.shards import Roster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
    from pathlib import Path

    from ruleop.core.planning.model.proofs import KeyedProofs
    from ruleop.core.rules import Finding, Project
    from ruleop.operator.engine.manager.flags import Options
    from ruleop.operator.engine.manager.rule_checks import ErrorsOf
    from ruleop.operator.engine.reconcile.recorder import PassFiles
    from ruleop.operator.kube.http.access import Credentials
    from ruleop.operator.kube.watch.store import Selection


MAX_CLOCK_OFFSET = 5.0  # seconds between this clock and the API server's that are not logged
DEFAULT_MAX_CONCURRENT = 16  # reconciles of a kind
FIRST_RETRY, MAX_RETRY_INTERVAL = 0.5, 10.0  # seconds
_PERMANENT = {
    Problem.UNAUTHORIZED: "the API server does not accept the credentials; log in again, or name others",
    Problem.UNTRUSTED: "this may not be the API server; name the CA that signed its certificate",
}


class Manager:
    def __init__(
        self,
        project: Project,
        root: Path,
        options: Options,
        *,
        errors_of: ErrorsOf = no_errors,
        on_reload: Callable[[Project | None], None] = lambda _: None,
        page: Callable[[Manager], contextlib.AbstractAsyncContextManager[object]] | None = None,
    ) -> None:
        """`errors_of` checks rules before they are put in force. `on_reload` is called with the rules after each
        reload, and with None after one that was rejected. `page` serves the web page."""
        self.page = page
        self.options = options
        self.project = self._in_force(project)  # as it was at the start
        self.on_reload = on_reload
        self.root = root
        self.metrics = Metrics()
        self.rule_checks = RuleChecks(errors_of, self.metrics, variables=options.variables)
        self.loop_watchdog = LoopWatchdog(self.metrics.lag.observe)
        self.election: Election | None = None
        self.log = structlog.get_logger()
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self.stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._starting = "waiting for the API server"  # why it is not ready; empty once it has started
        self._in_order = True
        self._clock_differs = False

    # -- start and stop ------------------------------------------------------------------------------------------------

    async def run(self) -> bool:
        """Runs until `stopping` is set. Returns whether it stopped in order; raises RuleopError if it cannot start."""
        async with contextlib.AsyncExitStack() as stack:
            starting = asyncio.create_task(self._start(stack), name="start")
            stopping = asyncio.create_task(self.stopping.wait(), name="stopping")
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            starting.cancel()  # no effect once it has started
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            await stopping
            self.log.info("stopping")
        return self._in_order

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        """Parts are started in this order, and stopped by the stack in the reverse one. Raises ProjectErrors if the
        rules have errors and were not in force before."""
        checking = asyncio.create_task(self.rule_checks.errors(RuleFiles.of(self.project)), name="checks of the rules")
        stack.push_async_callback(_cancelled, checking)
        credentials = self._credentials()
        session = await Session.open(credentials)
        stack.push_async_callback(session.close)
        self.compose(session, credentials)
        stack.push_async_callback(self.informers.stop)
        stack.callback(self._create_task(self.loop_watchdog.run(), "loop_watchdog").cancel)
        probes = Probes(self.checks, self.metrics, self.loop_watchdog)
        stack.push_async_callback(probes.stop)
        await self._serve(probes)
        if self.page is not None:
            await stack.enter_async_context(self.page(self))
        await self._reach_server(checking)
        await self.retry(self._load_key)
        await self._finish_checks(checking)
        if isinstance(self.ownership, Sharding):
            stack.push_async_callback(self.ownership.watcher.stop)
            self.cache.share = await self.ownership.share()
        if self.options.leader_elect and not self.options.dry_run:
            # Released after everything that writes has stopped: no two processes may write.
            stack.push_async_callback(self._release, self._join_election())
        else:
            self._start_leading()
        self.recorder.start()
        stack.push_async_callback(self.recorder.stop)
        stack.push_async_callback(self._stop_workers)
        self.controller_set.apply(self.project)
        self.revisions.put_in_force(self.project)
        self._spawn(self.rollout_driver.run(), "rollouts")
        if not self.options.dry_run:
            self._spawn(self.inventory_gc.run(), "inventory_gc")
            remarking = Remarking(self.controller_set, self.owner_key, self.api, self._is_alone)
            self._spawn(remarking.run(), "remarking")
        for each in (self.discovery_sync.follow_discovery, self.discovery_sync.follow_schemas):
            self._spawn(each(), each.__name__)
        if self.options.reload:
            reloader = Reloader(
                self.root,
                self.options.variables,
                current=self.project.revision,
                check=self.rule_checks.require_sound,
                changed=self._reloaded,
                rejected=self._reload_rejected,
            )
            reloader.start()
            stack.push_async_callback(reloader.stop)
        kinds = [str(kind) for kind in self.controllers.by_kind]
        namespaces = list(self.options.namespaces) or "all"
        dry_run = {"dry_run": True} if self.options.dry_run else {}
        self.log.info(
            "started", server=session.server, kinds=kinds, namespaces=namespaces, project=str(self.root), **dry_run
        )

    async def _reach_server(self, checking: asyncio.Task[Sequence[Finding]]) -> None:
        """Raises ProjectErrors if the rules turn out to be unusable before the API server is reached: otherwise their
        author would wait for the server to learn of the mistakes."""
        connecting = asyncio.create_task(self.retry(self._connect), name="connect")
        try:
            await asyncio.wait({connecting, checking}, return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done() and checking.exception() is None:
                errors = checking.result()
                if any(each.is_fatal for each in errors):
                    raise ProjectErrors(errors)
            await connecting
        finally:
            connecting.cancel()

    async def _finish_checks(self, checking: asyncio.Task[Sequence[Finding]]) -> None:
        """Until then this process is not ready: a rollout of the operator must not replace a process that works."""
        self._starting = "checking the rules"
        if await self._were_in_force():
            self._spawn(self.rule_checks.report(checking), "checks of the rules in force")
        else:
            await self.rule_checks.require_sound(RuleFiles.of(self.project), checking)
        self._starting = ""

    async def _were_in_force(self) -> bool:
        """Whether the last leader had these rules, as far as can be known. Then nothing waits for their checks: a
        restart, or a ruleop with more checks, must not stop an operator that works."""
        try:
            latest = (await self.revisions.load()).latest
        except ApiError:
            return False
        return latest is not None and latest.digest == self.project.revision

    def _in_force(self, project: Project) -> Project:
        if self.options.rollouts:
            return project
        return replace(project, rules=tuple(replace(rule, rollout=None) for rule in project.rules))

    def _reloaded(self, read: Project) -> None:
        project = self._in_force(read)
        self.rollouts.put_in_force(project)
        self.controller_set.reloaded(project)
        self.rollout_driver.wake()
        self.revisions.put_in_force(project)
        self.on_reload(read)

    def _reload_rejected(self, errors: ProjectErrors) -> None:
        self.controller_set.reject(errors)
        self.on_reload(None)

    async def _serve(self, probes: Probes) -> None:
        options, loop = self.options, asyncio.get_running_loop()
        authorizer = (
            Authorizer(lambda token: run_on_loop(loop, review(self.client, "/metrics", token)))
            if options.metrics_auth
            else None
        )
        certificate = ServerCertificate(*options.metrics_certificate) if options.metrics_certificate else None
        await probes.serve(
            health=options.health_address,
            metrics=options.metrics_address,
            certificate=certificate,
            authorizer=authorizer,
        )

    def _credentials(self) -> Credentials:
        """Each event loop needs its own."""
        return find_credentials(self.options.kubeconfig, self.options.context, environ=self.options.environ)

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Runs until the workers stop."""
        self._tasks.append(self._create_task(coroutine, name))

    def _create_task(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine, name=name)
        task.add_done_callback(self._exit_on_failure)
        return task

    def _exit_on_failure(self, task: asyncio.Task[None]) -> None:
        """A restart is better than an operator that lacks one of its parts."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log.error("a task failed with an internal error; exiting", task=task.get_name(), exc_info=error)
            self._in_order = False
            self.stopping.set()

    def compose(self, session: Session, credentials: Credentials) -> None:
        """Creates the parts."""
        self.session = session
        self.host = session.server.rpartition("://")[2]
        self.clock = Clock(self._clock_moved)
        observe = partial(self.metrics.request_done, self.host)
        self.client = Client(session, qps=self.options.qps, observe=observe, dated=self.clock.server_time)
        self.discovery = Discovery(self.client)
        self.api = ServerApi(self.client, self.discovery.resource)
        self.cache = Cache(self.api, self.discovery.resource, namespaces=self.options.namespaces)
        self.informers = Informers(
            self.client,
            self.discovery.resource,
            self.options.namespaces,
            selection=self._selection,
            believes=belief(self._proofs),
        )
        self.namespace = self.options.operator_namespace or credentials.namespace
        rollouts = rollouts_key(self.namespace, self.options.name)
        self.inventory = Inventory(StoredData(self.api, inventory_key(self.namespace, self.options.name)))
        revisions = revisions_key(self.namespace, self.options.name)
        self.revisions = RevisionStore(
            StoredData(self.api, revisions), now=self.clock.now, environ=self.options.variables
        )
        key = owner_key_key(self.namespace, self.options.name)
        self.owner_key = OwnerKey(
            StoredData(self.api, key),
            changed=self.informers.list_proven_again,
            upgrading=self.inventory.has_finalizers,
            dry_run=self.options.dry_run,
        )
        leases = map(self._lease_key, range(BUCKETS)) if self.options.pod is not None else [self._lease_key()]
        self.own = frozenset({inventory_key(self.namespace, self.options.name), revisions, rollouts, key, *leases})
        self.rollouts = Rollouts(self.revisions, prefix_of(self.options.selector))
        self.rollouts.put_in_force(self.project)
        self.own_writes = OwnWrites()
        self.debounce = StatusDebounce(time.monotonic, asyncio.get_running_loop().call_later)
        self.recorder = EventRecorder(
            self.client,
            reporter="ruleop",
            instance=self.identity,
            clock=time.monotonic,
            busy=lambda: self.debounce.busy,
        )
        self.cache.share = Share(self.options.selector)
        self.events = Events(self.recorder, dry_run=self.options.dry_run)
        self.ownership = self._ownership()
        self.environment = self._environment()
        self.controllers = Controllers(self.cache)
        collector = StateCollector(
            controllers=self.controllers,
            informers=self.informers.informers.values,
            recorder=self.recorder,
            rollouts=lambda: self.rollouts.records,
            on_loop=partial(call_on_loop, asyncio.get_running_loop()),
        )
        self.metrics.registry.register(collector)
        schemas = PublishedSchemas(self.discovery, self.cache)
        self.controller_set = ControllerSet(
            self.controllers,
            informers=self.informers,
            discovery=self.discovery,
            schemas=schemas,
            inventory=self.inventory,
            status_schemas=StatusSchemas(),
            metrics=self.metrics,
            create_controller=self._create_controller,
            max_concurrent=self.options.max_concurrent,
            pause=self.options.prune_after_reload,
        )
        self.rollout_driver = RolloutDriver(
            self.rollouts,
            RolloutStore(StoredData(self.api, rollouts), self.rollouts.prefix),
            self.informers,
            self.cache,
            self.controller_set,
            drives=self._drives_rollouts,
            other_owner=self.ownership.other_owner if isinstance(self.ownership, BySelector) else None,
        )
        self.controller_set.earlier_rules = self.rollouts.rules_of
        self.controller_set.extra_watches = self.rollout_driver.watches
        self.inventory_gc = InventoryCollector(
            self.controller_set, finalizer=self.environment.finalizer, is_alone=self._is_alone
        )
        self.discovery_sync = DiscoverySync(
            self.discovery, schemas, cache=self.cache, informers=self.informers, controller_set=self.controller_set
        )
        self.event_handler = EventHandler(
            self.cache,
            self.controllers,
            self.own_writes,
            self.discovery_sync,
            rollouts=self.rollout_driver,
            status_changes=self.options.dry_run,
        )
        self.informers.connect(self.event_handler.changed, self.controller_set.state_changed, self.controller_set.verbs)

    async def _connect(self) -> None:
        await self.discovery.refresh()
        await self._load_stored()

    async def _load_stored(self) -> None:
        """Reads what this process has to know before it reconciles a CR that it did not reconcile before."""
        await self.inventory.load()
        await self.rollout_driver.load()

    async def _load_key(self) -> None:
        """Reads or makes the owner key, if the rules need it, or children of earlier rules may have a proof."""
        needed = any(rule.needs_key for controller in self.controllers for rule in controller.in_force)
        if needed or any(rule.needs_key for rule in self.project.rules) or self.inventory.has_finalizers():
            await self.owner_key.load()

    def _lease_key(self, ordinal: int | None = None) -> ObjectKey:
        """Of this process, or of another shard."""
        if ordinal is None and self.options.pod is not None:
            ordinal = self.options.pod.ordinal
        name = lease_name(self.options.name, selector=self.options.selector, ordinal=ordinal)
        return ObjectKey("coordination.k8s.io", "Lease", self.namespace, name)

    def _ownership(self) -> Ownership | None:
        """None for a process without a Lease, which knows of no other."""
        if not self.options.leader_elect or self.options.dry_run:
            return None
        leases = ProcessLeases(self.client, self.namespace, self.options.name)
        unowned, duration = UnownedResources(self.client, self.metrics), self.options.lease.duration
        if self.options.pod is not None:
            pod = Pod(self.options.pod.namespace or self.namespace, self.options.pod.name)
            return Sharding(pod, leases, self.metrics, unowned, duration=duration)
        roster = Roster(self._lease_key().name, duration=duration)
        return BySelector(roster, self.options.selector, leases, self.events, unowned)

    def _drives_rollouts(self) -> bool:
        """Of several shards, that with the first bucket."""
        return not isinstance(self.ownership, Sharding) or 0 in self.ownership.shard.held & self.ownership.ready

    def _is_alone(self) -> bool:
        return not self.options.selector if self.ownership is None else self.ownership.is_alone()

    def _proofs(self) -> KeyedProofs | None:
        return self.owner_key.proofs()

    def _selection(self, need: WatchSpec) -> Selection:
        """The operator's own objects are in no store of the rules, so that no rule can read them."""
        own = self.own if need != self.rollout_driver.need else frozenset()
        return selection(need, own, self.owner_key.proofs)

    async def retry(self, step: Callable[[], Awaitable[None]]) -> None:
        """Retries while the API server is not reachable or a permission is missing. Raises errors that cannot resolve
        themselves."""
        wait = FIRST_RETRY
        while True:
            try:
                await step()
            except ApiError as error:
                self._starting = str(error)
                if error.problem in _PERMANENT:
                    raise RuleopError(f"{_PERMANENT[error.problem]}: {error}") from error
                if error.problem is Problem.FORBIDDEN:
                    what = "secrets" if step == self._load_key else "configmaps"
                    needed = grant(what, place(self.namespace), STORED)
                    self.log.warning("not permitted; will retry", error=str(error), grant=needed, retry_in=wait)
                elif error.retryable:
                    self.log.warning("API server not reachable; will retry", error=str(error), retry_in=wait)
                else:
                    raise
            else:
                self._starting = ""
                return
            await asyncio.sleep(wait)
            wait = min(MAX_RETRY_INTERVAL, wait * 2)

    def _join_election(self) -> Election:
        """A standby keeps its caches synced, and reconciles when it leads. The process exits when it loses the
        Lease."""
        election = self.election = Election(
            self._credentials(),
            self._lease_key(),
            self.identity,
            timing=self.options.lease,
            labels=lease_labels(self.options.name),
            annotations={SELECTOR: self.options.selector} if self.options.selector else {},
        )
        self.api.holds_lease = election.leads

        async def lead() -> None:
            await election.leading()
            await self.retry(self._load_stored)
            await self.retry(self._load_key)
            if isinstance(self.ownership, BySelector):
                await self.retry(partial(self.ownership.begin, election))
                self._spawn(self.ownership.run(self.controller_set), "other processes")
            elif isinstance(self.ownership, Sharding):
                self._spawn(self.ownership.run(election, self.controller_set, self._load_stored), "shards")
            assert self.ownership is not None, "it has a Lease"
            self._spawn(self.ownership.find_unowned(self.controller_set), "unowned resources")
            self.metrics.leader.labels(self.options.name).set(1)
            self._start_leading()

        self.metrics.leader.labels(self.options.name).set(0)
        election.start()
        self._spawn(lead(), "election")
        return election

    def _start_leading(self) -> None:
        self.controller_set.start_leading()
        if not self.options.dry_run:
            self.rollout_driver.start_leading()
        if not self.options.dry_run:
            self._spawn(self.revisions.run(), "revisions")

    async def _release(self, election: Election) -> None:
        """If reconciles were cut off, a write may still be in flight: then the Lease has to expire first."""
        await election.release(hand_over=self._in_order)

    async def _stop_workers(self) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.options.grace):
                await self.controller_set.stop()
                return
        self._in_order = False
        self.log.error("grace period exceeded; exiting with unfinished reconciles", grace=self.options.grace)

    def _environment(self) -> Environment:
        return Environment(
            cache=self.cache,
            executor=Executor(self.api, self.cache, self.own_writes, proofs=self.owner_key.proofs),
            inventory=self.inventory,
            owner_key=self.owner_key,
            own=self.own,
            events=self.events,
            metrics=self.metrics,
            debounce=self.debounce,
            clock=self.clock,
            finalizer=f"{RESERVED_PREFIX}{self.options.name}",
            other_operators=OtherOperators(self.events, self.metrics, self.options.name),
            owns=self.ownership.owns if self.ownership is not None else None,
            resource_of=self._resource_of,
            sharded=self.options.pod is not None,
            rollouts=self.rollouts,
            dry_run=self.options.dry_run,
            pass_files=_pass_files(self.options.record) if self.options.record is not None else None,
        )

    def _resource_of(self, label: str) -> ObjectKey | None:
        return self.controllers.resource_of(label)

    def _create_controller(self, kind: Kind) -> Controller:
        limit = self.options.max_concurrent or DEFAULT_MAX_CONCURRENT
        workers = Workers(str(kind.versionless), limit=limit, metrics=self.metrics, on_exit=self._exit_on_failure)
        return Controller(kind, (), Reconciler(kind, (), self.environment, workers), workers)

    # -- metrics and readiness -----------------------------------------------------------------------------------------

    def _clock_moved(self, offset: float) -> None:
        self.metrics.clock_offset.set(offset)
        differs = abs(offset) > MAX_CLOCK_OFFSET
        if differs and not self._clock_differs:
            self.log.warning("this machine's clock differs from the API server's", seconds=round(offset, 1))
        self._clock_differs = differs

    def checks(self) -> Iterator[Check]:
        if self._starting:
            yield Check("start", ok=False, message=self._starting)
        yield ready_checks.of_rules(self.controller_set)
        yield from ready_checks.of_rollouts(self.rollouts)
        if self.election is not None:
            yield ready_checks.of_election(self.election.leads(), self.election.holder)
        if self.ownership is not None:
            yield from self.ownership.checks()
        yield from ready_checks.of_watches(self.informers)
        for controller in self.controllers:
            yield ready_checks.of_controller(controller, self.controller_set)


def _pass_files(folder: Path) -> PassFiles:
    from ruleop.operator.engine.reconcile.recorder import PassFiles  # noqa: PLC0415 - only with --record

    return PassFiles(folder)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """Returns when it is over, whatever came of it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
