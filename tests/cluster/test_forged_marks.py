"""A tenant who may write ConfigMaps in one namespace forges marks on them: it gets no child's data, no finalizer, and
no memory."""

from __future__ import annotations

import base64
import copy
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane, free_ports

from tests.cluster.operator import Permissions, eventually
from tests.cluster.pod import LEASES, Pod
from tests.cluster.server import RefusedError
from tests.definitions import definition
from tests.folders import write_files

GROUP = "/apis/example.com/v1"
OWN = (
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["ruleop-owner-key"], "verbs": ["get", "update"]},
    LEASES,
)
RULES = """
- group: example.com
  version: v1
  kind: Near
  children: {a: {template: a.yaml}}
- group: example.com
  version: v1
  kind: Far
  reach: cluster
  children:
    a: {template: a.yaml}
    b: {template: b.yaml, namespace: "{{ spec.place }}"}
"""
A = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}"}
data: {v: "{{ live.a.data.v | default('first') }}", edit: "{{ spec.edit | default('-') }}"}
"""
B = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'b-{{ metadata.name }}'}\n"
FLOOD = 3000


class Operator(Pod):
    """It may do what docs/operations.md says."""

    def may(self, namespace: str, verb: str, resource: str, group: str, *, yes: bool = True) -> None:
        if (resource, verb) != ("secrets", "update"):  # allowed for one name only
            super().may(namespace, verb, resource, group, yes=yes)

    def store_objects(self) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(
            float(line.split()[-1]) for line in lines if line.startswith('ruleop_store_objects{kind="ConfigMap"')
        )

    @property
    def key(self) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get(f"/api/v1/namespaces/{self.name}/secrets/ruleop-owner-key")
        return found


@pytest.fixture
def attack(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """The namespace of the other tenant."""
    name = f"{namespace[:50]}-attack"
    admin = control_plane.api()
    admin.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def project(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("rules")
    crds = {"crds/near.yaml": definition("Near"), "crds/far.yaml": definition("Far")}
    write_files(folder, {"watches.yaml": RULES, "templates/a.yaml": A, "templates/b.yaml": B, **crds})
    control_plane.define(folder / "crds")
    yield folder
    control_plane.kubectl("delete", f"--filename={folder / 'crds'}", "--wait=false")


@pytest.fixture
def operator(control_plane: ControlPlane, tmp_path: Path, project: Path) -> Iterator[Operator]:
    permissions = Permissions(["nears.example.com", "fars.example.com"], ["configmaps"])
    (port,) = free_ports(1)
    made = Operator(
        control_plane, project, permissions, tmp_path / "log", "--metrics-bind-address", f"127.0.0.1:{port}", own=OWN
    )
    made.metrics = port  # type: ignore[attr-defined]
    with made:
        yield made


def resource(kind: str, **spec: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def config(name: str, child: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A ConfigMap with the label and the record of a child."""
    theirs = child["metadata"]
    annotations = {**theirs["annotations"], **metadata.pop("annotations", {})}
    metadata = {"name": name, "labels": theirs["labels"], "annotations": annotations, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "forged"}}


def annotation(obj: dict[str, Any]) -> str:
    text: str = obj["metadata"]["annotations"]["ruleop.dev/owner"]
    return text


def test_forged_marks_on_objects_of_a_tenant_are_not_accepted(operator: Operator, namespace: str, attack: str) -> None:
    admin = operator.admin
    for kind, plural in (("Near", "nears"), ("Far", "fars")):
        admin.post(f"{GROUP}/namespaces/{namespace}/{plural}", resource(kind, place=namespace))
    near = eventually("the near child", lambda: admin.get(maps(namespace, "near")))
    far = eventually("the child with a proof", lambda: admin.get(maps(namespace, "far")))
    uid = near["metadata"]["ownerReferences"][0]["uid"]

    # Annotations: without a proof, with an invented one, and one copied from another object.
    place = {"place": attack}
    admin.merge(f"{GROUP}/namespaces/{namespace}/fars/far", {"spec": place}, "somebody")
    real = eventually("the child elsewhere", lambda: admin.get(maps(attack, "b-far")))
    note = json.loads(annotation(real))
    assert len(note["proof"]) == 32
    victim = {**note, "kind": "Near", "name": "near", "uid": uid, "of": f"ConfigMap./{attack}/"}
    for number, change in enumerate(({"proof": "0" * 32}, {"proof": note["proof"]}, {"proof": ""})):
        name = f"forged-{number}"
        text = json.dumps({**victim, "of": f"ConfigMap./{attack}/{name}", **change}, separators=(",", ":"))
        admin.post(maps(attack), config(name, near, annotations={"ruleop.dev/owner": text}))
        text = json.dumps({**note, "of": f"ConfigMap./{attack}/far-{name}", **change}, separators=(",", ":"))
        admin.post(maps(attack), config(f"far-{name}", far, annotations={"ruleop.dev/owner": text}))
    # References in the CR's own namespace: the uid alone, and all of it, with a name that sorts first.
    reference = copy.deepcopy(near["metadata"]["ownerReferences"][0])
    admin.post(maps(namespace), config("0-kind", near, ownerReferences=[{**reference, "kind": "Far"}]))
    admin.post(maps(namespace), config("0-all", near, ownerReferences=[reference]))
    admin.post(maps(attack), config("elsewhere", near, ownerReferences=[reference]))

    for kind in ("near", "far"):
        admin.merge(f"{GROUP}/namespaces/{namespace}/{kind}s/{kind}", {"spec": {"edit": "done"}}, "somebody")
    for name in ("near", "far"):
        done = eventually(
            "the edit", lambda name=name: (got := admin.get(maps(namespace, name)))["data"]["edit"] == "done" and got
        )
        assert done["data"]["v"] == "first"
    eventually("what claims to be a child to be pruned", lambda: "0-all" not in names(admin.get(maps(namespace))))
    found = admin.get(f"{GROUP}/namespaces/{namespace}/nears/near")
    assert "finalizers" not in found["metadata"]

    for kind in ("near", "far"):
        admin.delete(f"{GROUP}/namespaces/{namespace}/{kind}s/{kind}")
        eventually("the CR to be gone", lambda kind=kind: gone(admin, f"{GROUP}/namespaces/{namespace}/{kind}s/{kind}"))
    assert gone(admin, maps(attack, "b-far"))
    left = [admin.get(maps(attack, f"{of}forged-{number}")) for of in ("", "far-") for number in range(3)]
    assert all(each["data"] == {"v": "forged"} and "deletionTimestamp" not in each["metadata"] for each in left)
    operator.check()


def test_a_second_process_uses_the_key_of_the_first(operator: Operator, namespace: str, attack: str) -> None:
    admin = operator.admin
    key = operator.key
    assert len(base64.b64decode(key["data"]["key"])) == 32
    admin.post(f"{GROUP}/namespaces/{namespace}/fars", resource("Far", place=attack))
    child = eventually("the child with a proof", lambda: admin.get(maps(attack, "b-far")))
    operator.kill()
    mark = operator.mark()
    operator.start()
    path = f"{GROUP}/namespaces/{namespace}/fars/far"
    admin.merge(path, {"spec": {"edit": "done"}}, "somebody")
    eventually("the edit", lambda: admin.get(maps(namespace, "far"))["data"]["edit"] == "done")
    assert [each for each in operator.writes(mark) if each.endswith(" b-far")] == []
    assert operator.key["data"] == key["data"]
    assert annotation(admin.get(maps(attack, "b-far"))) == annotation(child)

    # The Secret is lost, and with it the key: the child is written once more, and pruned as before.
    operator.kill()
    admin.delete(f"/api/v1/namespaces/{operator.name}/secrets/ruleop-owner-key")
    operator.start()
    eventually("another proof", lambda: annotation(admin.get(maps(attack, "b-far"))) != annotation(child))
    assert operator.key["data"].keys() == {"key", "accept-unproven"}
    admin.delete(path)
    eventually("the CR to be gone", lambda: gone(admin, path))
    assert gone(admin, maps(attack, "b-far"))
    operator.check()


def test_thousands_of_labels_take_no_memory(operator: Operator, namespace: str, attack: str) -> None:
    admin = operator.admin
    admin.post(f"{GROUP}/namespaces/{namespace}/nears", resource("Near"))
    child = eventually("the child", lambda: admin.get(maps(namespace, "near")))
    forged = config("x", child)
    for number in range(FLOOD):
        admin.post(maps(attack), {**forged, "metadata": {**forged["metadata"], "name": f"flood-{number}"}})
    for _ in range(2):
        admin.merge(f"{GROUP}/namespaces/{namespace}/nears/near", {"spec": {"edit": str(_)}}, "somebody")
        eventually("the edit", lambda _=_: admin.get(maps(namespace, "near"))["data"]["edit"] == str(_))
        assert operator.store_objects() <= 3, "the child, and nothing of the flood"
        operator.kill()
        operator.start()  # it lists all of them
    operator.check()


def names(found: dict[str, Any]) -> set[str]:
    return {each["metadata"]["name"] for each in found["items"]}


def gone(admin: Any, path: str) -> bool:
    try:
        admin.get(path)
    except RefusedError as error:
        return error.code == 404
    return False
