"""The operator with all its parts except the network and the watches: a test decides when an event arrives.

The manager creates its parts itself. `Wire` replaces its client, and `FakeWatcher` each watcher; reflectors and stores
are real.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from ruleop.operator.cache import informers
from ruleop.operator.controllers.controller_set import Controller
from ruleop.operator.manager import manager, parts
from ruleop.operator.manager.parts import Options
from ruleop.operator.passes import status_debounce as debounce
from ruleop.operator.queue.work_queue import Backoff
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.client.server_errors import response_error
from ruleop.operator.wire.watch.reflector import Reflector
from ruleop.operator.wire.watch.store import Selection as StoreSelection
from ruleop.operator.wire.watch.store import Store, StoreState
from tests.invariants.api_server import HOME, ApiServer, Selection, Wire
from tests.operator.wire.model_server import bookmark, line
from tests.operator.wire.test_client import Open
from tests.projects.cluster import Happened
from tests.waiting import PATIENCE

SOON = 0.2  # seconds; a key that is due later does not count as work
MOST = PATIENCE  # until everything has to be done
QUICK = Backoff(0.001, 0.02)  # so that retries do not slow a test down


class FakeWatcher:
    """A watch that delivers events when the test calls `deliver`."""

    def __init__(self, wire: HarnessWire, source: ObjectSource, *, selects: StoreSelection, **_: Any) -> None:
        self.store = Store(source, selects)
        self.selection = Selection.of(source)
        self.wire = wire
        self.reflector = Reflector(source, self.store, chance=lambda: 0.5)
        self.at = 0  # events up to this version were delivered or lost
        self.gap = False  # an event was lost; the next list makes up for it

    def start(self) -> None:
        self.wire.watchers.append(self)

    async def stop(self) -> None:
        self.wire.watchers.remove(self)

    def wake(self) -> None: ...

    def age(self) -> float:
        return 0.0

    def list(self) -> None:
        """The first list, or a relist after lost events."""
        cluster = self.wire.api.cluster
        self.reflector = Reflector(self.store.source, self.store, chance=lambda: 0.5, highest=self.store.version)
        self.reflector.next(time.monotonic())
        self.reflector.opened(time.monotonic())
        there = [line("ADDED", obj) for key, obj in cluster.everything() if self.selection.has(key, obj)]
        self.gap = False
        self.bring(*there, bookmark(cluster.version, ends=True))
        self.at = cluster.version

    def refused(self, status: int) -> None:
        """The watch is answered with 403 or 404."""
        now = time.monotonic()
        self.reflector.next(now)
        self.reflector.failed(response_error(status, b"{}", verb="list", resource=str(self.store.source)), now)

    def outstanding(self) -> list[tuple[str, dict[str, Any]]]:
        return [event for each in self._missed() if (event := self.selection.event(each))]

    def _missed(self) -> Iterable[Happened]:
        return (each for each in self.wire.api.cluster.history if each.version > self.at)

    def deliver(self) -> None:
        """Delivers all outstanding events in order."""
        if self.store.state is StoreState.SYNCED and self.at < (now := self.wire.api.cluster.version):
            self.bring(*(line(*event) for event in self.outstanding()), bookmark(now))
            self.at = now

    def bring(self, *lines: bytes) -> None:
        self.reflector.lines(lines, time.monotonic())


class HarnessWire(Wire):
    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.watchers: list[FakeWatcher] = []


class OperatorHarness:
    def __init__(self, server: ApiServer, wire: HarnessWire, **options: Any) -> None:
        self.server, self.cluster, self.wire = server, server.cluster, wire
        project = self.cluster.project
        self.manager = manager.Manager(project, Path(project.root), Options(operator_namespace=HOME, **options))
        self.manager.compose(mock.Mock(server="https://memory"), Open(""))

    @property
    def watchers(self) -> list[FakeWatcher]:
        return self.wire.watchers

    @property
    def controllers(self) -> list[Controller]:
        return list(self.manager.work.controllers)

    async def start(self) -> None:
        """As the manager does, up to the watches, which have listed nothing yet."""
        await self.manager.server.discovery.refresh()
        await self.manager.known.inventory.load()
        await self.manager._load_key()
        self.manager.work.controller_set.start_leading()
        self.manager.work.controller_set.apply(self.cluster.project)
        for controller in self.controllers:
            controller.workers.queue.backoff = QUICK

    async def stop(self) -> None:
        await self.manager.work.controller_set.stop()

    def watcher(self, kind: str) -> FakeWatcher:
        """The watcher of a kind; of a watched kind, that of its CRs."""
        return next(watcher for watcher in self.watchers if watcher.store.kind.kind == kind)

    def list_all(self, *, but: Iterable[FakeWatcher] = ()) -> None:
        for watcher in [
            watcher for watcher in self.watchers if watcher not in but and watcher.store.state is StoreState.PENDING
        ]:
            watcher.list()

    def resync(self) -> None:
        """Queues each CR, as a resync does."""
        for controller in self.controllers:
            self.manager.work.controllers.enqueue_all(controller, "resync")

    async def until_idle(self, seconds: float = 10.0) -> bool:
        """Until the workers have nothing to do, without delivering events. False if it takes too long."""
        end = time.monotonic() + seconds
        while (
            self.manager.work.debounce.busy
            or self.manager.work.debounce._waiting
            or not all(map(_idle, self.controllers))
        ):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0)
        return True

    async def until_quiet(self) -> None:
        """Until nothing changes any more, delivering all events."""
        end = time.monotonic() + MOST
        while time.monotonic() < end:
            version = self.cluster.version
            for watcher in list(self.watchers):
                watcher.deliver()
            idle = await self.until_idle(0.1)  # passes that fail because the watches lag keep failing
            self.cluster.collect()
            if idle and self.cluster.version == version:
                return
        raise AssertionError(f"the operator keeps working: {self.server.writes()[-20:]}")

    async def until_settled(self) -> None:
        """The same, while the controllers of built-in kinds work."""
        for _ in range(12):
            await self.until_quiet()
            version = self.cluster.version
            self.cluster.settle()
            if self.cluster.version == version:
                return
        raise AssertionError(f"the cluster keeps changing: {self.server.writes()[-20:]}")


def _idle(controller: Controller) -> bool:
    queue, now = controller.workers.queue, time.monotonic()
    due = queue.next_due()
    statistics = queue.statistics(now=now)
    return (
        not (controller.workers._open and statistics["ready"])
        and not statistics["active"]
        and (due is None or due > now + SOON)
    )


@contextlib.asynccontextmanager
async def started_operator(server: ApiServer, **options: Any) -> AsyncIterator[OperatorHarness]:
    """An operator that has started, and has listed nothing yet."""
    wire = HarnessWire(server)
    with (
        mock.patch.object(parts, "Client", return_value=wire),
        mock.patch.object(informers, "Watcher", FakeWatcher),
        mock.patch.object(debounce, "CALM", 0.001),
    ):
        harness = OperatorHarness(server, wire, **options)
        await harness.start()
        try:
            yield harness
        finally:
            await harness.stop()


@contextlib.asynccontextmanager
async def settled_operator(server: ApiServer, **options: Any) -> AsyncIterator[OperatorHarness]:
    """An operator that has listed everything and has nothing left to do."""
    async with started_operator(server, **options) as harness:
        harness.list_all()
        await harness.until_settled()
        yield harness
