"""`writeAs` on a real API server: children are written by the permissions of the tenant's ServiceAccount."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.generated_roles import GeneratedRoles, Pair
from tests.cluster.operator import eventually
from tests.cluster.server import RefusedError
from tests.definitions import definition

pytestmark = pytest.mark.real_server("RBAC refuses")

WATCHES = """\
- group: tenants.example.com
  version: v1
  kind: Desk
  writeAs: "{{ metadata.namespace }}/deployer"
  expire: {after: "{{ spec.ttl | default('') }}"}
  children:
    page:
      deletion: "{{ spec.deletion | default('delete') }}"
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {v: "{{ spec.v }}"}}
  status: {v: "{{ page.data.v }}"}
"""
DESKS = "/apis/tenants.example.com/v1/namespaces/{}/desks"
RULES = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("desks")
    (root / "crds").mkdir()
    (root / "watches.yaml").write_text(WATCHES, encoding="utf-8")
    crd = definition("Desk", group="tenants.example.com")
    (root / "crds" / "desks.yaml").write_text(crd, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def control_plane(project: Path) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        plane.define(project / "crds")
        yield plane
        plane.check()


class Desk:
    """One custom resource, in a namespace of its own with the account `deployer`."""

    def __init__(self, operator: GeneratedRoles, namespace: str) -> None:
        self.operator, self.namespace = operator, namespace
        self.path = f"{DESKS.format(namespace)}/desk"
        operator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    def write(self, **spec: Any) -> None:
        metadata = {"name": "desk", "namespace": self.namespace}
        self.operator.apply(
            {"apiVersion": "tenants.example.com/v1", "kind": "Desk", "metadata": metadata, "spec": spec}
        )

    def grant(self) -> None:
        """To the account, to write ConfigMaps."""
        head = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        metadata = {"name": "deployer", "namespace": self.namespace}
        subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": self.namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"}
        self.operator.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
            {**head, "kind": "Role", "metadata": metadata, "rules": RULES},
            {**head, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]},
        )

    def revoke(self) -> None:
        base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}"
        self.operator.admin.delete(f"{base}/rolebindings/deployer")

    def live(self) -> dict[str, Any] | None:
        return self._get(self.path)

    def page(self) -> dict[str, Any] | None:
        return self._get(f"/api/v1/namespaces/{self.namespace}/configmaps/page")

    def _get(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.operator.admin.get(path)
        except RefusedError as error:
            if error.code == 404:
                return None
            raise
        return found

    def ready(self) -> tuple[str, str]:
        conditions = ((self.live() or {}).get("status") or {}).get("conditions") or []
        return next(((each["reason"], each["message"]) for each in conditions if each["type"] == "Ready"), ("", ""))

    def until_denied(self, verb: str) -> str:
        words = f"the ServiceAccount {self.namespace}/deployer cannot {verb} configmaps in namespace {self.namespace}"
        return eventually("the refusal", lambda: message if words in (message := self.ready()[1]) else None)

    def again(self) -> None:
        """A missing permission is retried with backoff; an edit is a reason not to wait."""
        metadata = (self.live() or {})["metadata"]
        number = str(int((metadata.get("annotations") or {}).get("again", "0")) + 1)
        self.operator.admin.merge(self.path, {"metadata": {"annotations": {"again": number}}}, "somebody")


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("project") / "desks"
    shutil.copytree(project, root)
    found = GeneratedRoles(control_plane, root, tmp_path_factory.mktemp("operator") / "log")
    with found:
        yield found
        found.check()


def test_an_operator_that_may_not_impersonate_the_account_reports_what_it_needs(
    control_plane: ControlPlane, project: Path, tmp_path: Path, namespace: str
) -> None:
    """The first test of the module: no other operator runs."""
    missing = Pair("impersonate", "serviceaccounts")
    operator = GeneratedRoles(control_plane, project, tmp_path / "operator" / "log", without=missing)
    with operator:
        desk = Desk(operator, namespace)
        desk.grant()
        desk.write(v="1")
        words = (
            f"cannot write as the ServiceAccount {namespace}/deployer: the operator needs impersonate on serviceaccounts "
            f"(resourceNames: [deployer]) in namespace {namespace}"
        )
        reason, message = eventually("the report", lambda: ready if (ready := desk.ready())[1] else None)
        assert (reason, message) == ("Forbidden", f"page: watches.yaml:9:15: {words}")
        assert desk.page() is None
        operator.kill()


def test_a_child_is_written_when_the_account_may_and_the_status_in_any_case(
    operator: GeneratedRoles, namespace: str
) -> None:
    desk = Desk(operator, namespace)
    desk.write(v="1")
    message = desk.until_denied("create")
    assert "grant it create, patch, delete by a Role and a RoleBinding" in message
    assert desk.ready()[0] == "Forbidden", "the operator has written the status"
    assert desk.page() is None
    desk.grant()
    desk.again()
    eventually("the child", desk.page)
    eventually("a status with the child", lambda: (desk.live() or {})["status"].get("v") == "1")
    desk.write(v="2")
    eventually("the change", lambda: (desk.page() or {})["data"]["v"] == "2")
    managers = {each["manager"] for each in (desk.page() or {})["metadata"]["managedFields"]}
    assert managers == {"ruleop"}, "the field manager is ruleop's"
    users = {
        (event["verb"], event.get("impersonatedUser", {}).get("username", ""))
        for event in operator.asked()
        if event["objectRef"]["resource"] in {"configmaps", "desks"}
        and event["objectRef"].get("namespace") == namespace
    }
    account = f"system:serviceaccount:{namespace}:deployer"
    assert {user for verb, user in users if verb == "create"} == {account}
    assert ("patch", account) in users
    assert ("patch", "") in users, "the status"
    assert {user for verb, user in users if verb in {"get", "list", "watch"}} <= {""}


def test_the_groups_of_the_account_are_those_of_a_service_account(operator: GeneratedRoles, namespace: str) -> None:
    """The API server adds them to an account that is impersonated, so the operator does not name them, and needs no
    permission to impersonate groups."""
    desk = Desk(operator, namespace)
    desk.grant()
    desk.write(v="1")
    eventually("the child", desk.page)
    groups = {
        frozenset(event["impersonatedUser"]["groups"])
        for event in operator.asked()
        if event.get("impersonatedUser", {}).get("username") == f"system:serviceaccount:{namespace}:deployer"
    }
    assert groups == {
        frozenset({"system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"})
    }


def test_a_deletion_that_the_account_may_not_make_is_given_up_by_the_annotation(
    operator: GeneratedRoles, namespace: str
) -> None:
    desk = Desk(operator, namespace)
    desk.grant()
    desk.write(v="1", deletion="orphan")
    eventually("the child", desk.page)
    eventually("Ready", lambda: desk.ready()[0] == "Ready")
    desk.revoke()
    operator.admin.delete(desk.path)
    message = desk.until_denied("patch")
    assert "set the annotation ruleop.dev/skip-finalize to give up on it" in message
    annotations = {"ruleop.dev/skip-finalize": "true"}
    operator.admin.merge(desk.path, {"metadata": {"annotations": annotations}}, "somebody")
    eventually("the resource to be gone", lambda: desk.live() is None)
    assert desk.page() is not None


def test_a_resource_that_expires_is_deleted_by_the_operator(operator: GeneratedRoles, namespace: str) -> None:
    desk = Desk(operator, namespace)
    desk.grant()
    desk.write(v="1", ttl="5s")
    eventually("the child", desk.page)
    eventually("the resource to be gone", lambda: desk.live() is None)
    eventually("the child to be gone", lambda: desk.page() is None)
    # Events are written beside the passes, so it may come after the deletion.
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    notes = eventually(
        "the event", lambda: [each["note"] for each in operator.admin.get(path)["items"] if each["reason"] == "Expired"]
    )
    assert notes == ["Deleted Desk/desk: expired 5s after its creation"]
