"""Somebody undoes what the operator writes, on the real API server, which says who it is. No controllers run: the test is the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.apps import Apps
from tests.cluster.operator import Operator, eventually
from tests.cluster.seeds import ROOT
from tests.cluster.test_seed_app import APP

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVICE = "/api/v1/namespaces/ring/services/web-s"
DEPLOYMENT = "/apis/apps/v1/namespaces/ring/deployments/web-d"


@pytest.fixture
def apps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apps]:
    with ControlPlane(controllers=False, audit=False) as plane:
        plane.define(ROOT / "crds")
        with Operator(plane, APP.project, APP.rights, tmp_path_factory.mktemp("operator") / "log") as operator:
            yield Apps(operator, "ring")
            operator.check()
        plane.check()


def test_a_fight_is_named_and_slowed_and_holds_up_nothing_else(apps: Apps) -> None:
    apps.create("web")
    told = fight_until_noticed(apps)
    assert (
        told["message"] == "service: Service/web-s: somebody undoes spec.selector.app again and again; ruleop puts it back later and later"
    )
    eventually("the event", lambda: ("Warning", "Fighting", told["message"]) in events(apps))
    apps.admin.merge(f"{apps.path}/web", {"spec": {"deployment": {"replicas": 3}}}, "editor")
    eventually("the other child", lambda: apps.admin.get(DEPLOYMENT)["spec"]["replicas"] == 3)
    assert ready(apps)["reason"] == "Fighting"


def fight_until_noticed(apps: Apps) -> dict[str, Any]:
    for _ in range(20):
        apps.admin.merge(SERVICE, {"spec": {"selector": {"app": "another"}}}, "somebody")
        eventually("it to be put back, or told", lambda: not is_undone(apps) or ready(apps)["reason"] == "Fighting", timeout=60)
        if ready(apps)["reason"] == "Fighting":
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
