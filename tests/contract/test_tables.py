"""Objects as tables, which is what `kubectl get` asks for."""

from __future__ import annotations

from typing import Any

from tests.contract.client import Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, config_map
from tests.contract.recording import Recording

TABLE, EARLIER = (f"application/json;as=Table;v={version};g=meta.k8s.io" for version in ("v1", "v1beta1"))


def cells(table: Any) -> Any:
    """The table without ages and descriptions."""
    ages = {number for number, each in enumerate(table["columnDefinitions"]) if each["name"] == "Age"}
    rows = [[cell for number, cell in enumerate(row["cells"]) if number not in ages] for row in table["rows"]]
    return {
        "columns": [
            [each["name"], each["type"], each["format"], each["priority"]] for each in table["columnDefinitions"]
        ],
        "rows": rows,
        "kind": table["kind"],
        "apiVersion": table["apiVersion"],
        "objects": [sorted(row.get("object") or {}) for row in table["rows"]],
    }


def test_a_list_can_be_read_as_a_table(server: Server, namespace: str, recording: Recording) -> None:
    server.create(CONFIG_MAPS.path(namespace), {**config_map(), "data": {"x": "1"}})
    server.create(WIDGETS.path(namespace), WIDGETS.obj())
    for name, path in (("ConfigMaps", CONFIG_MAPS.path(namespace)), ("Widgets", WIDGETS.path(namespace))):
        query = {"fieldSelector": "metadata.name=a"}
        recording.check(name, cells(server.get(path, accept=TABLE, **query)), namespace)
        for include in ("None", "Object"):
            found = server.get(path, accept=TABLE, includeObject=include, **query)
            recording.check(f"{name} with {include}", cells(found), namespace)


def test_an_object_can_be_read_as_a_table(server: Server, namespace: str, recording: Recording) -> None:
    server.create(WIDGETS.path(namespace), WIDGETS.obj())
    found = server.get(WIDGETS.path(namespace, "a"), accept=TABLE)
    recording.check("one Widget", cells(found), namespace)


def test_watch_events_can_be_tables(server: Server, namespace: str) -> None:
    server.create(WIDGETS.path(namespace), WIDGETS.obj())
    with server.watch(WIDGETS.path(namespace), accept=TABLE) as watch:
        type_, first = watch.next()
        assert (type_, first["kind"], first["rows"][0]["cells"][:3]) == ("ADDED", "Table", ["a", 3, "red"])
        assert [each["name"] for each in first["columnDefinitions"]] == ["Name", "Size", "Colour", "Age"]
        server.merge(WIDGETS.path(namespace, "a"), {"spec": {"size": 4}})
        type_, second = watch.next()
        assert (type_, second["rows"][0]["cells"][:3]) == ("MODIFIED", ["a", 4, "red"])
        assert second["columnDefinitions"] is None


def test_tables_and_metadata_are_of_the_version_that_was_asked_for(server: Server, namespace: str) -> None:
    version = "meta.k8s.io/v1beta1"
    for sample in (CONFIG_MAPS, WIDGETS):
        server.create(sample.path(namespace), sample.obj() if sample.spec else config_map())
        for path in (sample.path(namespace), sample.path(namespace, "a")):
            found = server.get(path, accept=EARLIER)
            assert (found["kind"], found["apiVersion"]) == ("Table", version)
            assert {each["object"]["apiVersion"] for each in found["rows"]} == {version}
        metadata = EARLIER.replace("Table", "PartialObjectMetadata")
        assert server.get(sample.path(namespace, "a"), accept=metadata)["apiVersion"] == version
        found = server.get(sample.path(namespace), accept=EARLIER.replace("Table", "PartialObjectMetadataList"))
        assert {found["apiVersion"], found["items"][0]["apiVersion"]} == {version}
        with server.watch(sample.path(namespace), accept=EARLIER) as watch:
            _, first = watch.next()
            assert {first["apiVersion"], first["rows"][0]["object"]["apiVersion"]} == {version}
    unknown = server.send("GET", CONFIG_MAPS.path(namespace), accept=EARLIER.replace("v1beta1", "v2"))
    unknown.refused(406, "NotAcceptable")
