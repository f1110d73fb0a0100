"""A kind that the cluster does not serve is warned of once, and spoken of once more when it is served."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from ruleop.engine.manager.inventory import InventoryEntry
from ruleop.kinds import GroupKind, Kind
from ruleop.kube.watch.store import State
from tests.engine.controller_set_harness import ControllerSetHarness, watch

APP, CONFIG = Kind("example.com", "v1", "App"), Kind("", "v1", "ConfigMap")
MISSING = ("warning", "watched kind is not served; install its CRD", str(APP))
WAITS = ("warning", "kind is not served; what needs it waits", str(CONFIG))
OPTIONAL = watch().replace("{object:", "{optional: true, object:")


class Cluster:
    """An operator whose watches find kinds as the test says."""

    def __init__(self, *watches):
        self.operator = ControllerSetHarness()
        self.operator.informers.state = State.PENDING
        self.watches = watches

    async def __aenter__(self):
        self.operator.start(*self.watches)
        return self

    async def __aexit__(self, *_):
        await self.operator.controller_set.stop()

    def becomes(self, kind, state):
        """What is said when the watches of the kind come to this, one after the other."""
        with capture_logs() as lines:
            for informer in [informer for informer in self.operator.informers.informers.values() if informer.need.kind == kind]:
                informer.state = state
                self.operator.controller_set.stirred(informer)
        return [(line["log_level"], line["event"], line["kind"]) for line in lines if "kind" in line]


@pytest.mark.parametrize(
    ("rules", "kind", "told"),
    [
        (watch(), APP, MISSING),
        (watch(), CONFIG, WAITS),
        (OPTIONAL, CONFIG, ("info", "kind is not served; its optional children are left out", str(CONFIG))),
        (watch(more="observe: {x: {version: v1, kind: ConfigMap, name: a}}", children="Secret"), CONFIG, WAITS),
        (watch(more="observe: {x: {group: example.com, version: v1, kind: App, name: a}}"), APP, MISSING),
    ],
    ids=["watched", "child", "optional child", "observed", "watched and observed"],
)
def test_it_is_told_once_when_it_is_missing_and_once_when_it_is_there(run, rules, kind, told):
    async def scenario():
        async with Cluster(rules) as cluster:
            assert cluster.becomes(kind, State.UNSERVED) == [told]
            for _ in range(3):
                assert cluster.becomes(kind, State.UNSERVED) == []
                cluster.operator.controller_set.watch()
            assert cluster.becomes(kind, State.PENDING) == [], "it is being listed, which may fail yet"
            assert cluster.becomes(kind, State.UNSERVED) == []
            assert cluster.becomes(kind, State.SYNCED) == [("info", "kind is served; resumed", str(kind))]
            assert cluster.becomes(kind, State.SYNCED) == []
            assert cluster.becomes(kind, State.UNSERVED) == [told], "its CRD was deleted"

    run(scenario())


def test_of_a_kind_that_is_served_nothing_is_said(run):
    async def scenario():
        async with Cluster(watch()) as cluster:
            assert [cluster.becomes(kind, State.SYNCED) for kind in (APP, CONFIG)] == [[], []]

    run(scenario())


def test_a_kind_that_may_not_be_read_is_served(run):
    async def scenario():
        async with Cluster(watch()) as cluster:
            cluster.becomes(CONFIG, State.UNSERVED)
            assert cluster.becomes(CONFIG, State.FORBIDDEN) == [("info", "kind is served; resumed", str(CONFIG))]

    run(scenario())


def test_a_kind_that_the_rules_do_not_need_any_more_is_forgotten(run):
    async def scenario():
        async with Cluster(watch(children="ConfigMap Secret")) as cluster:
            assert cluster.becomes(CONFIG, State.UNSERVED) == [WAITS]
            cluster.operator.start(watch(children="Secret"))
            assert cluster.becomes(CONFIG, State.SYNCED) == []

    run(scenario())


def test_a_kind_that_only_the_inventory_remembers_is_none_that_the_rules_need(run):
    async def scenario():
        async with Cluster(watch(children="Secret")) as cluster:
            await cluster.operator.inventory.ensure(
                GroupKind("example.com", "App"), InventoryEntry(frozenset({GroupKind("", "ConfigMap")}))
            )
            cluster.operator.controller_set.watch()
            assert any(need.kind == CONFIG for need in cluster.operator.informers.informers)
            assert cluster.becomes(CONFIG, State.UNSERVED) == []

    run(scenario())
