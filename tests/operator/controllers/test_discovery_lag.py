"""The API server publishes a new kind a moment after its CRD is established, and removes a deleted one with a delay as
well. No event reports either."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.operator.cache.informers import WatchSpec
from ruleop.operator.controllers.controller_set import CRD
from ruleop.operator.controllers.discovery_sync import DiscoverySync
from ruleop.operator.wire.client.discovery import DiscoveryDifference
from ruleop.operator.wire.watch.store import EntryOrigin, StoreChange, StoreEntry, StoreState
from tests import waiting
from tests.definitions import crd, version
from tests.operator.virtual_time import run_in_virtual_time

APP, OTHER = Kind("example.com", "v1", "App"), Kind("example.com", "v1", "Other")
KEY = ObjectKey(CRD.group, CRD.kind, "", "apps.example.com")
DEFINITION = crd("App", "example.com", version("v1", {"type": "object"}))


class LaggingDiscovery:
    """Discovery that agrees with the CRDs only after `lag` requests."""

    def __init__(self, *, defined: bool, lag: int) -> None:
        self.defined, self.lag, self.requests = defined, lag, 0

    def get(self, _kind: Kind) -> object | None:
        return SimpleNamespace(info=SimpleNamespace(kind=APP)) if self.defined == (self.requests > self.lag) else None

    async def refresh(self) -> DiscoveryDifference:
        self.requests += 1
        change = frozenset({APP}) if self.requests == self.lag + 1 else frozenset()
        return DiscoveryDifference(appeared=change) if self.defined else DiscoveryDifference(gone=change)


class FakeInformers:
    """The informers of CRDs and of Apps."""

    def __init__(self) -> None:
        self.informers = {
            WatchSpec(CRD): SimpleNamespace(state=StoreState.SYNCED),
            WatchSpec(APP): SimpleNamespace(state=StoreState.UNSERVED),
        }
        self.updated = asyncio.Event()

    def update_resources(self) -> None:
        self.updated.set()

    def wake(self) -> None: ...
    def watch(self, _needs: object) -> None: ...


class FakeControllers(list[Any]):
    """Records the controllers whose CRs are queued, and why."""

    def __init__(self, *controllers: Any) -> None:
        super().__init__(controllers)
        self.again: list[Any] = []
        self.has_queued = asyncio.Event()

    def get(self, kind: GroupKind) -> Any:
        return next((each for each in self if each.kind.versionless == kind), None)

    def enqueue_all(self, controller: Any, cause: str) -> None:
        self.again.append((controller, cause))
        self.has_queued.set()


def cache_with(definition: dict[str, Any]) -> Any:
    return SimpleNamespace(definitions={}, invalidate=lambda: None, parse=lambda *_: definition)


async def change_crd(discovery_sync: DiscoverySync, done: asyncio.Event, *, deleted: bool = False) -> None:
    """The CRD is deleted or becomes established; returns an hour after `done`."""
    before = StoreEntry("uid", 1, 1, "", b"{}", b"{}", None)
    after = None if deleted else before._replace(packed_status=b'{"conditions":[]}')
    discovery_sync.definition_changed(
        discovery_sync.informers.informers[WatchSpec(CRD)], StoreChange(KEY, before, after, EntryOrigin.WATCH)
    )
    task = asyncio.create_task(discovery_sync.follow_discovery())
    await asyncio.wait_for(done.wait(), 10)
    await asyncio.sleep(3600)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def run_after_change(
    *, defined: bool, lag: int, controllers: FakeControllers | None = None, watched: bool = True
) -> LaggingDiscovery:
    discovery, informers = LaggingDiscovery(defined=defined, lag=lag), FakeInformers()
    if not watched:
        del informers.informers[WatchSpec(APP)]
    cache = cache_with(DEFINITION)
    controller_set = SimpleNamespace(
        update_watches=lambda: None, open_workers=lambda: None, controllers=controllers or FakeControllers()
    )
    discovery_sync = DiscoverySync(
        discovery, SimpleNamespace(), cache=cache, informers=informers, controller_set=controller_set
    )
    await change_crd(discovery_sync, informers.updated, deleted=not defined)
    return discovery


@pytest.mark.parametrize("defined", [True, False], ids=["comes", "goes"])
@pytest.mark.parametrize("lag", [0, 1, 2])
def test_discovery_is_repeated_until_a_new_kind_is_published(defined, lag):
    discovery = run_in_virtual_time(run_after_change(defined=defined, lag=lag))
    assert discovery.requests == lag + 1


@pytest.mark.parametrize("defined", [True, False], ids=["comes", "goes"])
@pytest.mark.parametrize("lag", [0, 2])
def test_discovery_is_repeated_for_a_kind_that_a_rule_only_asks_for(defined, lag):
    """Its CRs are queued then."""
    asks, does_not = (SimpleNamespace(kind=OTHER, uses_has_kind=lambda asks=asks: asks) for asks in (True, False))
    controllers = FakeControllers(asks, does_not)
    discovery = run_in_virtual_time(run_after_change(defined=defined, lag=lag, controllers=controllers, watched=False))
    assert discovery.requests == lag + 1
    assert controllers.again == [(asks, "the served kinds changed")]


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_version_that_is_no_longer_served_queues_the_crs(lag):
    """Children may refer to their owners by it."""
    old = Kind("example.com", "v1alpha1", "App")
    definition = copy.deepcopy(DEFINITION)
    definition["spec"]["versions"].append(
        {**definition["spec"]["versions"][0], "name": "v1alpha1", "served": False, "storage": False}
    )

    class Leaving:
        requests = 0

        def get(self, kind):
            return object() if kind == APP or self.requests <= lag else None

        async def refresh(self):
            self.requests += 1
            return DiscoveryDifference(gone=frozenset({old} if self.requests == lag + 1 else ()))

    async def run():
        discovery, controller = Leaving(), SimpleNamespace(kind=APP, uses_has_kind=lambda: False)
        controllers = FakeControllers(controller)
        controller_set = SimpleNamespace(
            update_watches=lambda: None, open_workers=lambda: None, controllers=controllers
        )
        cache = cache_with(definition)
        discovery_sync = DiscoverySync(
            discovery, SimpleNamespace(), cache=cache, informers=FakeInformers(), controller_set=controller_set
        )
        await change_crd(discovery_sync, controllers.has_queued)
        return discovery.requests, controllers.again, controller

    requests, again, controller = run_in_virtual_time(run())
    assert requests == lag + 1
    assert again == [(controller, "example.com/v1alpha1 App is no longer served")]


def run_without_permission_to_watch_crds(discovery, *, until):

    async def run():
        informers = FakeInformers()
        informers.informers[WatchSpec(CRD)].state = StoreState.FORBIDDEN
        cache = SimpleNamespace(definitions={}, invalidate=lambda: None)
        controller_set = SimpleNamespace(
            update_watches=lambda: None, open_workers=lambda: None, controllers=FakeControllers()
        )
        discovery_sync = DiscoverySync(
            discovery, SimpleNamespace(fetched=list), cache=cache, informers=informers, controller_set=controller_set
        )
        task = asyncio.create_task(discovery_sync.follow_discovery())
        await waiting.until("the lag", lambda: until(informers), 600)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run_in_virtual_time(run())


@pytest.mark.slow
def test_without_permission_to_watch_crds_discovery_is_repeated_once_a_minute():
    discovery = LaggingDiscovery(defined=True, lag=3)
    run_without_permission_to_watch_crds(discovery, until=lambda informers: informers.updated.is_set())
    assert discovery.requests >= 4


@pytest.mark.slow
def test_the_same_discovery_error_is_warned_about_once():

    class Broken(LaggingDiscovery):
        async def refresh(self):
            self.requests += 1
            raise RuleopError("the server is on fire")

    discovery = Broken(defined=True, lag=0)
    with capture_logs() as lines:
        run_without_permission_to_watch_crds(discovery, until=lambda _informers: discovery.requests > 3)
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [line["error"] for line in warnings] == ["the server is on fire"]
