"""CronTab: a CronJob, and a status of what runs, end to end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.example_projects import ROOT, Child, Example, ExampleTests, LiveExample, operating
from tests.cluster.operator import Operator, Permissions, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane


def cron_job(schedule: str, replicas: int) -> Child:
    labels = {"crontab": "tidy"}
    container = {"name": "task", "image": "broom:1"}
    pod = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "OnFailure", "containers": [container]}}
    job = {"metadata": {"labels": labels}, "spec": {"parallelism": replicas, "completions": replicas, "template": pod}}
    wanted = {
        "metadata": {"labels": labels},
        "spec": {"schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": job},
    }
    by_hand = {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"parallelism": 9}}}}
    return Child("cronjobs", "tidy", wanted, by_hand)


CRONTAB = Example(
    project=ROOT / "examples/crontab",
    crd=ROOT / "examples/crontab/crds/crontabs.stable.example.com.yaml",
    permissions=Permissions(watched=["crontabs.stable.example.com"], children=["cronjobs.batch"]),
    api_version="stable.example.com/v1",
    resource="crontabs",
    kind="CronTab",
    name="tidy",
    spec={"cronSpec": "0 3 * * 0", "image": "broom:1", "replicas": 2},
    children=(cron_job("0 3 * * 0", 2),),
    status={"active": 0},
    edit={"cronSpec": "30 4 * * 0", "replicas": 3},
    edited=(cron_job("30 4 * * 0", 3),),
    edited_status={"active": 0},
    leftovers=("cronjobs", "jobs", "pods"),
)


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(CRONTAB, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


class TestCronTab(ExampleTests):
    example = CRONTAB

    def foreign(self, child: Child) -> dict[str, Any]:
        spec = child.wanted["spec"] | {"suspend": True, "schedule": "0 0 1 1 *"}
        return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": child.name}, "spec": spec}

    def test_running_jobs_are_in_the_status(self, live_example: LiveExample) -> None:
        """A run that was due starts at once; its pods are created, and its time is in the status."""
        live_example.apply()
        live_example.wait_until_settled()
        assert "lastScheduleTime" not in live_example.resource()["status"]
        (child,) = live_example.example.children
        # The CronJob's controller believes that it last ran an hour ago, and makes up for what it has missed.
        last = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        live_example.admin.merge(live_example.path, {"spec": {"cronSpec": "* * * * *"}}, "somebody")
        eventually("the schedule", lambda: live_example.get(child)["spec"]["schedule"] == "* * * * *")
        live_example.admin.merge(
            live_example.path_of("cronjobs", "tidy") + "/status", {"status": {"lastScheduleTime": last}}, "somebody"
        )
        eventually("the job's pods", lambda: len(live_example.list("pods")) >= 2)

        def is_in_status() -> bool:
            live, status = live_example.get(child)["status"], live_example.resource()["status"]
            begun = live["lastScheduleTime"]
            return (
                begun > last and status["lastScheduleTime"] == begun and status["active"] == len(live.get("active", []))
            )

        eventually("the run in the status", is_in_status)
