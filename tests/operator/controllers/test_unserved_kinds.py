"""A kind that the cluster does not serve is logged once, and once more when it is served."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.operator.controllers.inventory import InventoryEntry
from ruleop.operator.wire.watch.store import StoreState
from tests.operator.controllers.controller_set_harness import ControllerSetHarness, watch

APP, CONFIG = Kind("example.com", "v1", "App"), Kind("", "v1", "ConfigMap")
MISSING = ("warning", "watched kind is not served; install its CRD", str(APP))
WAITS = ("warning", "kind is not served; children that need it wait", str(CONFIG))
OPTIONAL = watch().replace("{object:", "{optional: true, object:")


class Cluster:
    """An operator whose watches have the states that the test sets."""

    def __init__(self, *watches):
        self.operator = ControllerSetHarness()
        self.operator.informers.state = StoreState.PENDING
        self.watches = watches

    async def __aenter__(self):
        self.operator.start(*self.watches)
        return self

    async def __aexit__(self, *_):
        await self.operator.controller_set.stop()

    def set_state(self, kind, state):
        """Sets the state of the watches of a kind, one after the other; returns what is logged."""
        with capture_logs() as lines:
            for informer in [
                informer for informer in self.operator.informers.informers.values() if informer.need.kind == kind
            ]:
                informer.state = state
                self.operator.controller_set.state_changed(informer)
        return [(line["log_level"], line["event"], line["kind"]) for line in lines if "kind" in line]


@pytest.mark.parametrize(
    ("rules", "kind", "expected"),
    [
        (watch(), APP, MISSING),
        (watch(), CONFIG, WAITS),
        (OPTIONAL, CONFIG, ("info", "kind is not served; its optional children are left out", str(CONFIG))),
        (watch(more="observe: {x: {version: v1, kind: ConfigMap, name: a}}", children="Secret"), CONFIG, WAITS),
        (watch(more="observe: {x: {group: example.com, version: v1, kind: App, name: a}}"), APP, MISSING),
    ],
    ids=["watched", "child", "optional child", "observed", "watched and observed"],
)
async def test_a_kind_is_logged_once_when_it_is_not_served_and_once_when_it_is(rules, kind, expected):
    async with Cluster(rules) as cluster:
        assert cluster.set_state(kind, StoreState.UNSERVED) == [expected]
        for _ in range(3):
            assert cluster.set_state(kind, StoreState.UNSERVED) == []
            cluster.operator.controller_set.update_watches()
        assert cluster.set_state(kind, StoreState.PENDING) == [], "it is being listed, which may fail yet"
        assert cluster.set_state(kind, StoreState.UNSERVED) == []
        assert cluster.set_state(kind, StoreState.SYNCED) == [("info", "kind is served; resumed", str(kind))]
        assert cluster.set_state(kind, StoreState.SYNCED) == []
        assert cluster.set_state(kind, StoreState.UNSERVED) == [expected], "its CRD was deleted"


async def test_a_kind_that_is_served_from_the_start_is_not_logged():
    async with Cluster(watch()) as cluster:
        assert [cluster.set_state(kind, StoreState.SYNCED) for kind in (APP, CONFIG)] == [[], []]


async def test_a_version_of_a_choice_is_logged_only_while_no_other_version_is_served():
    old = CONFIG._replace(version="v2")
    choice = watch().replace("apiVersion: v1", "apiVersion: \"{{ 'v1' if has_kind('v1', 'ConfigMap') else 'v2' }}\"")
    async with Cluster(choice) as cluster:
        cluster.set_state(CONFIG, StoreState.SYNCED)
        assert cluster.set_state(old, StoreState.UNSERVED) == []
        assert cluster.set_state(CONFIG, StoreState.UNSERVED) == [WAITS, (*WAITS[:2], str(old))]
    async with Cluster(choice, watch(kind="Other").replace("apiVersion: v1", "apiVersion: v2")) as cluster:
        cluster.set_state(CONFIG, StoreState.SYNCED)
        assert cluster.set_state(old, StoreState.UNSERVED) == [(*WAITS[:2], str(old))]


async def test_a_forbidden_kind_counts_as_served():
    async with Cluster(watch()) as cluster:
        cluster.set_state(CONFIG, StoreState.UNSERVED)
        assert cluster.set_state(CONFIG, StoreState.FORBIDDEN) == [("info", "kind is served; resumed", str(CONFIG))]


async def test_a_kind_that_the_rules_dropped_and_need_again_is_logged_again():
    async with Cluster(watch(children="ConfigMap Secret")) as cluster:
        assert cluster.set_state(CONFIG, StoreState.UNSERVED) == [WAITS]
        cluster.operator.start(watch(children="Secret"))
        assert cluster.set_state(CONFIG, StoreState.SYNCED) == []


async def test_a_kind_that_only_the_inventory_names_is_not_logged():
    async with Cluster(watch(children="Secret")) as cluster:
        await cluster.operator.inventory.ensure(
            GroupKind("example.com", "App"), InventoryEntry(frozenset({GroupKind("", "ConfigMap")}))
        )
        cluster.operator.controller_set.update_watches()
        assert any(need.kind == CONFIG for need in cluster.operator.informers.informers)
        assert cluster.set_state(CONFIG, StoreState.UNSERVED) == []
