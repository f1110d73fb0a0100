"""The operator with all its parts but the network and the watches: a test says when which event arrives.

The parts are composed by the manager itself. In the place of its client stands `Wire`, and in the place of each watcher a `Hand`, whose
reflector and store are the real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from ruleop.engine.cache import informers
from ruleop.engine.manager import manager
from ruleop.engine.manager.options import Options
from ruleop.engine.queue.work_queue import Backoff
from ruleop.engine.reconcile import status_debounce as debounce
from ruleop.kube.client.errors import answer_error
from ruleop.kube.watch.reflector import Reflector
from ruleop.kube.watch.store import State, Store
from tests.invariants.api_server import HOME, ApiServer, Selection, Wire
from tests.kube.model_server import bookmark, line
from tests.kube.test_client import Open

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ruleop.engine.manager.controllers import Controller
    from ruleop.kube.client.requests import Source
    from tests.projects.cluster import Happened


SOON = 0.2  # seconds; what is due later than that is no work of now
MOST = 20.0  # seconds until all has to be done
QUICK = Backoff(0.001, 0.02)  # so that a test need not wait for another attempt


class Hand:
    """A watch that brings what a test gives it."""

    def __init__(self, wire: DeskWire, source: Source, **_: Any) -> None:
        self.store = Store(source)
        self.selection = Selection.of(source)
        self.wire = wire
        self.reflector = Reflector(source, self.store, chance=lambda: 0.5)
        self.at = 0  # all that happened up to here has been brought, or lost
        self.gap = False  # something was lost; the list makes up for it

    def start(self) -> None:
        self.wire.hands.append(self)

    async def stop(self) -> None:
        self.wire.hands.remove(self)

    def wake(self) -> None: ...

    def age(self) -> float:
        return 0.0

    def list(self) -> None:
        """The first list, or one that makes up for what was lost."""
        cluster = self.wire.api.cluster
        self.reflector = Reflector(self.store.source, self.store, chance=lambda: 0.5, highest=self.store.version)
        self.reflector.next(time.monotonic())
        self.reflector.opened(time.monotonic())
        there = [line("ADDED", obj) for key, obj in cluster.objects.items() if self.selection.has(key, obj)]
        self.gap = False
        self.bring(*there, bookmark(cluster.version, ends=True))
        self.at = cluster.version

    def refused(self, status: int) -> None:
        """403 or 404, at the first list or later."""
        now = time.monotonic()
        self.reflector.next(now)
        self.reflector.failed(answer_error(status, b"{}", verb="list", resource=str(self.store.source)), now)

    def outstanding(self) -> list[tuple[str, dict[str, Any]]]:
        return [event for each in self._missed() if (event := self.selection.event(each))]

    def _missed(self) -> Iterable[Happened]:
        return (each for each in self.wire.api.cluster.history if each.version > self.at)

    def deliver(self) -> None:
        """All that has happened, in order."""
        if self.store.state is State.SYNCED and self.at < (now := self.wire.api.cluster.version):
            self.bring(*(line(*event) for event in self.outstanding()), bookmark(now))
            self.at = now

    def bring(self, *lines: bytes) -> None:
        self.reflector.lines(lines, time.monotonic())


class DeskWire(Wire):
    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.hands: list[Hand] = []


class Desk:
    def __init__(self, server: ApiServer, wire: DeskWire, **options: Any) -> None:
        self.server, self.cluster, self.wire = server, server.cluster, wire
        project = self.cluster.project
        self.manager = manager.Manager(project, Path(project.root), Options(operator_namespace=HOME, **options))
        self.manager._compose(mock.Mock(server="https://memory"), Open(""))

    @property
    def hands(self) -> list[Hand]:
        return self.wire.hands

    @property
    def controllers(self) -> list[Controller]:
        return list(self.manager.controllers)

    async def begin(self) -> None:
        """As the manager does, up to the watches: they know nothing yet."""
        await self.manager.discovery.refresh()
        await self.manager.inventory.load()
        self.manager.controller_set.lead()
        self.manager.controller_set.adopt(self.cluster.project)
        for controller in self.controllers:
            controller.workers.queue.backoff = QUICK

    async def end(self) -> None:
        await self.manager.controller_set.stop()

    def hand(self, kind: str) -> Hand:
        """The watch of a kind; of a watched one, that of its CRs."""
        return next(hand for hand in self.hands if hand.store.kind.kind == kind)

    def list_all(self, *, but: Iterable[Hand] = ()) -> None:
        for hand in [hand for hand in self.hands if hand not in but and hand.store.state is State.PENDING]:
            hand.list()

    def sweep(self) -> None:
        """Each CR is looked at again, as after a resync period."""
        for controller in self.controllers:
            self.manager.controllers.all_again(controller, "resync")

    async def idle(self, seconds: float = 10.0) -> bool:
        """Until the workers have nothing to do, whatever the watches have not yet told. False if they find no end of it."""
        end = time.monotonic() + seconds
        while self.manager.debounce.busy or self.manager.debounce._waiting or not all(map(_idle, self.controllers)):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0)
        return True

    async def rest(self) -> None:
        """Until nothing happens any more, with watches that are up to date."""
        end = time.monotonic() + MOST
        while time.monotonic() < end:
            version = self.cluster.version
            for hand in list(self.hands):
                hand.deliver()
            idle = await self.idle(0.1)  # what fails because the watches are behind goes on failing
            self.cluster.collect()
            if idle and self.cluster.version == version:
                return
        raise AssertionError(f"the operator finds no rest: {self.server.writes()[-20:]}")

    async def settled(self) -> None:
        """The same, with controllers that do their work."""
        for _ in range(12):
            await self.rest()
            version = self.cluster.version
            self.cluster.settle()
            if self.cluster.version == version:
                return
        raise AssertionError(f"no end of changes: {self.server.writes()[-20:]}")


def _idle(controller: Controller) -> bool:
    queue, now = controller.workers.queue, time.monotonic()
    due = queue.next_due()
    statistics = queue.statistics(now=now)
    return not (controller.workers._open and statistics["ready"]) and not statistics["active"] and (due is None or due > now + SOON)


@contextlib.asynccontextmanager
async def at_a_desk(server: ApiServer, **options: Any) -> AsyncIterator[Desk]:
    """An operator that has begun, and knows nothing yet."""
    wire = DeskWire(server)
    with (
        mock.patch.object(manager, "Client", return_value=wire),
        mock.patch.object(informers, "Watcher", Hand),
        mock.patch.object(debounce, "CALM", 0.001),
    ):
        desk = Desk(server, wire, **options)
        await desk.begin()
        try:
            yield desk
        finally:
            await desk.end()


@contextlib.asynccontextmanager
async def at_work(server: ApiServer, **options: Any) -> AsyncIterator[Desk]:
    """The same, with all listed and everything done that there was to do."""
    async with at_a_desk(server, **options) as desk:
        desk.list_all()
        await desk.settled()
        yield desk
