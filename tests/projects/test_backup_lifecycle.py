"""The lifecycle of a database's backups."""

from __future__ import annotations

import pytest

from tests.docs.messages import ROOT
from tests.projects.samples import BACKUP, PG, PROGRESSING, READY, backup, sample
from tests.projects.simulation import FINALIZER, Simulation

RUN, RESTORE = "Job/pg-run-2025-11-21-hb3uhcptq3dbjg", "Job/pg-restore-r1"


@pytest.mark.slow
def test_a_backup_and_a_restore_run_once() -> None:
    cluster = backup()
    assert cluster.names == ["CronJob/pg", PG, RESTORE, RUN]
    assert cluster.ready(PG) == READY
    assert cluster.fields(PG)["lastRestore"] == "r1"
    assert cluster.fields(PG)["succeeded"] == 2
    uid = cluster[RUN]["metadata"]["uid"]
    cluster.edit(PG, {"spec": {"suspend": True}})
    assert cluster.reconcile() == ["patch CronJob/pg: spec.suspend"]
    assert cluster[RUN]["metadata"]["uid"] == uid


def test_a_new_request_replaces_the_previous_one() -> None:
    cluster = backup()
    cluster.edit(PG, {"spec": {"restore": {"requestId": "r2", "from": "s3:backups/shop/2"}}})
    assert cluster.reconcile() == ["create Job/pg-restore-r2", f"delete {RESTORE}: pruned"]
    assert cluster.ready(PG) == PROGRESSING
    assert "lastRestore" not in cluster.fields(PG)
    cluster.settle()
    assert cluster.reconcile() == []
    assert cluster.fields(PG)["lastRestore"] == "r2"
    cluster.edit(PG, {"spec": {"restore": None}, "metadata": {"annotations": None}})
    assert sorted(cluster.reconcile()) == ["delete Job/pg-restore-r2: pruned", f"delete {RUN}: pruned"]
    assert cluster.names == ["CronJob/pg", PG]
    assert cluster.ready(PG) == READY


def test_a_running_job_is_not_changed() -> None:
    cluster = backup()
    cluster.edit(PG, {"spec": {"database": "other"}})
    assert [each.split(":")[0] for each in cluster.reconcile()] == ["patch CronJob/pg"]
    assert cluster.ready(PG) == READY


def test_the_history_in_the_status_lists_all_runs() -> None:
    cluster = backup()
    labels = {"name": "pg-1", "labels": {"backup": "pg"}}
    pod = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    cluster.add({"apiVersion": "batch/v1", "kind": "Job", "metadata": labels, "spec": {"template": pod}})
    assert cluster.reconcile() == []
    history = {each["job"]: each for each in cluster.fields(PG)["history"]}
    assert history["pg-1"] == {"job": "pg-1", "ok": False}
    assert history["pg-restore-r1"] == {"job": "pg-restore-r1", "started": "1970-01-01T00:00:00Z", "ok": True}


def test_backups_are_purged_before_the_cr_is_deleted() -> None:
    cluster = backup()
    assert cluster[PG]["metadata"]["finalizers"] == [FINALIZER]
    cluster.delete(PG)
    assert cluster.reconcile() == ["create Job/pg-purge"]
    assert cluster.ready(PG) == ("False", "Finalizing")
    assert "ownerReferences" not in cluster["Job/pg-purge"]["metadata"]
    assert {"CronJob/pg", PG, RESTORE, RUN} <= set(cluster.names)
    cluster.edit(PG, {"spec": {"restore": {"requestId": "r2", "from": "x"}, "suspend": True}})
    assert cluster.reconcile() == [], "deletion never renders children"
    cluster.settle("Job/pg-purge")
    assert cluster.reconcile() == ["delete Job/pg-purge: finalized", "finalizer removed"]
    assert cluster.names == []


def test_a_failed_purge_keeps_the_cr_until_finalization_is_skipped() -> None:
    cluster = backup()
    cluster.delete(PG)
    cluster.reconcile()
    cluster.status("Job/pg-purge", {"failed": 3, "conditions": [{"type": "Failed", "status": "True"}]})
    assert cluster.reconcile() == []
    assert cluster.conditions(PG)["Stalled"][0] == "True"
    cluster.edit(PG, {"metadata": {"annotations": {"ruleop.dev/skip-finalize": "true"}}})
    assert cluster.reconcile() == ["delete Job/pg-purge: finalized", "finalizer removed"]
    assert cluster.names == []


def test_backups_that_are_kept_are_not_purged() -> None:
    cluster = backup(deletePolicy="Keep")
    cluster.delete(PG)
    assert cluster.reconcile() == ["finalizer removed"]
    assert cluster.names == []


def test_no_backup_is_purged_in_a_terminating_namespace() -> None:
    cluster = Simulation(ROOT / BACKUP, home="db")
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "db"}}, sample(BACKUP, "pg"))
    for _ in range(3):
        cluster.reconcile()
        cluster.settle()
    cluster.delete("Namespace/db")
    assert cluster.reconcile() == ["finalizer removed"]
    assert "FinalizeSkipped" in [each.reason for each in cluster.events]
    assert cluster.names == []
