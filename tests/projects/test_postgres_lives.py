"""The lives of a Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kinds import Kind
from tests.projects.lives import READY, sample, started
from tests.projects.snapshots import ROOT
from tests.projects.world import World

if TYPE_CHECKING:
    from typing import Any

POSTGRES, ORDERS = "examples/postgres", "Postgres/orders"
MONITOR = Kind("monitoring.coreos.com", "v1", "ServiceMonitor")


def orders(**spec: Any) -> World:
    cr = sample(POSTGRES, "orders")
    cr["spec"] |= spec
    return started(POSTGRES, cr)


def test_a_database_needs_a_password_a_configuration_and_what_reaches_it() -> None:
    world = World(ROOT / POSTGRES)
    world.unserved = {MONITOR}
    world.add(sample(POSTGRES, "orders"))
    assert world.rest() == [
        "finalizer added",
        "create Secret/orders-postgres",
        "create ConfigMap/orders-config",
        "create Service/orders",
        "create Service/orders-pods",
        "create StatefulSet/orders",
        "create PodDisruptionBudget/orders",
        "create CronJob/orders-backup-nightly",
        "create CronJob/orders-backup-weekly",
        "create NetworkPolicy/orders",
    ]
    world.unserved = set()
    assert world.rest() == ["create ServiceMonitor/orders"], "the kind has been installed since"


def test_a_database_without_backups_says_so() -> None:
    world = orders(backups=[])
    assert world.ready(ORDERS) == READY
    assert world.conditions(ORDERS)["Available"][0] == "True"
    assert world.conditions(ORDERS)["BackedUp"] == ("False", "NotScheduled", "0 of 0 backups have succeeded")
    assert "lastBackup" not in world.fields(ORDERS)


def test_the_last_backup_is_the_latest_of_all() -> None:
    world = orders()
    assert world.conditions(ORDERS)["BackedUp"] == ("False", "Scheduled", "0 of 2 backups have succeeded")
    world.status("CronJob/orders-backup-weekly", {"lastSuccessfulTime": "2026-11-15T03:02:00Z"})
    world.rest()
    assert world.conditions(ORDERS)["BackedUp"] == ("False", "Scheduled", "1 of 2 backups have succeeded")
    world.status("CronJob/orders-backup-nightly", {"lastSuccessfulTime": "2026-11-21T01:33:00Z"})
    assert world.rest() == []
    assert world.conditions(ORDERS)["BackedUp"] == ("True", "Scheduled", "2 of 2 backups have succeeded")
    assert world.fields(ORDERS)["lastBackup"] == "2026-11-21T01:33:00Z"


def test_a_setting_restarts_the_database_and_hibernation_stops_it() -> None:
    world = orders()
    world.edit(ORDERS, {"spec": {"parameters": {"max_connections": 300}}})
    assert world.rest() == [
        "patch ConfigMap/orders-config: data[postgresql.conf]",
        "patch StatefulSet/orders: spec.template.metadata.annotations[checksum/config]",
    ]
    world.edit(ORDERS, {"spec": {"hibernate": True}})
    assert world.rest() == [
        "patch StatefulSet/orders: spec.replicas",
        "patch CronJob/orders-backup-nightly: spec.suspend",
        "patch CronJob/orders-backup-weekly: spec.suspend",
    ]


def test_a_setting_of_the_operator_is_refused_and_all_stays() -> None:
    world = orders()
    world.edit(ORDERS, {"spec": {"parameters": {"port": 6000}}})
    assert world.rest() == []
    assert world.conditions(ORDERS)["Ready"] == ("False", "Invalid", "spec.parameters must not set port")


def test_the_password_outlives_the_database_and_is_found_again() -> None:
    world = orders()
    password = world["Secret/orders-postgres"]["data"]
    world.delete(ORDERS)
    assert [each.split(":")[0] for each in world.rest()] == ["release Secret/orders-postgres", "finalizer removed"]
    assert world.names == ["Secret/orders-postgres"]
    world.add(sample(POSTGRES, "orders"))
    assert "adopt Secret/orders-postgres" in [each.split(":")[0] for each in world.rest()]
    assert world["Secret/orders-postgres"]["data"] == password


def test_data_that_is_not_to_be_kept_goes_with_its_password() -> None:
    world = orders(keepData=False)
    assert world["StatefulSet/orders"]["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
    assert "finalizers" not in world[ORDERS]["metadata"]
    world.delete(ORDERS)
    world.rest()
    assert world.names == []
