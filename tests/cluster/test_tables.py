"""Columns and cells of `kubectl get`, beside those of the real API server for the same objects.

The server answers a write with a Table too, also in a dry run: so each case is one request, and nothing is stored but a
few objects whose status is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ruleop.kubernetes.builtin.builtin_types import served_resources
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.tables import PRINTERS, conditions, custom_printer, printer_of
from tests.cluster.printed import COLUMNS, CUSTOM, MORE, STATUSES
from tests.cluster.server import CRDS, Client
from tests.cluster.test_at_rest import OBJECTS, path_of
from tests.definitions import ANYTHING, crd, version

pytestmark = pytest.mark.real_server("it says what the tables should be")

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def is_printed(kind: Kind) -> bool:
    """Whether the server in memory has the columns of the real one for a kind."""
    return (kind.group, kind.kind) in PRINTERS


LISTED = [each for each in served_resources() if "list" in each.verbs and is_printed(each.kind)]
NAMESPACE = "tables"


@pytest.fixture(scope="module")
def surroundings(server: Client) -> None:
    server.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name in ("default", "app"):
        server.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": name}})


@pytest.mark.parametrize("resource", LISTED, ids=lambda resource: str(resource.kind))
def test_the_columns_of_each_kind_and_the_rows_of_existing_objects_are_those_of_the_server(
    server: Client, resource: Any
) -> None:
    kind = resource.kind
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    asked = time.time()
    table = server.get(f"{root}/{resource.plural}?includeObject=Object", accept=TABLE)
    assert header(table) == [(each.name, each.type, each.format, each.priority) for each in printer_of(kind).columns]
    for row in table["rows"] or ():
        same_cells(row["cells"], lambda now, row=row: printer_of(kind).cells(row["object"], now), asked)


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize(
    "obj",
    [each for each in (*OBJECTS, *MORE) if is_printed(Kind.of(each))],
    ids=lambda obj: f"{obj['apiVersion']} {obj['kind']}",
)
def test_the_rows_of_new_objects_are_those_of_the_server(server: Client, obj: dict[str, Any]) -> None:
    kind = Kind.of(obj)
    asked = time.time()
    table = server.send("POST", f"{path(kind)}?dryRun=All&includeObject=Object", renamed(obj), accept=TABLE)
    (row,) = table["rows"]
    same_cells(row["cells"], lambda now: printer_of(kind).cells(row["object"], now), asked)


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize("kind", STATUSES, ids=str)
def test_the_rows_of_objects_with_a_status_are_those_of_the_server(server: Client, kind: Kind) -> None:
    for number, (obj, statuses) in enumerate(STATUSES[kind]):
        name = f"{obj['metadata']['name']}-{number}"
        named = {**obj, "metadata": {**obj["metadata"], "name": name}}
        stored = server.post(path(kind), {"apiVersion": kind.api_version, "kind": kind.kind, **named})
        for status in statuses:
            asked = time.time()
            table = server.send(
                "PUT",
                f"{path(kind)}/{name}/status?dryRun=All&includeObject=Object",
                {**stored, "status": status},
                accept=TABLE,
            )
            (row,) = table["rows"]
            same_cells(row["cells"], lambda now, row=row: printer_of(kind).cells(row["object"], now), asked)
            assert conditions(kind, row["object"]) == [
                {key: value for key, value in each.items() if value is not None} for each in row.get("conditions") or ()
            ]
        server.delete(f"{path(kind)}/{name}?gracePeriodSeconds=0")


@pytest.mark.parametrize("declared", [COLUMNS, []], ids=["columns", "no columns"])
def test_columns_and_rows_of_custom_kinds_are_those_of_the_server(
    server: Client, declared: list[dict[str, Any]]
) -> None:
    group = "columns.example.com" if declared else "plain.example.com"
    definition = crd("Printable", group, version("v1", ANYTHING, additionalPrinterColumns=declared))
    path = server.define(definition)
    try:
        wanted = parse_crd(definition).versions[0].printer_columns
        for body in CUSTOM:
            obj = {"apiVersion": f"{group}/v1", "kind": "Printable", **body}
            asked = time.time()
            table = server.send("POST", f"{path}?dryRun=All&includeObject=Object", obj, accept=TABLE)
            assert header(table) == [
                (each.name, each.type, each.format, each.priority) for each in custom_printer(wanted).columns
            ]
            descriptions = [each["description"] for each in table["columnDefinitions"][1:]]
            assert not declared or descriptions == [each.description for each in custom_printer(wanted).columns[1:]]
            (row,) = table["rows"]
            same_cells(row["cells"], lambda now, row=row: custom_printer(wanted).cells(row["object"], now), asked)
    finally:
        server.delete(f"{CRDS}/printables.{group}")


def path(kind: Kind) -> str:
    return path_of(kind).replace("/namespaces/default/", f"/namespaces/{NAMESPACE}/")


def renamed(obj: dict[str, Any]) -> dict[str, Any]:
    """Under a name that no other test uses; the name of a CRD is fixed."""
    name = obj["metadata"].get("name")
    if name is not None and obj["kind"] != "CustomResourceDefinition":
        name = name.replace("rich", "printed")
    return {**obj, "metadata": {**obj["metadata"], "name": name}}


def header(table: dict[str, Any]) -> list[tuple[str, str, str, int]]:
    return [(each["name"], each["type"], each["format"], each["priority"]) for each in table["columnDefinitions"]]


def same_cells(real: list[Any], made: Callable[[float], list[Any]], asked: float) -> None:
    """The cells are equal at a time between the request and now: ages change every second."""
    tried = [asked + quarters / 4 for quarters in range(-4, int(4 * (time.time() - asked)) + 8)]
    if real not in [made(now) for now in tried]:
        assert made(asked) == real
