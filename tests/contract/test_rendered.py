"""The children of the example projects, from their snapshots, as the server stores them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.contract.client import Server
from tests.contract.recording import Recording
from tests.contract.test_kinds import CLUSTER, OTHERS, TESTS, path_of

LIKE_OTHERS = {"console", "teams", "everything.yaml", "images.yaml"}
"""Snapshots whose objects have the fields of others."""


def children() -> dict[str, dict[str, Any]]:
    """The objects of all snapshots that are of built-in kinds, without those that several snapshots share."""
    found: dict[str, dict[str, Any]] = {}
    for root in (TESTS.parent / "examples", TESTS / "projects"):
        for path in sorted(root.glob("*/tests/snapshots/*.yaml")):
            if not LIKE_OTHERS.isdisjoint(path.parts):
                continue
            for obj in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
                if not isinstance(obj, dict) or obj.get("kind") in OTHERS or not _is_builtin(obj):
                    continue
                name = f"{path.parts[-4]}/{path.stem} {obj['kind']} {obj['metadata']['name']}"
                if obj not in found.values():
                    found[name] = obj
    return found


def _is_builtin(obj: dict[str, Any]) -> bool:
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


CHILDREN = children()


@pytest.mark.parametrize("name", CHILDREN)
def test_a_rendered_child_is_stored_with_defaults(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    obj = json.loads(json.dumps(CHILDREN[name]))
    if obj["kind"] not in CLUSTER:
        obj["metadata"]["namespace"] = namespace
    reply = server.send("POST", f"{path_of(obj, namespace)}?dryRun=All", obj)
    text = json.dumps({"code": reply.status, "body": reply.body}).replace('"kwok-volume"', '"standard"')
    recording.check(name, json.loads(re.sub(r"kube-api-access-\w{5}", "kube-api-access", text)), namespace)
