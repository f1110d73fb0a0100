"""What is refused of Services, Ingresses, policies, claims and configuration, word for word; and what is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ruleop.localcluster.objects.patches import merge_patch
from tests.contract.client import MERGE
from tests.contract.recording import refusal

if TYPE_CHECKING:
    from tests.contract.client import Reply, Server
    from tests.contract.recording import Recording

CASES = yaml.safe_load(Path(__file__).with_name("kind_errors.yaml").read_text())

ANSWERED_ANYWHERE = ("apiVersion", "kind", "metadata", "status")  # or written by controllers


def named(group: str) -> list[Any]:
    return [
        pytest.param(kind, name, id=f"{kind}: {name}") for kind, about in CASES.items() for name in about.get(group, ())
    ]


def path_of(kind: str, namespace: str) -> str:
    root, plural = CASES[kind]["path"].split()
    is_global = kind in ("ClusterRole", "ClusterRoleBinding", "IngressClass")
    return f"{root}/{plural}" if is_global else f"{root}/namespaces/{namespace}/{plural}"


def with_fields(kind: str, fields: Any) -> Any:
    root = CASES[kind]["path"].split()[0].removeprefix("/apis/").removeprefix("/api/")
    obj = {"apiVersion": root, "kind": kind, "metadata": {"name": "a"}, **CASES[kind]["valid"]}
    return merge_patch(obj, fields)


def answered(reply: Reply) -> dict[str, Any]:
    warnings = list(reply.warnings)
    if reply.status >= 400:
        return {**refusal(reply), "warnings": warnings}
    found = {name: value for name, value in reply.body.items() if name not in ANSWERED_ANYWHERE}
    return {"code": reply.status, "warnings": warnings, **found, "generation": reply.body["metadata"].get("generation")}


@pytest.mark.parametrize(("kind", "name"), named("created"))
def test_a_new_object_is_answered_as_by_a_real_server(
    server: Server, namespace: str, kind: str, name: str, recording: Recording
) -> None:
    obj = with_fields(kind, CASES[kind]["created"][name])
    dry_run = None if "namespaces" in path_of(kind, namespace) else "All"
    reply = server.send("POST", path_of(kind, namespace), obj, dryRun=dry_run)
    recording.check(f"{kind} created: {name}", answered(reply), namespace)


@pytest.mark.parametrize(("kind", "name"), named("changed"))
def test_a_changed_object_is_answered_as_by_a_real_server(
    server: Server, namespace: str, kind: str, name: str, recording: Recording
) -> None:
    root = path_of(kind, namespace)
    server.create(root, with_fields(kind, {}))
    reply = server.send("PATCH", f"{root}/a", CASES[kind]["changed"][name], media=MERGE)
    recording.check(f"{kind} changed: {name}", answered(reply), namespace)


@pytest.mark.parametrize(("kind", "name"), named("status"))
def test_a_changed_status_is_answered_as_by_a_real_server(
    server: Server, namespace: str, kind: str, name: str, recording: Recording
) -> None:
    root = path_of(kind, namespace)
    server.create(root, with_fields(kind, {}))
    reply = server.send("PATCH", f"{root}/a/status", CASES[kind]["status"][name], media=MERGE)
    recording.check(f"{kind} status: {name}", answered(reply), namespace)
