"""Another client reverts the operator's writes, on the real API server, which records its name. No controllers run: the
test is that client."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.apps import Apps
from tests.cluster.conftest import NewCluster
from tests.cluster.example_projects import ROOT
from tests.cluster.operator import Operator, eventually
from tests.cluster.test_examples import APP

SERVICE = "/api/v1/namespaces/ring/services/web-s"
DEPLOYMENT = "/apis/apps/v1/namespaces/ring/deployments/web-d"


@pytest.fixture
def plane(new_cluster: NewCluster) -> Iterator[ControlPlane]:
    with new_cluster(controllers=False, audit=False) as plane:
        plane.define(ROOT / "crds")
        yield plane
        plane.check()


@pytest.fixture
def apps(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apps]:
    with Operator(plane, APP.project, APP.permissions, tmp_path_factory.mktemp("operator") / "log") as operator:
        yield Apps(operator, "ring")
        operator.check()


def test_a_field_conflict_is_reported_backed_off_and_delays_nothing_else(apps: Apps) -> None:
    apps.create("web")
    told = fight_until_noticed(apps)
    assert (
        told["message"]
        == "service: Service/web-s: spec.selector.app is repeatedly changed by somebody; backing off before reverting it"
    )
    eventually("the event", lambda: ("Warning", "FieldConflict", told["message"]) in events(apps))
    apps.admin.merge(f"{apps.path}/web", {"spec": {"deployment": {"replicas": 3}}}, "editor")
    eventually("the other child", lambda: apps.admin.get(DEPLOYMENT)["spec"]["replicas"] == 3)
    assert ready(apps)["reason"] == "FieldConflict"


def test_a_field_conflict_is_checked_after_the_backoff_although_nothing_happens(apps: Apps) -> None:
    apps.create("web")
    fight_until_noticed(apps)
    eventually("the revert after the first backoff", lambda: not is_undone(apps), timeout=30)


def test_two_operators_with_different_rules_report_a_field_conflict(
    plane: ControlPlane, apps: Apps, tmp_path_factory: pytest.TempPathFactory
) -> None:
    apps.create("web")
    folder = tmp_path_factory.mktemp("other")
    project = Path(shutil.copytree(ROOT / "templates", folder / "templates")).parent
    shutil.copytree(ROOT / "crds", folder / "crds")
    shutil.copy(ROOT / "watches.yaml", folder)
    service = folder / "templates/app/service.yaml.j2"
    service.write_text(service.read_text().replace("app: myApp", "app: another"))
    with Operator(
        plane, project, APP.permissions, tmp_path_factory.mktemp("second") / "log", "--name", "second"
    ) as second:
        told = eventually(
            "the fight", lambda: next((each for each in (ready(apps),) if each["reason"] == "FieldConflict"), None)
        )
        assert told["message"] == (
            "service: Service/web-s: spec.selector.app is repeatedly changed by another ruleop or a webhook; backing off before reverting it"
        )
        second.check()


def fight_until_noticed(apps: Apps) -> dict[str, Any]:
    for _ in range(20):
        apps.admin.merge(SERVICE, {"spec": {"selector": {"app": "another"}}}, "somebody")
        eventually(
            "the revert, or the report of a conflict",
            lambda: not is_undone(apps) or ready(apps)["reason"] == "FieldConflict",
            timeout=60,
        )
        if ready(apps)["reason"] == "FieldConflict":
            return ready(apps)
    raise AssertionError("twenty rounds, and nobody noticed")


def is_undone(apps: Apps) -> bool:
    return bool(apps.admin.get(SERVICE)["spec"]["selector"]["app"] == "another")


def ready(apps: Apps) -> dict[str, Any]:
    conditions = apps.admin.get(f"{apps.path}/web")["status"]["conditions"]
    return next(each for each in conditions if each["type"] == "Ready")


def events(apps: Apps) -> set[tuple[str, str, str]]:
    found = apps.admin.get("/api/v1/namespaces/ring/events")["items"]
    return {(each["type"], each["reason"], each["message"]) for each in found}
