"""What the server answers to patches that change what they cannot, or that are malformed. Word for word."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, config_map
from tests.contract.recording import Recording

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
LABELS = {"app": "a"}
CONTAINER = {"name": "a", "image": "a", "livenessProbe": {"httpGet": {"port": 80}}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
    },
}


def operation(op: str, path: str, **fields: Any) -> list[Any]:
    return [{"op": op, "path": path, **fields}]


def of_container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "a", **fields}]}}}}


JSON_PATCHES: dict[str, Any] = {
    "null for an operation": [None],
    "text for an operation": ["add"],
    "text for the whole object": operation("replace", "", value="text"),
    "a failing test": operation("test", "/metadata/name", value="b"),
    "a missing member": operation("remove", "/metadata/other"),
    "another name": operation("replace", "/metadata/name", value="b"),
    "no name": operation("remove", "/metadata/name"),
    "no kind": operation("remove", "/kind"),
    "another version": operation("replace", "/apiVersion", value="v9"),
    "another uid": operation("replace", "/metadata/uid", value="b"),
}
MERGE_PATCHES: dict[str, Any] = {
    "text": "text",
    "a list": [],
    "no metadata": {"metadata": None},
    "another kind": {"kind": "Other"},
    "another version": {"apiVersion": "example.com/v9"},
    "no kind": {"kind": None},
    "another namespace": {"metadata": {"namespace": "b"}},
    "no managers": {"metadata": {"managedFields": []}},
}
STRATEGIC_PATCHES: dict[str, Any] = {
    "text": "text",
    "a list": [],
    "an unknown directive": {"$patch": "other"},
    "a number for a text": of_container(image=1),
    "a boolean for a text": of_container(image=True),
    "text for a number": {"spec": {"replicas": "one"}},
    "a fraction for a number": {"spec": {"replicas": 1.5}},
    "a number for a boolean": {"spec": {"paused": 1}},
    "text for a list": of_container(command="a"),
    "text for a map": {"metadata": {"labels": "text"}},
    "text for a struct": of_container(resources="a"),
    "a list for a port": of_container(livenessProbe={"httpGet": {"port": []}}),
    "a number for a time": {"metadata": {"creationTimestamp": 1}},
    "an invalid quantity": of_container(resources={"limits": {"cpu": "x"}}),
}
PATCHES = {
    **{f"JSON patch: {name}": (JSON_PATCH, patch) for name, patch in JSON_PATCHES.items()},
    **{f"merge patch: {name}": (MERGE, patch) for name, patch in MERGE_PATCHES.items()},
}


@pytest.fixture(scope="module")
def place(server: Server) -> Iterator[str]:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    server.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    server.create(CONFIG_MAPS.path(name), config_map())
    server.create(WIDGETS.path(name), WIDGETS.obj())
    server.create(f"/apis/apps/v1/namespaces/{name}/deployments", DEPLOYMENT)
    yield name
    server.send("DELETE", f"/api/v1/namespaces/{name}")


def answer(server: Server, path: str, patch: Any, media: str, **query: Any) -> dict[str, Any]:
    body = f'"{patch}"' if isinstance(patch, str) else patch
    reply = server.send("PATCH", path, body, media=media, dryRun="All", **query)
    found = {"code": reply.status, "warnings": sorted(reply.warnings)}
    if reply.status >= 400:
        # The object that a patch would make is quoted in another order.
        before, quoted, after = reply.body["message"].partition('Invalid value: "{')
        return found | {"message": before + after.rpartition('}": ')[2].partition("in '")[0] if quoted else before}
    metadata = reply.body["metadata"]
    return found | {"managed": bool(metadata.get("managedFields")), "owners": len(metadata.get("ownerReferences", ()))}


@pytest.mark.parametrize("name", PATCHES)
@pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
@pytest.mark.parametrize("validation", ["Warn", "Strict"])
def test_an_invalid_patch_is_refused(
    server: Server, place: str, name: str, kind: str, validation: str, recording: Recording
) -> None:
    media, patch = PATCHES[name]
    path = f"{(CONFIG_MAPS if kind == 'ConfigMap' else WIDGETS).path(place)}/a"
    found = answer(server, path, patch, media, fieldValidation=validation)
    recording.check(f"{kind}, {validation}, {name}", found, place)


@pytest.mark.parametrize("name", STRATEGIC_PATCHES)
def test_an_invalid_strategic_merge_patch_is_refused(
    server: Server, place: str, name: str, recording: Recording
) -> None:
    path = f"/apis/apps/v1/namespaces/{place}/deployments/a"
    recording.check(f"strategic: {name}", answer(server, path, STRATEGIC_PATCHES[name], STRATEGIC), place)


@pytest.mark.parametrize("name", [name for name, patch in STRATEGIC_PATCHES.items() if isinstance(patch, dict)])
def test_an_invalid_configuration_is_refused(server: Server, place: str, name: str, recording: Recording) -> None:
    path = f"/apis/apps/v1/namespaces/{place}/deployments/a"
    config = {"apiVersion": "apps/v1", "kind": "Deployment", **STRATEGIC_PATCHES[name]}
    recording.check(f"apply: {name}", answer(server, path, config, APPLY, fieldManager="m"), place)


def test_a_replacement_creates_a_role_but_no_config_map(server: Server, namespace: str) -> None:
    """Of some kinds, a PUT creates what is missing."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/a"
    assert [server.send("PUT", path, role).status for _ in range(2)] == [201, 200]
    assert "managedFields" not in server.get(path)["metadata"]  # empty rules are no field
    server.send("PUT", f"{CONFIG_MAPS.path(namespace)}/a", config_map()).refused(404, "NotFound")


@pytest.mark.parametrize("replicas", [-1, 1 << 31])
def test_replicas_of_a_custom_resource_are_those_of_its_scale(server: Server, namespace: str, replicas: int) -> None:
    obj = {**WIDGETS.obj(), "spec": {"size": 1, "replicas": replicas}}
    status = server.send("POST", WIDGETS.path(namespace), obj).refused(422, "Invalid")
    assert ".spec.replicas" in {each["field"] for each in status["details"]["causes"]}
