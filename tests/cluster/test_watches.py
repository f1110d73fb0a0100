"""The watches of a kind, on a real API server: one for each version that rules write, with the parts of an object that
they read."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.language.rules.checking import build_project
from ruleop.operator.cache.informers import Informers, observe_need
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.watch.store import StoreState
from tests.cluster.operator import Operator, Permissions, eventually
from tests.cluster.test_wire import client_of, until
from tests.definitions import ANYTHING, crd, fields, version

GROUP = "watches.example.com"


def definition(kind: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return crd(kind, GROUP, *versions, conversion={"strategy": "None"})


def with_fields(name: str, *, storage: bool, **spec: Any) -> dict[str, Any]:
    schema = fields(spec=fields(**spec), status=ANYTHING)
    return version(name, schema, storage=storage, subresources={"status": {}})


@pytest.mark.parametrize("field", ["metadata.labels.note", "data.password"])
async def test_the_data_of_a_secret_watched_as_metadata_is_never_sent(
    control_plane: ControlPlane, namespace: str, field: str
) -> None:
    """The control: an object whose data is read is watched in full."""
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"a": f"{{{{ secret.{field} }}}}"},
    }
    observe = {"secret": {"group": "", "version": "v1", "kind": "Secret", "name": "seen"}}
    watch = {"group": GROUP, "version": "v1", "kind": "Pair", "observe": observe, "children": {"c": {"object": child}}}
    (rule,) = build_project({"watches.yaml": yaml.safe_dump([watch])}, root="rules", environ={}).rules
    need = observe_need(rule.observe["secret"])
    secrets = builtin_resource(need.kind)
    assert secrets is not None
    async with client_of(control_plane) as client:
        asked: list[str] = []
        stream = client.stream

        def recorded(request: requests.PreparedRequest, *arguments: Any, **more: Any) -> Any:
            asked.append(request.accept)
            return stream(request, *arguments, **more)

        client.stream = recorded  # type: ignore[method-assign]
        informers = Informers(client, lambda _kind: secrets, (namespace,))
        informers.connect(lambda *_: None, lambda _: None)
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "seen", "namespace": namespace, "labels": {"note": "x"}},
        }
        await client.send(requests.create(secrets, {**body, "stringData": {"password": "hunter2"}}))
        informers.watch([need])
        try:
            informer = informers.informers[need]
            await until(lambda: informer.state is StoreState.SYNCED)
            (store,) = informer.stores()
            (key,) = store.select_keys()
            await client.send(requests.merge_patch(secrets, key, {"metadata": {"labels": {"note": "later"}}}))
            await until(lambda: store.entry(key).parsed_labels() == {"note": "later"})
            brought = b"aHVudGVyMg==" in store.entry(key).body
            assert brought == (field == "data.password")
            assert all(("PartialObjectMetadata" in accept) != brought for accept in asked)
            assert asked
        finally:
            await informers.stop()
            await asyncio.sleep(0)


def test_children_of_one_kind_in_two_versions_are_stable(
    control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    number = {"type": "integer"}
    pair = definition("Pair", with_fields("v1", storage=True, note={"type": "string"}))
    thing = definition(
        "Thing",
        with_fields("v1", storage=False, size=number),
        with_fields("v2", storage=True, size=number, count=number),
    )
    project = tmp_path / "rules"
    (project / "templates").mkdir(parents=True)
    (project / "crds").mkdir()
    for each in (pair, thing):
        (project / "crds" / f"{each['metadata']['name']}.yaml").write_text(json.dumps(each))
    children = {
        name: {
            "object": {"apiVersion": f"{GROUP}/{version}", "kind": "Thing", "metadata": {"name": name}, "spec": spec}
        }
        for name, version, spec in (("old", "v1", {"size": 1}), ("new", "v2", {"count": 2}))
    }
    status = {"size": "{{ live.old.spec.size | default(0) }}", "of": "{{ old.apiVersion }} {{ new.apiVersion }}"}
    watch = {"group": GROUP, "version": "v1", "kind": "Pair", "children": children, "status": status}
    (project / "watches.yaml").write_text(json.dumps([watch]))
    control_plane.define(project / "crds")
    permissions = Permissions(watched=[f"pairs.{GROUP}"], children=[f"things.{GROUP}"])
    with Operator(control_plane, project, permissions, tmp_path / "log") as operator:
        root = f"/apis/{GROUP}/v1/namespaces/{namespace}"
        operator.admin.post(f"{root}/pairs", {"apiVersion": f"{GROUP}/v1", "kind": "Pair", "metadata": {"name": "one"}})

        def settled() -> bool:
            found = operator.admin.get(f"{root}/pairs/one").get("status") or {}
            return found.get("of") == f"{GROUP}/v1 {GROUP}/v2" and found["conditions"][0]["status"] == "True"

        eventually("both to stand", settled, timeout=60)
        assert operator.terminate() == 0
        mark, said = operator.mark(), len(operator.log())
        operator.start()
        looked = {"event": "reconciled", "resource": f"{namespace}/one"}
        eventually(
            "a look at them", lambda: any(looked.items() <= line.items() for line in operator.log()[said:]), timeout=60
        )
        operator.admin.merge(f"/apis/{GROUP}/v2/namespaces/{namespace}/things/new", {"spec": {"count": 7}}, "somebody")
        count = f"/apis/{GROUP}/v2/namespaces/{namespace}/things/new"
        eventually("the edit to be put back", lambda: operator.admin.get(count)["spec"] == {"count": 2}, timeout=60)
        assert operator.writes(mark, namespace) == ["patch things new"]
        operator.check()
    kubectl("delete", f"--filename={project / 'crds'}", "--wait=false")
