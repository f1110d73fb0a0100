"""The loop that drives rollouts: in all processes it follows the record; in the leader it also takes the next steps.

A step is computed from the record and the status of the custom resources, then stored, and only then acted upon. So a
crash, a lost response and a command in between are the same: the next step begins from what is stored.

Of several shards, the one with the first bucket takes the steps, for which it watches all CRs while a rollout is in
progress.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.labels import labels_of
from ruleop.kubernetes.permissions import FOLLOW, STORED, grant, place
from ruleop.operator.cache import WatchSpec
from ruleop.operator.rollouts.rollouts import kind_of, watch_key
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.watch.store import StoreState
from ruleop.planning import choose_rule
from ruleop.planning.rollout import RolloutRecord, RolloutRevision, WaveView, advance, begun, member_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import GroupKind, Object, ObjectKey
    from ruleop.language.rules import Project, Rule
    from ruleop.operator.cache import Cache, Informer, Informers
    from ruleop.operator.rollouts.rollouts import Rollouts, RolloutStore
    from ruleop.operator.wire.watch.store import StoreEntry

OWN_LABEL: Final = "app.kubernetes.io/managed-by=ruleop"
INTERVAL: Final = 0.25
"""Seconds between two steps: CRs that become ready in between are one step, and one write of the record."""
CHUNK: Final = 100  # CRs between two turns of the loop
IDLE_INTERVAL: Final = 5.0
"""Seconds between two steps without an event; deadlines are noticed by them."""
RETRY_INTERVAL: Final = 10.0  # seconds after a failed step


class Queues(Protocol):
    """The queues of the watched kinds, which the manager has."""

    def enqueue(self, kind: GroupKind, keys: Iterable[ObjectKey] | None, cause: str) -> None:
        """Queues CRs; None for all of the kind."""
        ...

    def update_watches(self) -> None: ...
    def rules_changed(self) -> None:
        """The rules of earlier revisions have changed, and with them what has to be watched."""
        ...


class Processes(Protocol):
    """The part that this process has in rollouts, beside others of the operator."""

    def drives_rollouts(self) -> bool: ...
    def other_owner(self, labels: Mapping[str, str]) -> object | None: ...


class _Known(NamedTuple):
    """One version of a CR, as far as rollouts depend on it."""

    version: int
    project: Project  # on disk
    rule: Rule | None  # of this project
    view: WaveView
    labels: Mapping[str, str]


def watch_of_record(key: ObjectKey) -> WatchSpec:
    """The watch of the ConfigMap with the records, by a label that no observed resource has in its watch: no rule reads
    this store."""
    return WatchSpec(Kind("", "v1", "ConfigMap"), OWN_LABEL, f"metadata.name={key.name}", key.namespace)


class RolloutDriver:
    def __init__(
        self,
        rollouts: Rollouts,
        store: RolloutStore,
        informers: Informers,
        cache: Cache,
        queues: Queues,
        *,
        ownership: Processes | None = None,
    ) -> None:
        """`ownership` says whether this process takes the steps, once it leads. A CR that another process reconciles
        does not take part. None: there are no others."""
        self.rollouts, self.store, self.informers, self.cache = rollouts, store, informers, cache
        self.queues, self.ownership = queues, ownership
        self.leading = False
        self.need = watch_of_record(store.store.key)
        self.log = structlog.get_logger()
        self._views: dict[ObjectKey, _Known] = {}
        self._changed = asyncio.Event()
        self._reported = ""
        self._watched_whole: tuple[WatchSpec, ...] = ()

    def watches(self) -> Iterator[WatchSpec]:
        """The watches of rollouts, besides those of the rules."""
        if self.is_used:
            yield self.need
            yield from self._whole_watches()

    def _whole_watches(self) -> tuple[WatchSpec, ...]:
        """The watches of all CRs of rollouts in progress, by the shard that drives them."""
        disk = self.rollouts.disk
        if self.cache.share.buckets is None or not self.leading or not self._drives() or disk is None:
            return ()
        active = {kind_of(watch) for watch, record in self.rollouts.records.items() if not record.is_complete}
        return tuple(
            {WatchSpec(rule.kind): None for rule in disk.rules if rule.rollout and rule.kind.versionless in active}
        )

    @property
    def is_used(self) -> bool:
        """Whether a watch has `rollout`, or had it when the record was written."""
        disk = self.rollouts.disk
        return bool(self.rollouts.records) or (disk is not None and any(rule.rollout for rule in disk.rules))

    # -- the record ----------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Reads the record, before anything is reconciled. Raises ApiError."""
        if self.is_used:
            self.take(await self.store.read())

    def record_changed(self, obj: Object | None) -> None:
        """Called for each event of the ConfigMap."""
        if obj is None:  # somebody deleted it: the leader writes it again
            self.store.removed()
        elif self.store.is_new(obj["metadata"]["resourceVersion"]):
            self.take(self.store.seen(obj))
        self.wake()

    def wake(self) -> None:
        """Called when the rules on disk, or a CR, have changed."""
        self._changed.set()

    def start_leading(self) -> None:
        self.leading = True
        self.wake()

    def take(self, records: Mapping[str, RolloutRecord]) -> None:
        """Goes by these records from now on. The CRs that have another revision than before are queued; all CRs of a
        watch, if its phase has changed, because some of them report that."""
        before, disk = self.rollouts.records, self.rollouts.disk
        rolled_out = (
            {watch_key(rule, self.rollouts.prefix) for rule in disk.rules if rule.rollout is not None}
            if disk is not None
            else set()
        )
        kept = {watch: record for watch, record in before.items() if watch in rolled_out}  # not stored yet, or deleted
        self.rollouts.records = records = {**kept, **records}
        for watch in before.keys() | records.keys():
            old, new = before.get(watch), records.get(watch)
            if old is None or new is None or (old.phase != new.phase and not old.is_complete):
                self.queues.enqueue(kind_of(watch), None, "a rollout changed")
            elif old != new:
                keys = [key for key, member in self._members(kind_of(watch)) if _differ(old, new, member)]
                if keys:
                    self.queues.enqueue(kind_of(watch), keys, f"revision {new.target.short}")

    def _members(self, kind: GroupKind) -> Iterator[tuple[ObjectKey, str]]:
        if (informer := self.cache.primary.get(kind)) is not None:
            yield from ((key, member_of(entry.uid)) for key, entry in informer.entries())

    # -- the loop ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                async with asyncio.timeout(IDLE_INTERVAL):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                if await self.rollouts.load_earlier():
                    self.queues.rules_changed()
                if self.leading and self._drives():
                    await self.step()
                if self._whole_watches() != self._watched_whole:
                    self._watched_whole = self._whole_watches()
                    self.queues.update_watches()
                self._reported = ""
            except RuleopError as error:
                self._report(error)
                await asyncio.sleep(RETRY_INTERVAL)
                self._changed.set()

    def _report(self, error: RuleopError) -> None:
        """Logs each cause once."""
        if str(error) != self._reported:
            self._reported = str(error)
            is_denied = isinstance(error, ApiError) and error.problem is Problem.FORBIDDEN
            where = place(self.store.store.key.namespace)
            needed = {"grant": grant("configmaps", where, {*STORED, *FOLLOW})} if is_denied else {}
            self.log.warning("the record of rollouts was not written; will retry", error=str(error), **needed)

    async def step(self) -> None:
        """Takes the next step of each rollout. Raises ApiError."""
        disk = self.rollouts.disk
        if disk is None or not self.is_used:
            return
        rules = {watch_key(rule, self.rollouts.prefix): rule for rule in disk.rules if rule.rollout is not None}
        views = {watch: await self._views_of(rule, watch) for watch, rule in rules.items()}
        if self.rollouts.disk is not disk:
            self.wake()
            return
        # Nothing else runs from here to the request, so it names the version from which it is computed.
        before = self.rollouts.records
        records = {watch: self._next(rule, before.get(watch), views[watch]) for watch, rule in rules.items()}
        if all(record.is_complete for record in records.values()):
            self._views.clear()
        if not await self.store.write(records):
            self.take(await self.store.read())
            self.wake()
            return
        self.take(records)
        for watch, record in records.items():
            self._log(watch, before.get(watch), record)

    def _next(self, rule: Rule, record: RolloutRecord | None, views: list[WaveView] | None) -> RolloutRecord:
        assert rule.rollout is not None
        record = self._begun(rule, record)
        return advance(rule.rollout, record, views, time.time()) if views is not None else record

    def _begun(self, rule: Rule, record: RolloutRecord | None) -> RolloutRecord:
        """The record, if the rules on disk are the target."""
        assert self.rollouts.disk is not None
        revision = RolloutRevision(rule.revision, self.rollouts.disk.revision)
        return begun(record, revision) if record is not None else RolloutRecord.complete(revision)

    def _informer(self, rule: Rule) -> Informer | None:
        """The informer of all CRs that take part."""
        if self.cache.share.buckets is None:
            return self.cache.primary.get(rule.kind.versionless)
        return self.informers.informers.get(WatchSpec(rule.kind))

    async def _views_of(self, rule: Rule, watch: str) -> list[WaveView] | None:
        """The CRs that take part. None if there is no rollout, or not all CRs are known: without them, it could seem to
        be complete. Others run in between, because there may be many."""
        informer, disk = self._informer(rule), self.rollouts.disk
        if self._begun(rule, self.rollouts.records.get(watch)).is_complete:
            return None
        if disk is None or informer is None or informer.state is not StoreState.SYNCED:
            return None
        found = []
        for number, (key, entry) in enumerate(list(informer.entries())):
            known = self._views.get(key)
            if known is None or known.version != entry.version or known.project is not disk:
                known = self._views[key] = self._known(entry, rule, disk)
            if known.rule is rule and not self._is_elsewhere(known.labels):
                found.append(known.view)
            if number % CHUNK == CHUNK - 1:
                await asyncio.sleep(0)
        return found if informer.state is StoreState.SYNCED else None

    def _drives(self) -> bool:
        return self.ownership is None or self.ownership.drives_rollouts()

    def _is_elsewhere(self, labels: Mapping[str, str]) -> bool:
        return self.ownership is not None and self.ownership.other_owner(labels) is not None

    def _known(self, entry: StoreEntry, rule: Rule, disk: Project) -> _Known:
        resource = {"apiVersion": rule.kind.api_version, "kind": rule.kind.kind, **entry.parsed()}
        chosen = choose_rule(disk.rules, resource)
        label = chosen.rollout.label if chosen is not None and chosen.rollout is not None else ""
        return _Known(entry.version, disk, chosen, WaveView.of(resource, label), labels_of(resource))

    def _log(self, watch: str, before: RolloutRecord | None, record: RolloutRecord) -> None:
        log = self.log.bind(watch=watch, revision=record.target.short)
        if before is None or before == record:
            return
        if before.target.rule != record.target.rule:
            log.info("rollout began", **{"from": before.target.short, "undo": record.undo})
        if len(record.released) > len(before.released):
            released = len(record.released) - (len(before.released) if before.target == record.target else 0)
            log.info("CRs released", released=released, **_counts(record))
        if before.phase != record.phase:
            if record.phase == "Stopped":
                log.error("rollout stopped", reason=record.reason, **_counts(record))
            elif record.phase == "Paused":
                log.warning("rollout paused", reason=record.reason, **_counts(record))
            elif record.phase == "Complete":
                log.info("rollout complete", resources=record.total)


def _counts(record: RolloutRecord) -> dict[str, int]:
    return {"held_back": record.held_back, "pending": len(record.pending), "failed": len(record.failed)}


def _differ(old: RolloutRecord, new: RolloutRecord, member: str) -> bool:
    return old.revision_of(member).rule != new.revision_of(member).rule
