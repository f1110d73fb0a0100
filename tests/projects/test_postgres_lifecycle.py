"""The lifecycle of a Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.kinds import Kind
from tests.projects.samples import READY, sample, started
from tests.projects.simulation import Simulation
from tests.projects.snapshots import ROOT

if TYPE_CHECKING:
    from typing import Any

POSTGRES, ORDERS = "examples/postgres", "Postgres/orders"
MONITOR = Kind("monitoring.coreos.com", "v1", "ServiceMonitor")


def orders(**spec: Any) -> Simulation:
    cr = sample(POSTGRES, "orders")
    cr["spec"] |= spec
    return started(POSTGRES, cr)


def test_a_database_is_created_with_its_secret_configuration_and_services() -> None:
    cluster = Simulation(ROOT / POSTGRES)
    cluster.unserved = {MONITOR}
    cluster.add(sample(POSTGRES, "orders"))
    assert cluster.reconcile() == [
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
    cluster.unserved = set()
    assert cluster.reconcile() == ["create ServiceMonitor/orders"], "the kind has been installed since"


def test_a_database_without_backups_reports_it() -> None:
    cluster = orders(backups=[])
    assert cluster.ready(ORDERS) == READY
    assert cluster.conditions(ORDERS)["Available"][0] == "True"
    assert cluster.conditions(ORDERS)["BackedUp"] == ("False", "NotScheduled", "0 of 0 backups have succeeded")
    assert "lastBackup" not in cluster.fields(ORDERS)


def test_the_last_backup_is_the_latest_of_all() -> None:
    cluster = orders()
    assert cluster.conditions(ORDERS)["BackedUp"] == ("False", "Scheduled", "0 of 2 backups have succeeded")
    cluster.status("CronJob/orders-backup-weekly", {"lastSuccessfulTime": "2026-11-15T03:02:00Z"})
    cluster.reconcile()
    assert cluster.conditions(ORDERS)["BackedUp"] == ("False", "Scheduled", "1 of 2 backups have succeeded")
    cluster.status("CronJob/orders-backup-nightly", {"lastSuccessfulTime": "2026-11-21T01:33:00Z"})
    assert cluster.reconcile() == []
    assert cluster.conditions(ORDERS)["BackedUp"] == ("True", "Scheduled", "2 of 2 backups have succeeded")
    assert cluster.fields(ORDERS)["lastBackup"] == "2026-11-21T01:33:00Z"


def test_a_setting_restarts_the_database_and_hibernation_stops_it() -> None:
    cluster = orders()
    cluster.edit(ORDERS, {"spec": {"parameters": {"max_connections": 300}}})
    assert cluster.reconcile() == [
        "patch ConfigMap/orders-config: data[postgresql.conf]",
        "patch StatefulSet/orders: spec.template.metadata.annotations[checksum/config]",
    ]
    cluster.edit(ORDERS, {"spec": {"hibernate": True}})
    assert cluster.reconcile() == [
        "patch StatefulSet/orders: spec.replicas",
        "patch CronJob/orders-backup-nightly: spec.suspend",
        "patch CronJob/orders-backup-weekly: spec.suspend",
    ]


def test_a_reserved_parameter_is_invalid_and_changes_nothing() -> None:
    cluster = orders()
    cluster.edit(ORDERS, {"spec": {"parameters": {"port": 6000}}})
    assert cluster.reconcile() == []
    assert cluster.conditions(ORDERS)["Ready"] == ("False", "Invalid", "spec.parameters must not set port")


def test_the_password_outlives_the_database_and_is_adopted_by_a_new_one() -> None:
    cluster = orders()
    password = cluster["Secret/orders-postgres"]["data"]
    cluster.delete(ORDERS)
    assert [each.split(":")[0] for each in cluster.reconcile()] == [
        "release Secret/orders-postgres",
        "finalizer removed",
    ]
    assert cluster.names == ["Secret/orders-postgres"]
    cluster.add(sample(POSTGRES, "orders"))
    assert "adopt Secret/orders-postgres" in [each.split(":")[0] for each in cluster.reconcile()]
    assert cluster["Secret/orders-postgres"]["data"] == password


def test_a_database_without_keep_data_is_deleted_with_its_password() -> None:
    cluster = orders(keepData=False)
    assert cluster["StatefulSet/orders"]["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
    assert "finalizers" not in cluster[ORDERS]["metadata"]
    cluster.delete(ORDERS)
    cluster.reconcile()
    assert cluster.names == []
