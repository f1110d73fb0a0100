"""Destructive steps (delete, finalizer removal) name uid and resourceVersion, after a live read. A conflict is a live
read and a new plan at once, up to five times, and no failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ruleop.operator.queue.work_queue import Backoff
from tests.invariants.api_server import ApiServer, Asked
from tests.invariants.operator_harness import OperatorHarness, settled_operator
from tests.invariants.scenarios import apps, cluster_with_sample
from tests.projects.samples import foreign

FINALIZER = "ruleop.dev/ruleop"


def just_before(server: ApiServer, request: str, act: Callable[[], None], *, times: int = 1) -> None:
    """Another client acts just before the request is answered."""
    left = [times]

    def meddle(asked: Asked) -> None:
        if str(asked) == request and left[0]:
            left[0] -= 1
            act()

    server.meddle = meddle


def failures(harness: OperatorHarness, kind: str) -> float:
    labels = {"controller": kind}
    return harness.manager.metrics.registry.get_sample_value("controller_runtime_reconcile_errors_total", labels) or 0.0


async def test_a_deletion_names_the_uid_and_version_of_a_live_read() -> None:
    server = apps("web")
    async with settled_operator(server) as harness:
        live = server.cluster["Service/web-s"]["metadata"]
        server.forget()
        server.cluster.edit("App/web", {"spec": {"service": {"name": "other"}}})
        await harness.until_quiet()
        about = [each for each in server.asked if each.key.name == "web-s"]
        assert [each.verb for each in about] == ["get", "delete"]
        deleted = about[-1]
        assert deleted.body["preconditions"] == {"uid": live["uid"], "resourceVersion": live["resourceVersion"]}


@pytest.mark.parametrize("moment", ["get services web-s", "delete services web-s"])
async def test_an_object_that_replaced_the_child_meanwhile_stays(moment: str) -> None:
    await the_replacement_stays(moment)


async def the_replacement_stays(moment: str) -> None:
    server = apps("web")
    cluster = server.cluster

    def replaced() -> None:
        cluster.delete("Service/web-s")
        cluster.add(foreign("Service", "web-s"))

    async with settled_operator(server) as harness:
        just_before(server, moment, replaced)
        cluster.edit("App/web", {"spec": {"service": {"name": "other"}}})
        await harness.until_quiet()
        assert "Service/other" in cluster
        assert "ownerReferences" not in cluster["Service/web-s"]["metadata"]
        assert failures(harness, "App.myapp.k8s.io") == 0


async def test_a_child_that_was_released_meanwhile_stays() -> None:
    """Somebody removes ruleop's marks between the plan and the deletion: the object is then no longer a child."""
    server = apps("web")
    cluster = server.cluster
    unmarked = {"metadata": {"labels": None, "annotations": None, "ownerReferences": None}}
    async with settled_operator(server) as harness:
        just_before(server, "delete services web-s", lambda: cluster.edit("Service/web-s", unmarked))
        cluster.edit("App/web", {"spec": {"service": {"name": "other"}}})
        await harness.until_quiet()
        assert "Service/web-s" in cluster


async def test_the_finalizer_is_removed_by_a_write_that_names_the_version_of_a_live_read() -> None:
    server, resource = cluster_with_sample("backup")
    cluster = server.cluster
    async with settled_operator(server) as harness:
        assert FINALIZER in cluster[resource]["metadata"]["finalizers"]
        server.forget()
        cluster.delete(resource)
        await harness.until_settled()
        assert resource not in cluster
        name = resource.partition("/")[2]
        *_, read, removed = [each for each in server.asked if each.key.name == name and "status" not in each.resource]
        assert (read.verb, removed.verb) == ("get", "patch")
        assert FINALIZER not in removed.body["metadata"]["finalizers"]
        assert removed.body["metadata"]["uid"]
        assert removed.body["metadata"]["resourceVersion"]


async def test_a_finalizer_that_others_add_meanwhile_is_kept() -> None:
    server, resource = cluster_with_sample("backup")
    cluster = server.cluster

    def add() -> None:
        cluster.edit(resource, {"metadata": {"finalizers": ["somebody.else/too"]}})

    just_before(server, f"patch databasebackups {resource.partition('/')[2]}", add)
    async with settled_operator(server):
        assert sorted(cluster[resource]["metadata"]["finalizers"]) == [FINALIZER, "somebody.else/too"]


@pytest.mark.parametrize("times", [1, 4])
async def test_a_conflict_is_a_live_read_and_a_new_plan_and_no_failure(times: int) -> None:
    await conflicts_are_no_failures(times)


async def conflicts_are_no_failures(times: int) -> None:
    server = apps("web")
    cluster = server.cluster
    counter = iter(range(100))

    def meanwhile() -> None:
        cluster.edit("Deployment/web-d", {"metadata": {"annotations": {"somebody": str(next(counter))}}})

    async with settled_operator(server) as harness:
        server.forget()
        just_before(server, "patch deployments web-d", meanwhile, times=times)
        cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
        harness.watcher("App").deliver()  # the others are late
        await harness.until_idle()
        about = [each.verb for each in server.asked if each.key.name == "web-d"]
        assert about == ["patch", "get"] * times + ["patch"]
        assert cluster["Deployment/web-d"]["spec"]["replicas"] == 5
        assert failures(harness, "App.myapp.k8s.io") == 0


async def test_endless_conflicts_are_retried_five_times_and_then_back_off() -> None:
    server = apps("web")
    cluster = server.cluster
    counter = iter(range(10_000))

    def meanwhile() -> None:
        cluster.edit("Deployment/web-d", {"metadata": {"annotations": {"somebody": str(next(counter))}}})

    async with settled_operator(server) as harness:
        server.forget()
        for controller in harness.controllers:
            controller.workers.queue.backoff = Backoff(100.0)
        just_before(server, "patch deployments web-d", meanwhile, times=10_000)
        cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
        harness.watcher("App").deliver()
        await harness.until_idle()
        assert [each.verb for each in server.asked if each.key.name == "web-d"] == ["patch", "get"] * 5
        assert failures(harness, "App.myapp.k8s.io") == 1
