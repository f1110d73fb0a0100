"""What is watched: for each need of the rules a feed, and for each namespace of a feed a store that the API server keeps up to date.

A kind that the cluster does not serve yet is no error. Its feed says so and waits; when the kind comes, or changes its scope, its watch is
made anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.kube.client.requests import Source
from ruleop.kube.watch.store import Change, Entry, State, Store
from ruleop.kube.watch.watcher import Watcher
from ruleop.permissions import READ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ruleop.kinds import GroupKind, Kind, ObjectKey
    from ruleop.kube.client.client import Client
    from ruleop.schema.table import ResourceInfo

WORST = (State.PENDING, State.FORBIDDEN, State.UNSERVED, State.SYNCED)


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """A kind to be watched, and as much of it as the rules look at."""

    kind: Kind
    labels: str = ""
    fields: str = ""
    namespace: str = ""  # '' is: all that the operator may look at
    metadata_only: bool = False


class Informer:
    """The stores of one need."""

    def __init__(self, need: WatchSpec) -> None:
        self.need = need
        self.resource: ResourceInfo | None = None
        self.watchers: list[Watcher] = []

    @property
    def state(self) -> State:
        if not self.watchers:
            return State.UNSERVED
        states = {watcher.store.state for watcher in self.watchers}
        return next(state for state in WORST if state in states)

    def state_in(self, namespace: str) -> State:
        """For objects of this namespace; '': for all."""
        for watcher in self.watchers if namespace else ():
            if watcher.store.source.namespace == namespace:
                return watcher.store.state
        return self.state

    @property
    def problem(self) -> str:
        return next((watcher.store.problem for watcher in self.watchers if watcher.store.problem), "")

    def stores(self) -> Iterator[Store]:
        for watcher in self.watchers:
            yield watcher.store

    def entries(self) -> Iterator[tuple[ObjectKey, Entry]]:
        for store in self.stores():
            yield from store.entries()

    def store_of(self, key: ObjectKey) -> Store | None:
        """The store in which an object is, or would be."""
        for watcher in self.watchers:
            if watcher.store.source.namespace in {"", key.namespace}:
                return watcher.store
        return None


class Informers:
    """All that is watched. `changed` is told of each change with the feed that it came through, `stirred` when a feed's state is
    another."""

    def __init__(
        self,
        client: Client,
        lookup: Callable[[Kind], ResourceInfo | None],
        namespaces: tuple[str, ...],
        *,
        changed: Callable[[Informer, Change], None],
        stirred: Callable[[Informer], None],
        needed: Callable[[GroupKind], Iterable[str]] = lambda _: READ,
    ) -> None:
        """`needed` gives the verbs that the rules need on a kind, for the log: a watch is the first that a missing permission stops."""
        self.client = client
        self.lookup = lookup
        self.namespaces = namespaces or ("",)
        self.changed = changed
        self.stirred = stirred
        self.needed = needed
        self.feeds: dict[WatchSpec, Informer] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def want(self, needs: Iterable[WatchSpec]) -> None:
        """Watches these and nothing else. What is watched already goes on undisturbed."""
        wanted = dict.fromkeys(needs)
        for need in [need for need in self.feeds if need not in wanted]:
            self._end(self.feeds.pop(need))
        for need in wanted:
            if need not in self.feeds:
                self.feeds[need] = Informer(need)
                self._begin(self.feeds[need])

    def look_again(self) -> None:
        """After discovery: kinds may have come, gone, or changed their scope."""
        for feed in self.feeds.values():
            if self.lookup(feed.need.kind) != feed.resource:
                self._end(feed)
                self._begin(feed)
                self.stirred(feed)

    def wake(self) -> None:
        for feed in self.feeds.values():
            for watcher in feed.watchers:
                watcher.wake()

    def _regained(self) -> None:
        """The server answers one watch again after it had not: then it will answer the others, whose turn may be a minute away."""
        for feed in self.feeds.values():
            for watcher in feed.watchers:
                if watcher.cut_off:
                    watcher.wake()

    async def stop(self) -> None:
        for feed in self.feeds.values():
            self._end(feed)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _begin(self, feed: Informer) -> None:
        feed.resource = resource = self.lookup(feed.need.kind)
        if resource is None:
            return
        need = feed.need
        namespaces = (need.namespace,) if need.namespace else self.namespaces if resource.namespaced else ("",)
        for namespace in namespaces:
            source = Source(resource, namespace, need.labels, need.fields, need.metadata_only)
            watcher = Watcher(self.client, source, regained=self._regained, needed=lambda: self.needed(need.kind.versionless))
            watcher.store.subscribe(lambda change, feed=feed: self.changed(feed, change))  # type: ignore[misc]
            watcher.store.subscribe_state(lambda _store, feed=feed: self.stirred(feed))  # type: ignore[misc]
            feed.watchers.append(watcher)
            watcher.start()

    def _end(self, feed: Informer) -> None:
        for watcher in feed.watchers:
            task = asyncio.ensure_future(watcher.stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        feed.watchers = []
