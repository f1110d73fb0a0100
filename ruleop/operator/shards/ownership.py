"""Decides which custom resources this process reconciles, and keeps its Lease and what it watches in step with that.

With `--shards auto` it is one of the pods of a StatefulSet, and has some of 64 buckets of resources (`Sharding`).
Without, it has those that its selector matches, except what an earlier process reconciles (`BySelector`)."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from ruleop.kubernetes.buckets import BUCKETS, Pod, bucket_of, buckets_of, hash_range, owner_of
from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind, ObjectKey, parse_version
from ruleop.kubernetes.labels import labels_of, matched_by_none, meets
from ruleop.kubernetes.names import EPOCH, OPERATOR_LABEL, SELECTOR, SINCE
from ruleop.kubernetes.permissions import READ, STORED, grant, place
from ruleop.operator.cache import WatchedShare
from ruleop.operator.shards.claims import (
    NO_SHARD,
    Claims,
    Confirm,
    Drain,
    Epoch,
    ListLeases,
    ProcessLease,
    Roster,
    Shard,
    requirements,
)
from ruleop.operator.telemetry import Check
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import reading
from ruleop.operator.wire.client.requests import ObjectSource, list_page
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.leader.election import LEASES
from ruleop.operator.wire.watch.store import StoreChange, StoreState
from ruleop.operator.wire.watch.watcher import Watcher
from ruleop.planning import Event, choose_rule
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.operator.controllers import ControllerSet
    from ruleop.operator.passes.pass_log import Events
    from ruleop.operator.telemetry import Metrics
    from ruleop.operator.wire.client.client import Client
    from ruleop.operator.wire.leader.election import Election

    LoadInventory = Callable[[], Awaitable[None]]


# -- unowned -----------------------------------------------------------------------------------------------------------
#
# Counts the custom resources that no process of the operator reconciles.
#
# No process watches them. They are listed in pages, without spec and status, and with the narrowest selector there is,
# by one of the processes.


PAGE: Final = 500
EXAMPLES: Final = 3


class UnownedResources:
    """Those found by this process; none while another one looks for them."""

    def __init__(self, client: Client, metrics: Metrics) -> None:
        self.client, self.metrics = client, metrics
        self.count = 0
        self._examples: list[str] = []
        self._problem = ""

    def checks(self) -> Iterator[Check]:
        if self.count:
            yield Check("unowned resources", False, f"{self.count} without a process", counts=False)

    def clear(self) -> None:
        self._set(0, [])

    async def find(
        self,
        controller_set: ControllerSet,
        is_unowned: Callable[[Object], bool],
        *,
        labels: str = "",
        hashes: tuple[int, int] | None = None,
    ) -> bool:
        """Counts those that a rule matches; False if they cannot be listed. The selector and the range of hashes of
        their uids must include all of them."""
        count, examples = 0, []
        try:
            async for resource in self._listed(controller_set, labels, hashes):
                if is_unowned(resource):
                    count += 1
                    if count <= EXAMPLES:
                        examples.append(str(ObjectKey.of(resource)))
        except ApiError as error:
            if self._problem != str(error):
                log.warning("custom resources without a process cannot be counted; will retry", error=str(error))
            self._problem = str(error)
            return False
        self._problem = ""
        self._set(count, examples)
        return True

    def _set(self, count: int, examples: list[str]) -> None:
        if count and (count, examples) != (self.count, self._examples):
            log.warning("no process reconciles some custom resources", count=count, examples=examples)
        self.count, self._examples = count, examples
        self.metrics.unowned_resources.set(count)

    async def _listed(
        self, controller_set: ControllerSet, labels: str, hashes: tuple[int, int] | None
    ) -> AsyncIterator[Object]:
        """Their metadata and kind."""
        for controller in tuple(controller_set.controllers):
            resource = controller_set.discovery.resource(controller.kind)
            if resource is None or not controller.rules:
                continue
            kind = {"apiVersion": controller.kind.api_version, "kind": controller.kind.kind}
            for namespace in controller_set.informers.namespaces if resource.namespaced else ("",):
                source = ObjectSource(resource, namespace, labels, metadata_only=True, hashes=hashes)
                async for metadata in self._pages(source):
                    found = {**kind, "metadata": metadata}
                    if choose_rule(controller.rules, found) is not None:
                        yield found

    async def _pages(self, source: ObjectSource) -> AsyncIterator[Mapping[str, Any]]:
        token: str | None = ""
        while token is not None:
            request = list_page(source, limit=PAGE, token=token)
            page = await self.client.send(request)
            with reading(request):
                found = [each["metadata"] for each in page["items"] or ()]  # null, if there are none
                token = (page.get("metadata") or {}).get("continue") or None
            for metadata in found:
                yield metadata


# -- process leases ----------------------------------------------------------------------------------------------------
#
# The names and the contents of the Leases by which the processes of one operator know each other.


_ORDINAL = re.compile(r"[0-9]{1,5}")


def read_lease(lease: Object, operator: str) -> ProcessLease:
    """Of any content: anybody with the permission may have written it."""
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    annotations: Mapping[str, Any] = metadata.get("annotations") or {}
    name, duration = metadata["name"], spec.get("leaseDurationSeconds")
    number = name.removeprefix(f"{operator}.")  # a dot: an operator may be named `ruleop-1`, but not `ruleop.1`
    version = metadata.get("resourceVersion") or ""
    return ProcessLease(
        name=name,
        ordinal=int(number) if number != name and _ORDINAL.fullmatch(number) else NO_SHARD,
        holder=str(spec.get("holderIdentity") or ""),
        epoch=Epoch.parse(annotations.get(EPOCH)),
        version=version,
        duration=float(duration) if isinstance(duration, int) else 15.0,
        since=parse_version(annotations.get(SINCE)) or parse_version(version),
        selector=str(annotations.get(SELECTOR) or ""),
    )


@dataclass(frozen=True, slots=True)
class ProcessLeases:
    """The Leases of all processes of an operator."""

    client: Client
    namespace: str
    name: str

    async def list(self) -> list[ProcessLease]:
        """As they are now: the server reads them from its storage. Raises ApiError."""
        source = ObjectSource(LEASES, self.namespace, f"{OPERATOR_LABEL}={self.name}")
        request = requests.list_page(source, limit=0)
        response = await self.client.send(request)
        with reading(request):
            return [read_lease(each, self.name) for each in response["items"]]


# -- ownership ---------------------------------------------------------------------------------------------------------


STATEFUL_SETS: Final = ResourceInfo(
    "statefulsets", namespaced=True, status_subresource=True, kind=Kind("apps", "v1", "StatefulSet")
)
AGAIN: Final = 1.0  # seconds until the Leases are listed again, while others still hold buckets
LISTS: Final = 3  # of the Leases while one lasts, by processes without shards
REPORT: Final = 30.0  # seconds between two reports of unowned buckets

log = structlog.get_logger(__name__)


class Ownership(Protocol):
    """The custom resources that this process reconciles. They may change at any time."""

    def owns(self, resource: Object) -> bool: ...
    def is_alone(self) -> bool:
        """Whether no other process works with the same inventory, so that this one can tell what is obsolete."""
        ...

    def checks(self) -> Iterator[Check]: ...
    def other_owner(self, labels: Mapping[str, str]) -> ProcessLease | None:
        """The process that reconciles a resource with these labels in place of this one, where that is known."""
        ...

    def drives_rollouts(self) -> bool:
        """Whether this is the process that releases the next resources of a rollout."""
        ...

    async def share(self) -> WatchedShare:
        """Waits until it is known what is to be watched while this process waits for its Lease."""
        ...

    async def begin(self, election: Election) -> None:
        """Called when this process holds its Lease, before its first reconcile. Raises ApiError."""
        ...

    async def run(self, election: Election, controller_set: ControllerSet, load_inventory: LoadInventory) -> None:
        """Called after that: follows the other processes until this one ends."""
        ...

    async def stop(self) -> None: ...
    async def find_unowned(self, controller_set: ControllerSet) -> None:
        """Counts the CRs that no process has, if this is the process to do that, until it ends. It may take long, and
        delays nothing else."""
        ...


class BySelector:
    """The resources that the selector of a process matches, or all."""

    def __init__(
        self,
        name: str,
        selector: str,
        leases: ProcessLeases,
        events: Events,
        unowned: UnownedResources,
        *,
        duration: float,
    ) -> None:
        """`name` of its Lease, and how long that lasts."""
        self.roster, self.claims = Roster(name, duration=duration), Claims(name, 0)
        self.selector, self.leases, self.events, self.unowned = selector, leases, events, unowned

    def other_owner(self, labels: Mapping[str, str]) -> ProcessLease | None:
        return self.claims.owner_of(labels) if self.claims.earlier else None

    def owns(self, resource: Object) -> bool:
        """Asked before a reconcile. If another process has the resource, it gets an Event."""
        other = self.other_owner(labels_of(resource))
        if other is None:
            return True
        which = f'with the selector "{other.selector}"' if other.selector else "without a selector"
        message = (
            f"not reconciled by {self.roster.name}: another process {which} does that ({other.holder}, Lease "
            f"{self.leases.namespace}/{other.name}); let only one of their selectors match it"
        )
        self.events.record(resource, [Event("Warning", "ReconciledElsewhere", message)])
        return False

    def is_alone(self) -> bool:
        return not self.selector and not self.claims.earlier

    def checks(self) -> Iterator[Check]:
        for each in self.claims.earlier:
            yield Check(
                f"process {each.name}", False, f"reconciles {each.selector or 'all'}, and was here before", False
            )
        yield from self.unowned.checks()

    def drives_rollouts(self) -> bool:
        return True

    async def share(self) -> WatchedShare:
        return WatchedShare(self.selector)

    async def stop(self) -> None:
        """Nothing of it runs by itself."""

    async def begin(self, election: Election) -> None:
        self.claims = Claims(self.roster.name, election.since)
        try:
            self.claims.listed(await self.leases.list(), time.monotonic())
        except ApiError as error:
            if error.problem is not Problem.FORBIDDEN:
                raise
            needed = grant(LEASES.title, place(self.leases.namespace), ("list",))
            log.warning("other processes of this operator are not noticed", error=str(error), grant=needed)

    async def run(self, _election: Election, controller_set: ControllerSet, _load: LoadInventory) -> None:
        """Takes over what an earlier process has left. A process without a selector has everything else, too."""
        while self.selector or self.claims.earlier:
            await asyncio.sleep(self.roster.duration / LISTS)
            with contextlib.suppress(ApiError):
                leases, now = await self.leases.list(), time.monotonic()
                self.roster.listed(leases, now)
                if self.claims.listed(leases, now):
                    controller_set.enqueue_everything("another process ended")

    async def find_unowned(self, controller_set: ControllerSet) -> None:
        while self.selector:
            await asyncio.sleep(self.roster.duration / LISTS)
            await self._find(controller_set, self.roster.selectors, time.monotonic())

    async def _find(self, controller_set: ControllerSet, selectors: frozenset[str], now: float) -> None:
        each_of = [requirements(each) for each in sorted(selectors)]
        if not self.roster.is_first or () in each_of:
            self.unowned.clear()
        elif self.roster.is_due(now) and await self.unowned.find(
            controller_set,
            lambda resource: not any(meets(labels_of(resource), each) for each in each_of),
            labels=matched_by_none(each_of),
        ):
            self.roster.looked(selectors, now)


class Sharding:
    """The buckets of resources that a pod of a StatefulSet has: it does the steps of its `Shard`."""

    controller_set: ControllerSet

    def __init__(
        self, pod: Pod, leases: ProcessLeases, metrics: Metrics, unowned: UnownedResources, *, duration: float
    ) -> None:
        """`duration` of the Lease."""
        self.unowned_resources = unowned
        self.pod, self.leases, self.metrics, self.duration = pod, leases, metrics, duration
        self.shard = Shard(pod.ordinal)
        self.ready: frozenset[int] = frozenset()  # buckets for which the inventory was read
        self._changed = asyncio.Event()
        self._problem = ""
        self._unowned_since: dict[int, float] = {}
        key = pod.stateful_set
        source = ObjectSource(STATEFUL_SETS, key.namespace, fields=f"metadata.name={key.name}")
        self.watcher = Watcher(leases.client, source, needed=lambda: READ)
        self.watcher.store.subscribe(self._read)
        self.watcher.store.subscribe_state(lambda _: self._changed.set())

    # -- what others ask -----------------------------------------------------------------------------------------------

    def owns(self, resource: Object) -> bool:
        return bucket_of(resource["metadata"].get("uid") or "") in self.shard.held & self.ready

    def is_alone(self) -> bool:
        return len(self.shard.held) == BUCKETS

    def other_owner(self, _labels: Mapping[str, str]) -> None:
        """Buckets go by uids: labels say nothing of who has a resource."""

    def drives_rollouts(self) -> bool:
        """The one with the first bucket does."""
        return 0 in self.shard.held & self.ready

    def checks(self) -> Iterator[Check]:
        shard = self.shard
        if shard.target is None:
            yield Check("shards", False, self._missing())
            return
        mine = buckets_of(shard.ordinal, shard.target.count)
        text = f"{len(shard.held)} of {len(mine)} buckets, shard {shard.ordinal} of {shard.target.count}"
        blockers = sorted({f"{each.name} (held by {each.holder})" for each in shard.blocked.values()})
        if blockers:
            text += f"; {len(shard.blocked)} buckets are still held by {', '.join(blockers)}"
        yield Check("shards", shard.held == mine, self._problem or text, counts=False)
        if unowned := self.unowned():
            missing = sorted({owner_of(bucket, shard.target.count) for bucket in unowned})
            names = ", ".join(f"{self.pod.stateful_set.name}-{each}" for each in missing)
            yield Check("unowned buckets", False, f"{len(unowned)} buckets have no process: is {names} running?", False)
        yield from self.unowned_resources.checks()

    def _missing(self) -> str:
        store, key = self.watcher.store, self.pod.stateful_set
        if store.state is StoreState.SYNCED and key not in store:
            return f"StatefulSet {key.namespace}/{key.name} not found: --shards auto is for its pods"
        return store.problem or f"StatefulSet {key.namespace}/{key.name} is not read yet"

    def unowned(self) -> frozenset[int]:
        """Buckets without a process for longer than a Lease lasts."""
        now = time.monotonic()
        return frozenset(bucket for bucket, since in self._unowned_since.items() if now >= since + self.duration)

    # -- the count -----------------------------------------------------------------------------------------------------

    def _read(self, change: StoreChange) -> None:
        if change.new is None:
            return  # its pods will end; until then the count stays
        spec = change.new.parsed().get("spec") or {}
        count = spec.get("replicas", 1)
        if isinstance(count, int):
            self.shard.aim(Epoch(change.new.version, count))
            self._changed.set()

    async def share(self) -> WatchedShare:
        """Waits until the number of shards is known."""
        self.watcher.start()
        while self.shard.target is None:
            self._changed.clear()
            await self._changed.wait()
            if self.shard.target is None:
                log.warning("the number of shards is not known", problem=self._missing())
        return WatchedShare(buckets=buckets_of(self.shard.ordinal, self.shard.target.count))

    # -- the steps -----------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        await self.watcher.stop()

    async def begin(self, _election: Election) -> None:
        """It has no bucket yet, so it reconciles nothing."""

    async def run(self, election: Election, controller_set: ControllerSet, load_inventory: LoadInventory) -> None:
        self.shard.since, self.controller_set = election.since, controller_set
        while True:
            self._changed.clear()
            step = self.shard.next()
            try:
                if isinstance(step, Drain):
                    await self._drain(step)
                elif isinstance(step, Confirm):
                    await election.annotate({EPOCH: str(step.epoch)})
                    self.shard.confirmed(step.epoch)
                elif isinstance(step, ListLeases):
                    if step.again:
                        await self._pause(AGAIN)
                    await self._list(load_inventory)
                else:  # also if the inventory could not be read for what is held
                    await self._pause(REPORT if self.shard.held <= self.ready else AGAIN)
                    await self._list(load_inventory)
                self._problem = ""
            except ApiError as error:
                if self._problem != str(error):
                    needed = grant(LEASES.title, place(self.leases.namespace), ("list", *STORED))
                    grants = {"grant": needed} if error.problem is Problem.FORBIDDEN else {}
                    log.warning("Leases of the shards cannot be listed; will retry", error=str(error), **grants)
                self._problem = str(error)
                await asyncio.sleep(AGAIN)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _drain(self, step: Drain) -> None:
        """From now on no pass begins on what this process loses. Those that run are finished first: the others wait for
        that."""
        self.ready &= self.shard.held
        await self.controller_set.finish_running()
        self.controller_set.set_share(WatchedShare(buckets=step.buckets), lambda uid: bucket_of(uid) in step.buckets)
        self.shard.drained(step.buckets)

    async def _list(self, load_inventory: LoadInventory) -> None:
        shard, before = self.shard, self.shard.held
        shard.listed(await self.leases.list(), time.monotonic())
        if shard.held - self.ready:
            # Others may have written children of kinds that this process does not know yet.
            added = shard.held
            await load_inventory()
            self.ready = added
            self.controller_set.update_watches()
            self.controller_set.enqueue_everything("it belongs to this shard")
        self.ready &= shard.held
        if shard.held != before:
            log.info(
                "buckets changed",
                shard=shard.ordinal,
                held=len(shard.held),
                waiting=len(shard.blocked),
                epoch=str(shard.target),
            )
        now = time.monotonic()
        self._unowned_since = {bucket: self._unowned_since.get(bucket, now) for bucket in shard.unowned()}
        self.metrics.unowned_buckets.set(len(self.unowned()))
        self.metrics.shard_info.clear()
        self.metrics.shard_info.labels(shard.ordinal, shard.target.count if shard.target is not None else 0).set(1)
        self.metrics.shard_buckets.set(len(shard.held))

    async def find_unowned(self, controller_set: ControllerSet) -> None:
        while True:
            await asyncio.sleep(REPORT)
            await self._find(controller_set, self.unowned())

    async def _find(self, controller_set: ControllerSet, buckets: frozenset[int]) -> None:
        if not buckets or any(NO_SHARD < each.ordinal < self.shard.ordinal for each in self.shard.others):
            self.unowned_resources.clear()
            return
        await self.unowned_resources.find(
            controller_set,
            lambda resource: bucket_of(resource["metadata"].get("uid") or "") in buckets,
            hashes=hash_range(buckets),
        )
