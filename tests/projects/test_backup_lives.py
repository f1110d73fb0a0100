"""The lives of a database's backups."""

from __future__ import annotations

from tests.projects.lives import BACKUP, PG, PROGRESSING, READY, backup, sample
from tests.projects.snapshots import ROOT
from tests.projects.world import FINALIZER, World

RUN, RESTORE = "Job/pg-run-2025-11-21-hb3uhcptq3dbjg", "Job/pg-restore-r1"


def test_a_backup_and_a_restore_run_once() -> None:
    world = backup()
    assert world.names == ["CronJob/pg", PG, RESTORE, RUN]
    assert world.ready(PG) == READY
    assert world.fields(PG)["lastRestore"] == "r1"
    assert world.fields(PG)["succeeded"] == 2
    uid = world[RUN]["metadata"]["uid"]
    world.edit(PG, {"spec": {"suspend": True}})
    assert world.rest() == ["patch CronJob/pg: spec.suspend"]
    assert world[RUN]["metadata"]["uid"] == uid


def test_the_next_request_replaces_the_last_one() -> None:
    world = backup()
    world.edit(PG, {"spec": {"restore": {"requestId": "r2", "from": "s3:backups/shop/2"}}})
    assert world.rest() == ["create Job/pg-restore-r2", f"delete {RESTORE}: pruned"]
    assert world.ready(PG) == PROGRESSING
    assert "lastRestore" not in world.fields(PG)
    world.settle()
    assert world.rest() == []
    assert world.fields(PG)["lastRestore"] == "r2"
    world.edit(PG, {"spec": {"restore": None}, "metadata": {"annotations": None}})
    assert sorted(world.rest()) == ["delete Job/pg-restore-r2: pruned", f"delete {RUN}: pruned"]
    assert world.names == ["CronJob/pg", PG]
    assert world.ready(PG) == READY


def test_a_job_is_never_changed_once_it_runs() -> None:
    world = backup()
    world.edit(PG, {"spec": {"database": "other"}})
    assert [each.split(":")[0] for each in world.rest()] == ["patch CronJob/pg"]
    assert world.ready(PG) == READY


def test_the_history_is_that_of_all_runs() -> None:
    world = backup()
    labels = {"name": "pg-1", "labels": {"backup": "pg"}}
    pod = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    world.add({"apiVersion": "batch/v1", "kind": "Job", "metadata": labels, "spec": {"template": pod}})
    assert world.rest() == []
    history = {each["job"]: each for each in world.fields(PG)["history"]}
    assert history["pg-1"] == {"job": "pg-1", "ok": False}
    assert history["pg-restore-r1"] == {"job": "pg-restore-r1", "started": "2026-01-01T00:00:00Z", "ok": True}


def test_backups_are_purged_before_the_cr_may_go() -> None:
    world = backup()
    assert world[PG]["metadata"]["finalizers"] == [FINALIZER]
    world.delete(PG)
    assert world.rest() == ["create Job/pg-purge"]
    assert world.ready(PG) == ("False", "Finalizing")
    assert "ownerReferences" not in world["Job/pg-purge"]["metadata"]
    assert {"CronJob/pg", PG, RESTORE, RUN} <= set(world.names)
    world.edit(PG, {"spec": {"restore": {"requestId": "r2", "from": "x"}, "suspend": True}})
    assert world.rest() == [], "deletion never renders children"
    world.settle("Job/pg-purge")
    assert world.rest() == ["delete Job/pg-purge: finalized", "finalizer removed"]
    assert world.names == []


def test_a_purge_that_fails_keeps_the_cr_until_somebody_gives_up_on_it() -> None:
    world = backup()
    world.delete(PG)
    world.rest()
    world.status("Job/pg-purge", {"failed": 3, "conditions": [{"type": "Failed", "status": "True"}]})
    assert world.rest() == []
    assert world.conditions(PG)["Stalled"][0] == "True"
    world.edit(PG, {"metadata": {"annotations": {"ruleop.dev/skip-finalize": "true"}}})
    assert world.rest() == ["delete Job/pg-purge: finalized", "finalizer removed"]
    assert world.names == []


def test_backups_that_are_kept_are_not_purged() -> None:
    world = backup(deletePolicy="Keep")
    world.delete(PG)
    assert world.rest() == ["finalizer removed"]
    assert world.names == []


def test_in_a_namespace_that_is_being_deleted_nothing_is_purged() -> None:
    world = World(ROOT / BACKUP, home="db")
    world.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "db"}}, sample(BACKUP, "pg"))
    for _ in range(3):
        world.rest()
        world.settle()
    world.delete("Namespace/db")
    assert world.rest() == ["finalizer removed"]
    assert "FinalizeSkipped" in [each.reason for each in world.events]
    assert world.names == []
