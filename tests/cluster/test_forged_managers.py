"""A tenant who may write ConfigMaps names the custom resource of somebody else in their managedFields: nothing is
written for it, no deletion waits for it, and no namespace stays."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from ruleop.planning.model.managers import managers_on
from tests.cluster.operator import Operator, Permissions, described, eventually
from tests.definitions import OPEN, definition
from tests.folders import write_files

GROUP = "/apis/example.com/v1"
RULES = """\
- group: example.com
  version: v1
  kind: Thing
  children:
    mark: {patch: {version: v1, kind: ConfigMap, name: settings, fields: {data: {ours: "{{ spec.value }}"}}}}
- group: example.com
  version: v1
  kind: Broad
  reach: cluster
  children:
    mark:
      patch: {version: v1, kind: ConfigMap, name: "{{ spec.target }}", namespace: "{{ spec.place }}", fields: {data: {ours: "1"}}}
- group: example.com
  version: v1
  kind: Plain
  children:
    own: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: own}}}
"""
KINDS = {"Thing": "things", "Broad": "broads", "Plain": "plains"}
THOUSANDS = 3000


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    folder = tmp_path_factory.mktemp("forged")
    crds = {f"crds/{plural}.yaml": definition(kind, spec=OPEN) for kind, plural in KINDS.items()}
    write_files(folder / "rules", {"watches.yaml": RULES, **crds})
    control_plane.define(folder / "rules" / "crds")
    permissions = Permissions([f"{plural}.example.com" for plural in KINDS.values()], ["configmaps"], ["namespaces"])
    with Operator(control_plane, folder / "rules", permissions, folder / "log") as operator:
        yield operator
        operator.check()
    control_plane.kubectl("delete", f"--filename={folder / 'rules' / 'crds'}", "--wait=false")


@pytest.fixture
def tenant(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """The namespace of the other tenant."""
    name = f"{namespace[:50]}-tenant"
    admin = control_plane.api()
    admin.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


def label(kind: str, namespace: str, name: str) -> str:
    """The public part of the name of a manager: anybody can compute it."""
    text = f"example.com/{kind}/{namespace}/{name}".encode()
    return base64.b32encode(hashlib.sha256(text).digest())[:26].decode().lower()


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def path(kind: str, namespace: str) -> str:
    return f"{GROUP}/namespaces/{namespace}/{KINDS[kind]}/victim"


def make(operator: Operator, kind: str, namespace: str, **spec: str) -> None:
    body = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "victim"}, "spec": spec}
    operator.admin.post(f"{GROUP}/namespaces/{namespace}/{KINDS[kind]}", body)
    eventually(f"{kind} to be ready", lambda: ready(operator, kind, namespace)["status"] == "True")


def ready(operator: Operator, kind: str, namespace: str) -> dict[str, Any]:
    conditions = operator.admin.get(path(kind, namespace)).get("status", {}).get("conditions") or [{"status": "?"}]
    found: dict[str, Any] = conditions[0]
    return found


def settings(admin: Any, namespace: str, name: str = "settings") -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"theirs": "x"}}
    admin.post(maps(namespace), body)


def forge(admin: Any, at: str, manager: str, *, immutable: bool = True) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": at.rpartition("/")[2]}, "data": {"a": "b"}}
    admin.apply(at, body | ({"immutable": True} if immutable else {}), manager)


def test_objects_with_forged_managers_hold_no_deletion_and_are_not_written(
    operator: Operator, namespace: str, tenant: str
) -> None:
    admin = operator.admin
    settings(admin, namespace)
    for kind, spec in (("Thing", {"value": "1"}), ("Broad", {"target": "broad", "place": namespace}), ("Plain", {})):
        if kind == "Broad":
            settings(admin, namespace, "broad")
        make(operator, kind, namespace, **spec)
    (genuine,) = [each.name for each in managers_on(admin.get(maps(namespace, "settings")))]
    forged = []
    for number, kind in enumerate(KINDS):
        for place in (tenant, namespace):
            at = maps(place, f"forged-{number}")
            settings(admin, place, f"forged-{number}")
            forge(admin, at, f"ruleop:{label(kind, namespace, 'victim')}:x")
            forged.append(at)
    settings(admin, tenant)
    forge(admin, maps(tenant, "settings"), genuine)  # copied: its proof is of another object
    forged.append(maps(tenant, "settings"))
    before = [admin.get(at)["metadata"]["resourceVersion"] for at in forged]
    admin.merge(path("Thing", namespace), {"spec": {"value": "2"}}, "somebody")
    eventually("the edit", lambda: admin.get(maps(namespace, "settings"))["data"]["ours"] == "2")
    assert "finalizers" not in admin.get(path("Plain", namespace))["metadata"]
    for kind in KINDS:
        assert ready(operator, kind, namespace)["status"] == "True"
        admin.delete(path(kind, namespace))
        eventually(f"{kind} to be gone", lambda kind=kind: not admin.exists(path(kind, namespace)))
    assert admin.get(maps(namespace, "settings"))["data"] == {"theirs": "x"}
    assert admin.get(maps(namespace, "broad"))["data"] == {"theirs": "x"}
    assert [admin.get(at)["metadata"]["resourceVersion"] for at in forged] == before


def test_thousands_of_forged_managers_make_no_writes(operator: Operator, namespace: str, tenant: str) -> None:
    admin = operator.admin
    settings(admin, namespace)
    make(operator, "Thing", namespace, value="1")
    mark = operator.mark()
    # Of the object itself few: the API server takes a minute for any write of an object with thousands.
    for place, name, count in (
        (tenant, "settings", THOUSANDS),
        (namespace, "another", THOUSANDS),
        (namespace, "settings", 50),
    ):
        if (place, name) != (namespace, "settings"):
            settings(admin, place, name)
        live = admin.get(maps(place, name))
        entry = {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        entry |= {"fieldsV1": {"f:data": {"f:theirs": {}}}}
        victim = f"ruleop:{label('Thing', namespace, 'victim')}"
        live["metadata"]["managedFields"] += [{**entry, "manager": f"{victim}:x{number}"} for number in range(count)]
        admin.send("PUT", maps(place, name), live)
    admin.merge(path("Thing", namespace), {"spec": {"value": "2"}}, "somebody")
    eventually("the edit", lambda: admin.get(maps(namespace, "settings"))["data"].get("ours") == "2")
    written = [each for place in (tenant, namespace) for each in operator.requests(mark, place)]
    assert [described(each) for each in written if each["objectRef"]["resource"] == "configmaps"] == [
        "patch configmaps settings"
    ]
    admin.delete(path("Thing", namespace))
    eventually("the CR to be gone", lambda: not admin.exists(path("Thing", namespace)))


def test_a_release_that_the_object_prevents_is_given_up_by_the_annotation_and_with_the_namespace(
    operator: Operator, namespace: str, tenant: str
) -> None:
    admin = operator.admin
    for kind, place in (("Broad", tenant), ("Thing", namespace)):
        settings(admin, place)
        make(operator, kind, namespace, value="1", target="settings", place=place)
        admin.merge(maps(place, "settings"), {"immutable": True}, "tenant")
        admin.delete(path(kind, namespace))

        def is_reported(kind: str = kind) -> bool:
            return "immutable" in ready(operator, kind, namespace).get("message", "")

        eventually("the rejection", is_reported)
        assert "set the annotation ruleop.dev/skip-finalize" in ready(operator, kind, namespace)["message"]
    events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    eventually("the Event", lambda: "FieldsNotReleased" in {each["reason"] for each in admin.get(events)["items"]})
    annotation = {"metadata": {"annotations": {"ruleop.dev/skip-finalize": "true"}}}
    admin.merge(path("Broad", namespace), annotation, "somebody")
    eventually("the CR to be gone", lambda: not admin.exists(path("Broad", namespace)))
    if isinstance(operator.plane, ControlPlane):
        admin.delete(f"/api/v1/namespaces/{namespace}")
    else:
        admin.merge(path("Thing", namespace), annotation, "somebody")  # no controller there deletes the CR's namespace
    # A restart shortens the wait between two attempts, which doubles.
    operator.kill()
    operator.start()
    eventually("the CR to be gone with its namespace", lambda: not admin.exists(path("Thing", namespace)))
