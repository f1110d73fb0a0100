"""The parts of the operator, in three groups: each is built from those before it, and starts nothing.

The server is the connection, and what asks the API server. What is known are the cache with the watches that fill it,
and the objects that the operator keeps for itself in its namespace. The work is what reconciles, and what changes its
course: events, reloads, rollouts, other processes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from ruleop.kubernetes.buckets import BUCKETS, Pod
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.names import DEFAULT_OPERATOR, RESERVED_PREFIX, lease_name
from ruleop.operator.cache import (
    Cache,
    Informers,
    OwnWrites,
    PublishedSchemas,
    WatchedShare,
    WatchSpec,
    belief,
    selection,
)
from ruleop.operator.clock import Clock
from ruleop.operator.controllers import (
    Controller,
    Controllers,
    ControllerSet,
    DiscoverySync,
    EventHandler,
    Inventory,
    inventory_key,
)
from ruleop.operator.manager.inventory_gc import InventoryCollector
from ruleop.operator.passes.executor import Executor
from ruleop.operator.passes.other_operators import OtherOperators
from ruleop.operator.passes.owner_key import OwnerKey, owner_key_key
from ruleop.operator.passes.pass_log import Events
from ruleop.operator.passes.pass_planning import PassEnvironment
from ruleop.operator.passes.reconciler import Reconciler
from ruleop.operator.passes.status import StatusSchemas
from ruleop.operator.passes.status_debounce import StatusDebounce
from ruleop.operator.queue import Workers
from ruleop.operator.revisions import RevisionStore, revisions_key
from ruleop.operator.rollouts import RolloutDriver, Rollouts, RolloutStore, prefix_of, rollouts_key, watch_of_record
from ruleop.operator.server_api import ServerApi, StoredData
from ruleop.operator.wire.client.client import Client
from ruleop.operator.wire.client.discovery import Discovery
from ruleop.operator.wire.client.event_recorder import EventRecorder
from ruleop.operator.wire.leader.lease import Timing
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Project
    from ruleop.operator.passes.recorder import PassFiles
    from ruleop.operator.rules.process import ReadRules
    from ruleop.operator.shards import Ownership
    from ruleop.operator.telemetry import Metrics
    from ruleop.operator.wire.client.client import Session
    from ruleop.operator.wire.watch.store import Selection
    from ruleop.planning.model.marks import KeyedProofs


# -- flags -------------------------------------------------------------------------------------------------------------
#
# The flags of `ruleop run`.


@dataclass(frozen=True, slots=True)
class Options:
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[str, ...] = ()
    name: str = DEFAULT_OPERATOR
    operator_namespace: str = ""
    metrics_address: str = ":8080"
    metrics_certificate: tuple[Path, Path] | None = None  # and its key, as files
    metrics_auth: bool = False
    page_address: str = ""  # empty: no page
    health_address: str = ":8081"
    leader_elect: bool = False
    selector: str = ""  # of the CRs
    pod: Pod | None = None  # with --shards auto
    lease: Timing = field(default_factory=Timing)
    max_concurrent: int | None = None
    reload: bool = True
    prune_after_reload: float = 30.0  # seconds without deletions: files of one edit may arrive one after the other
    rollouts: bool = True  # False: an edit reaches all CRs at once, whatever the rules say
    dry_run: bool = False
    qps: float | None = None
    grace: float = 30.0
    record: Path | None = None  # the folder in which each plan is recorded
    environ: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)  # that the rules can read


# -- parts -------------------------------------------------------------------------------------------------------------


MAX_CLOCK_OFFSET: Final = 5.0  # seconds between this clock and the API server's that are not logged
DEFAULT_MAX_CONCURRENT: Final = 16  # reconciles of a kind


class Server:
    """The connection to the API server, and what asks it."""

    def __init__(self, session: Session, namespace: str, options: Options, metrics: Metrics) -> None:
        """`namespace`: that of the operator's own objects."""
        self.session, self.namespace, self.metrics = session, namespace, metrics
        self.host = session.server.rpartition("://")[2]
        self.clock = Clock(self._clock_moved)
        observe = partial(metrics.request_done, self.host)
        self.client = Client(session, qps=options.qps, observe=observe, dated=self.clock.server_time)
        self.discovery = Discovery(self.client)
        self.api = ServerApi(self.client, self.discovery.resource)
        self._clock_differs = False

    def _clock_moved(self, offset: float) -> None:
        self.metrics.clock_offset.set(offset)
        differs = abs(offset) > MAX_CLOCK_OFFSET
        if differs and not self._clock_differs:
            log = structlog.get_logger()
            log.warning("this machine's clock differs from the API server's", seconds=round(offset, 1))
        self._clock_differs = differs


class Knowledge:
    """The cache and its watches, and the objects that the operator keeps for itself."""

    def __init__(self, server: Server, options: Options, project: Project, read_rules: ReadRules) -> None:
        api, resource, namespace, name = server.api, server.discovery.resource, server.namespace, options.name
        self._namespace, self._options = namespace, options
        self.cache = Cache(api, resource, namespaces=options.namespaces)
        self.cache.share = WatchedShare(options.selector)
        self.informers = Informers(
            server.client,
            resource,
            options.namespaces,
            selection=self._selection,
            believes=belief(self._proofs),
        )
        self.inventory = Inventory(StoredData(api, inventory_key(namespace, name)))
        revisions, rollouts = revisions_key(namespace, name), rollouts_key(namespace, name)
        self.revisions = RevisionStore(StoredData(api, revisions), now=server.clock.now, read_rules=read_rules)
        self.rollouts = Rollouts(self.revisions, prefix_of(options.selector))
        self.rollouts.put_in_force(project)
        self.rollout_store = RolloutStore(StoredData(api, rollouts), self.rollouts.prefix)
        key = owner_key_key(namespace, name)
        self.owner_key = OwnerKey(
            StoredData(api, key),
            changed=self.informers.list_proven_again,
            upgrading=self.inventory.has_finalizers,
            dry_run=options.dry_run,
        )
        leases = map(self.lease_key, range(BUCKETS)) if options.pod is not None else [self.lease_key()]
        self.own = frozenset({inventory_key(namespace, name), revisions, rollouts, key, *leases})
        self._record_of_rollouts = watch_of_record(rollouts)

    def lease_key(self, ordinal: int | None = None) -> ObjectKey:
        """Of this process, or of another shard."""
        options = self._options
        if ordinal is None and options.pod is not None:
            ordinal = options.pod.ordinal
        name = lease_name(options.name, selector=options.selector, ordinal=ordinal)
        return ObjectKey("coordination.k8s.io", "Lease", self._namespace, name)

    def _proofs(self) -> KeyedProofs | None:
        return self.owner_key.proofs()

    def _selection(self, need: WatchSpec) -> Selection:
        """The operator's own objects are in no store of the rules, so that no rule can read them."""
        own = self.own if need != self._record_of_rollouts else frozenset()
        return selection(need, own, self.owner_key.proofs)


class Work:
    """The reconcilers, and all that changes their course."""

    def __init__(
        self,
        server: Server,
        known: Knowledge,
        options: Options,
        identity: str,
        on_exit: Callable[[asyncio.Task[None]], None],
    ) -> None:
        """`identity`: of this process. `on_exit` is called when a worker ends."""
        self._server, self._known, self._options, self._on_exit = server, known, options, on_exit
        self.own_writes = OwnWrites()
        self.debounce = StatusDebounce(time.monotonic, asyncio.get_running_loop().call_later)
        self.recorder = EventRecorder(
            server.client,
            reporter="ruleop",
            instance=identity,
            clock=time.monotonic,
            busy=lambda: self.debounce.busy,
        )
        self.events = Events(self.recorder, dry_run=options.dry_run)
        self.ownership = self._ownership()
        self.controllers = Controllers(known.cache)
        self.environment = self._environment()
        schemas = PublishedSchemas(server.discovery, known.cache)
        self.controller_set = ControllerSet(
            self.controllers,
            informers=known.informers,
            discovery=server.discovery,
            schemas=schemas,
            inventory=known.inventory,
            status_schemas=StatusSchemas(),
            metrics=server.metrics,
            create_controller=self._create_controller,
            max_concurrent=options.max_concurrent,
            pause=options.prune_after_reload,
        )
        self.rollout_driver = RolloutDriver(
            known.rollouts,
            known.rollout_store,
            known.informers,
            known.cache,
            self.controller_set,
            ownership=self.ownership,
        )
        self.controller_set.earlier_rules = known.rollouts.rules_of
        self.controller_set.extra_watches = self.rollout_driver.watches
        self.inventory_gc = InventoryCollector(
            self.controller_set, finalizer=self.environment.finalizer, is_alone=self.is_alone
        )
        self.discovery_sync = DiscoverySync(
            server.discovery, schemas, cache=known.cache, informers=known.informers, controller_set=self.controller_set
        )
        self.event_handler = EventHandler(
            known.cache,
            self.controllers,
            self.own_writes,
            self.discovery_sync,
            rollouts=self.rollout_driver,
            status_changes=options.dry_run,
        )
        known.informers.connect(
            self.event_handler.changed, self.controller_set.state_changed, self.controller_set.verbs
        )

    def is_alone(self) -> bool:
        """Whether no other process reconciles for this operator."""
        return not self._options.selector if self.ownership is None else self.ownership.is_alone()

    def _ownership(self) -> Ownership | None:
        """None for a process without a Lease, which knows of no other."""
        options, client, namespace = self._options, self._server.client, self._server.namespace
        if not options.leader_elect or options.dry_run:
            return None
        from ruleop.operator.shards import BySelector, ProcessLeases, Sharding, UnownedResources  # noqa: PLC0415

        leases = ProcessLeases(client, namespace, options.name)
        unowned, duration = UnownedResources(client, self._server.metrics), options.lease.duration
        if options.pod is not None:
            pod = replace(options.pod, namespace=options.pod.namespace or namespace)
            return Sharding(pod, leases, self._server.metrics, unowned, duration=duration)
        own = self._known.lease_key().name
        return BySelector(own, options.selector, leases, self.events, unowned, duration=duration)

    def _environment(self) -> PassEnvironment:
        server, known, options = self._server, self._known, self._options
        return PassEnvironment(
            cache=known.cache,
            executor=Executor(server.api, known.cache, self.own_writes, proofs=known.owner_key.proofs),
            inventory=known.inventory,
            owner_key=known.owner_key,
            own=known.own,
            events=self.events,
            metrics=server.metrics,
            debounce=self.debounce,
            clock=server.clock,
            finalizer=f"{RESERVED_PREFIX}{options.name}",
            other_operators=OtherOperators(self.events, server.metrics, options.name),
            owns=self.ownership.owns if self.ownership is not None else None,
            resource_of=self.controllers.resource_of,
            sharded=options.pod is not None,
            rollouts=known.rollouts,
            dry_run=options.dry_run,
            pass_files=_pass_files(options.record) if options.record is not None else None,
        )

    def _create_controller(self, kind: Kind) -> Controller:
        limit = self._options.max_concurrent or DEFAULT_MAX_CONCURRENT
        name, metrics = str(kind.versionless), self._server.metrics
        workers = Workers(name, limit=limit, metrics=metrics, on_exit=self._on_exit)
        return Controller(kind, (), Reconciler(kind, (), self.environment, workers), workers)


def _pass_files(folder: Path) -> PassFiles:
    from ruleop.operator.passes.recorder import PassFiles  # noqa: PLC0415 - only with --record

    return PassFiles(folder)
