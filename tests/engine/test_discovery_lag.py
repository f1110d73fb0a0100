"""The API server publishes a new kind a moment after it has said that its definition is established, and a deleted one goes later, too. No
further event tells of either."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from ruleop.engine.cache.informers import WatchSpec
from ruleop.engine.manager.controller_set import CRD
from ruleop.engine.manager.discovery_sync import DiscoverySync
from ruleop.errors import RuleopError
from ruleop.kinds import GroupKind, Kind
from ruleop.kube.client.discovery import Difference
from ruleop.kube.watch.store import State
from ruleop.schema.crds import parse_crd
from tests.engine.virtual_time import run_in_virtual_time

APP, OTHER = Kind("example.com", "v1", "App"), Kind("example.com", "v1", "Other")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "apps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "App", "plural": "apps"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}


class Late:
    """A server whose discovery is `lag` looks behind what its definitions say."""

    def __init__(self, *, defined: bool, lag: int) -> None:
        self.defined, self.lag, self.looks = defined, lag, 0

    def get(self, _kind: Kind) -> object | None:
        return SimpleNamespace(info=SimpleNamespace(kind=APP)) if self.defined == (self.looks > self.lag) else None

    async def refresh(self) -> Difference:
        self.looks += 1
        change = frozenset({APP}) if self.looks == self.lag + 1 else frozenset()
        return Difference(appeared=change) if self.defined else Difference(gone=change)


class Watching:
    """The informers of the definitions and of Apps."""

    def __init__(self) -> None:
        self.informers = {WatchSpec(CRD): SimpleNamespace(state=State.SYNCED), WatchSpec(APP): SimpleNamespace(state=State.UNSERVED)}
        self.looked_again = asyncio.Event()

    def look_again(self) -> None:
        self.looked_again.set()

    def wake(self) -> None: ...
    def want(self, _needs: object) -> None: ...


class Controllers(list[Any]):
    """At work; those that were told to look at their CRs again, and why."""

    def __init__(self, *controllers: Any) -> None:
        super().__init__(controllers)
        self.again: list[Any] = []
        self.told = asyncio.Event()

    def get(self, kind: GroupKind) -> Any:
        return next((each for each in self if each.kind.versionless == kind), None)

    def all_again(self, controller: Any, cause: str) -> None:
        self.again.append((controller, cause))
        self.told.set()


async def follow(discovery_sync: DiscoverySync, done: asyncio.Event) -> None:
    """After one event."""
    discovery_sync._refreshing.set()
    task = asyncio.create_task(discovery_sync.follow_discovery())
    await asyncio.wait_for(done.wait(), 10)
    await asyncio.sleep(3600)  # long enough for a look that is not needed
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def followed(*, defined: bool, lag: int, controllers: Controllers | None = None, watched: bool = True) -> Late:
    discovery, informers = Late(defined=defined, lag=lag), Watching()
    if not watched:
        del informers.informers[WatchSpec(APP)]
    definitions = {APP.versionless: parse_crd(DEFINITION)} if defined else {}
    world = SimpleNamespace(definitions=definitions, forget=lambda: None)
    controller_set = SimpleNamespace(watch=lambda: None, open=lambda: None, controllers=controllers or Controllers())
    discovery_sync = DiscoverySync(discovery, SimpleNamespace(), world=world, informers=informers, controller_set=controller_set)
    if not defined:
        discovery_sync._undefined.add(APP.versionless)  # as an event of the definition's end leaves it
    await follow(discovery_sync, informers.looked_again)
    return discovery


@pytest.mark.parametrize("defined", [True, False], ids=["comes", "goes"])
@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_kind_that_is_published_late_is_looked_for_until_it_is_there(defined, lag):
    """And then no more."""
    discovery = run_in_virtual_time(followed(defined=defined, lag=lag))
    assert discovery.looks == lag + 1


@pytest.mark.parametrize("defined", [True, False], ids=["comes", "goes"])
@pytest.mark.parametrize("lag", [0, 2])
def test_so_is_one_that_a_rule_only_asks_for(defined, lag):
    """By `has_kind`; and those who ask look again."""
    asks, does_not = (SimpleNamespace(kind=OTHER, asks_for_kinds=lambda asks=asks: asks) for asks in (True, False))
    controllers = Controllers(asks, does_not)
    discovery = run_in_virtual_time(followed(defined=defined, lag=lag, controllers=controllers, watched=False))
    assert discovery.looks == lag + 1
    assert controllers.again == [(asks, "other kinds are served")]


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_version_that_goes_has_the_crs_looked_at_for_children_may_refer_to_them_by_it(lag):
    """The watched version stays. What is looked for is told by the definition."""
    old = Kind("example.com", "v1alpha1", "App")
    definition = copy.deepcopy(DEFINITION)
    definition["spec"]["versions"].append({**definition["spec"]["versions"][0], "name": "v1alpha1", "served": False, "storage": False})

    class Leaving:
        looks = 0

        def get(self, kind):
            return object() if kind == APP or self.looks <= lag else None

        async def refresh(self):
            self.looks += 1
            return Difference(gone=frozenset({old} if self.looks == lag + 1 else ()))

    async def run():
        discovery, controller = Leaving(), SimpleNamespace(kind=APP, asks_for_kinds=lambda: False)
        controllers = Controllers(controller)
        controller_set = SimpleNamespace(watch=lambda: None, open=lambda: None, controllers=controllers)
        world = SimpleNamespace(definitions={APP.versionless: parse_crd(definition)}, forget=lambda: None)
        discovery_sync = DiscoverySync(discovery, SimpleNamespace(), world=world, informers=Watching(), controller_set=controller_set)
        await follow(discovery_sync, controllers.told)
        return discovery.looks, controllers.again, controller

    looks, again, controller = run_in_virtual_time(run())
    assert looks == lag + 1
    assert again == [(controller, "example.com/v1alpha1 App is not served any more")]


def without_the_right_to_definitions(discovery, *, until):
    """What is looked at where nobody tells of new kinds; a minute is short here."""

    async def run():
        informers = Watching()
        informers.informers[WatchSpec(CRD)].state = State.FORBIDDEN
        world = SimpleNamespace(definitions={}, forget=lambda: None)
        controller_set = SimpleNamespace(watch=lambda: None, open=lambda: None, controllers=Controllers())
        discovery_sync = DiscoverySync(
            discovery, SimpleNamespace(known=list), world=world, informers=informers, controller_set=controller_set
        )
        task = asyncio.create_task(discovery_sync.follow_discovery())
        async with asyncio.timeout(10):
            while not until(informers):  # noqa: ASYNC110 - of several conditions
                await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run_in_virtual_time(run())


def test_without_the_right_to_read_definitions_new_kinds_are_looked_for_now_and_then(monkeypatch):
    monkeypatch.setattr("ruleop.engine.manager.discovery_sync.LOOK_FOR_KINDS", 0.02)
    discovery = Late(defined=True, lag=3)
    without_the_right_to_definitions(discovery, until=lambda informers: informers.looked_again.is_set())
    assert discovery.looks >= 4


def test_that_discovery_fails_is_told_once(monkeypatch):
    monkeypatch.setattr("ruleop.engine.manager.discovery_sync.LOOK_FOR_KINDS", 0.02)
    monkeypatch.setattr("ruleop.engine.manager.discovery_sync.AGAIN", 0.01)

    class Broken(Late):
        async def refresh(self):
            self.looks += 1
            raise RuleopError("the server is on fire")

    discovery = Broken(defined=True, lag=0)
    with capture_logs() as lines:
        without_the_right_to_definitions(discovery, until=lambda _feeds: discovery.looks > 3)
    told = [line for line in lines if line["log_level"] == "warning"]
    assert [line["error"] for line in told] == ["the server is on fire"]
