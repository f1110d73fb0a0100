"""`forEachOf` beside a cluster's Job controller and garbage collector: the object of a removed tenant is deleted after
the Job that drops its database, whichever way it is removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.custom_resource import CustomResource
from tests.cluster.operator import Operator, eventually, operator_of

RULES = """\
- group: example.com
  version: v1
  kind: Fleet
  children:
    databases:
      forEach: spec.tenants
      as: tenant
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "db-{{ tenant.name }}"}}
  finalize:
    drop:
      forEachOf: databases
      object:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: "drop-{{ tenant.name }}"}
        spec:
          suspend: true
          template:
            spec:
              restartPolicy: Never
              containers: [{name: drop, image: busybox, args: [drop, "{{ tenant.name }}"]}]
"""


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operator_of(
        control_plane, tmp_path_factory.mktemp("fleets"), "Fleet", RULES, children=["configmaps", "jobs.batch"]
    ) as operator:
        yield operator


def tenants(*names: str) -> dict[str, Any]:
    return {"tenants": [{"name": name} for name in names]}


class Fleet(CustomResource):
    def keep(self, *names: str) -> None:
        self.edit(**tenants(*names))

    def database(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/db-{name}"

    def job(self, name: str) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs/drop-{name}"

    def run(self, name: str) -> None:
        """Lets the Job run, which then completes."""
        self.admin.merge(self.job(name), {"spec": {"suspend": False}}, "somebody")

    def deletions(self) -> list[str]:
        """The ConfigMaps and Jobs in the order in which ruleop or the garbage collector asked to delete them."""
        asked = self.operator.plane.audit(mark=self.mark, verb="delete")
        ours = [each["objectRef"] for each in asked if each["objectRef"].get("namespace") == self.namespace]
        names = (each["name"] for each in ours if each["resource"] in {"configmaps", "jobs"})
        return list(dict.fromkeys(names))


@pytest.fixture
def fleet(operator: Operator, namespace: str) -> Fleet:
    return Fleet(operator, namespace, "all", tenants("a", "b"))


def test_the_object_of_a_removed_tenant_goes_after_its_job(fleet: Fleet) -> None:
    fleet.keep("b")
    eventually("the Job to be there", lambda: fleet.exists(fleet.job("a")))
    waits = f"ConfigMap/{fleet.namespace}/db-a to be deleted: Job/{fleet.namespace}/drop-a is not ready"
    eventually("the end to be reported", lambda: waits in fleet.ready()["message"])
    job = fleet.admin.get(fleet.job("a"))
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["drop", "a"]
    assert "ownerReferences" not in job["metadata"]
    assert fleet.exists(fleet.database("a"))
    fleet.run("a")
    eventually("the Job to be gone", lambda: not fleet.exists(fleet.job("a")))
    eventually("the fleet to be ready", lambda: fleet.ready()["status"] == "True")
    assert fleet.deletions() == ["db-a", "drop-a"]
    assert fleet.exists(fleet.database("b"))


def test_a_tenant_that_is_back_is_created_again_when_its_end_is_over(fleet: Fleet) -> None:
    before = fleet.admin.get(fleet.database("a"))["metadata"]["uid"]
    fleet.keep("b")
    eventually("the Job to be there", lambda: fleet.exists(fleet.job("a")))
    fleet.keep("a", "b")
    eventually("its object to wait", lambda: "it ends the item that was there before" in fleet.ready()["message"])
    assert fleet.admin.get(fleet.database("a"))["metadata"]["uid"] == before
    fleet.run("a")
    eventually("the fleet to be ready", lambda: fleet.ready()["status"] == "True")
    assert fleet.admin.get(fleet.database("a"))["metadata"]["uid"] != before
    assert not fleet.exists(fleet.job("a"))


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_all_tenants_end_with_their_custom_resource(fleet: Fleet, propagation: str) -> None:
    fleet.admin.delete(f"{fleet.path}?propagationPolicy={propagation}")
    for name in ("a", "b"):
        eventually("the Job to be there", lambda name=name: fleet.exists(fleet.job(name)))
    eventually("the end to be reported", lambda: fleet.ready()["reason"] == "Finalizing")
    fleet.operator.kill()
    fleet.operator.start()
    fleet.run("a")
    eventually("one database to be gone", lambda: not fleet.exists(fleet.database("a")))
    assert fleet.exists(fleet.database("b"))
    fleet.run("b")
    eventually("the fleet to be gone", lambda: not fleet.exists(fleet.path))
    assert not any(fleet.exists(each) for name in ("a", "b") for each in (fleet.database(name), fleet.job(name)))
    found = fleet.deletions()
    assert sorted(found) == ["db-a", "db-b", "drop-a", "drop-b"]
    assert all(found.index(f"db-{name}") < found.index(f"drop-{name}") for name in ("a", "b"))


def test_a_forged_item_ends_nothing(fleet: Fleet) -> None:
    """Who may write a tenant's object could otherwise have the database of another tenant dropped."""
    fleet.operator.kill()
    metadata = fleet.admin.get(fleet.database("a"))["metadata"]
    forged = metadata["annotations"]["ruleop.dev/item"].replace('"name":"a"', '"name":"b"')
    fleet.admin.merge(fleet.database("a"), {"metadata": {"annotations": {"ruleop.dev/item": forged}}}, "somebody")
    fleet.keep("b")
    fleet.operator.start()
    eventually("the record to be reported", lambda: "is not recorded on it" in fleet.ready()["message"])
    assert fleet.ready()["reason"] == "ChildFailed"
    assert fleet.exists(fleet.database("a"))
    assert not fleet.exists(fleet.job("b"))
    skip = {"metadata": {"annotations": {"ruleop.dev/skip-finalize": "true"}}}
    fleet.admin.merge(fleet.path, skip, "somebody")
    eventually("the object to be gone", lambda: not fleet.exists(fleet.database("a")))
