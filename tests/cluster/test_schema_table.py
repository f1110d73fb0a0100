"""The shapes of kinds that ruleop ships and computes are those that a real API server publishes."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import Any

import orjson
import pytest

from ruleop.kubernetes.builtin.builtin_types import build_types
from ruleop.kubernetes.builtin.table import MERGE_ATTRIBUTES, build_table
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import OpenApi, Shape
from tests.cluster import everything
from tests.cluster.server import CRDS, DISCOVERY, Client
from tests.controlplane.protobuf_fields import read_protobuf

pytestmark = pytest.mark.real_server("it says what the packaged types should be")


def test_the_packaged_tables_equal_the_servers_schemas(server: Client, tmp_path: Path) -> None:
    """Kubernetes' own kinds, as the package has them, against discovery and OpenAPI documents of the release that the
    tests are pinned to."""
    custom = {crd["spec"]["group"] for crd in server.get(CRDS)["items"]}
    index = server.get("/openapi/v3")["paths"]
    served = {path: entry["serverRelativeURL"] for path, entry in index.items() if _group(path) not in custom}
    documents = {path: server.get(served[path]) for path in sorted(served)}
    discovery = {name: server.get(f"/{name}", accept=DISCOVERY) for name in ("api", "apis")}
    for groups in discovery.values():
        groups["items"] = [group for group in groups["items"] if group["metadata"].get("name") not in custom]

    dump = documents, list(discovery.values())
    now = {"builtin.json": build_table(*dump), "builtin_types.json": build_types(*dump, read_protobuf())}
    packaged = {
        name: importlib.resources.files("ruleop.kubernetes.builtin").joinpath(name).read_bytes() for name in now
    }
    if now == packaged:
        return
    answers = {
        "index": {"paths": served},
        **{f"discovery-{name}": groups for name, groups in discovery.items()},
        **documents,
    }
    for name, answer in answers.items():
        (tmp_path / f"{name.replace('/', '__')}.json").write_bytes(orjson.dumps(answer))
    before, after = ({line for data in each.values() for line in data.splitlines()} for each in (packaged, now))
    raise AssertionError(
        f"{' and '.join(now)} in ruleop/kubernetes/builtin are not what Kubernetes {orjson.loads(now['builtin.json'])['kubernetes']} serves: "
        f"{len(after - before)} lines are new and {len(before - after)} are gone. Make them anew from the server's answers, and read the diff:\n"
        f"    python -m tests.kubernetes.builtin.generate_builtin {tmp_path}"
    )


def test_the_shape_of_a_crd_equals_the_published_schema(server: Client) -> None:
    """Offline we read the CRD, in a cluster the document that the server makes of it; a merge must not depend on
    which."""
    path = server.define(renamed("shapes.example.com"))
    served = OpenApi(server.get("/openapi/v3/apis/shapes.example.com/v1")).shape(
        Kind("shapes.example.com", "v1", everything.KIND)
    )
    ours = parse_crd(everything.CRD).shape(everything.VERSION)
    assert path
    assert served is not None
    assert ours is not None
    assert list(_differences(ours, served, "")) == []


def renamed(group: str) -> dict[str, Any]:
    """The same kind in another group, to be there once however the tests are ordered."""
    return {
        **everything.CRD,
        "metadata": {"name": f"{everything.PLURAL}.{group}"},
        "spec": {**everything.CRD["spec"], "group": group},
    }


def _group(path: str) -> str:
    return path.split("/")[1] if "/" in path else ""


def _differences(ours: Shape | None, theirs: Shape | None, path: str) -> list[str]:
    if ours is None or theirs is None:
        return [] if ours is theirs else [f"{path}: {ours} here, {theirs} there"]
    found = []
    for attribute in (*MERGE_ATTRIBUTES, "values", "items", "fields"):
        mine, served = getattr(ours, attribute), getattr(theirs, attribute)
        if attribute in ("values", "items"):
            found += _differences(mine, served, f"{path}[]")
        elif attribute == "fields":
            for name in sorted({*mine, *served}):
                found += _differences(mine.get(name), served.get(name), f"{path}.{name}")
        elif mine != served:
            found.append(f"{path}: {attribute} is {mine!r} here, {served!r} there")
    return found
