"""Custom kinds of several versions with different schemas and no conversion: each object is stored in one version and
served in all."""

from __future__ import annotations

from typing import Any

from tests.contract.client import APPLY, MERGE, Reply, Server
from tests.contract.definitions import GROUP, PATH, Definitions
from tests.contract.kinds import crd
from tests.definitions import ANYTHING, version
from tests.waiting import eventually

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def schema(*, status: Any = None, **fields: Any) -> dict[str, Any]:
    properties = {"spec": {"type": "object", "properties": fields}}
    return {"type": "object", "properties": {**properties, "status": status or ANYTHING}}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
FIRST = schema(a={**NUMBER, "default": 1}, first={**TEXT, "default": "one"}, b=TEXT)
SECOND = schema(a={**NUMBER, "default": 2, "maximum": 5}, second={**TEXT, "default": "two"}, c=TEXT)


class Kind:
    """A kind of two versions, of which the first is stored unless a test says otherwise."""

    def __init__(
        self, server: Server, definitions: Definitions, namespace: str, versions: list[dict[str, Any]] | None = None
    ) -> None:
        self.server, self.namespace = server, namespace
        self.name, self.plural = definitions.make(
            versions or [version("v1", FIRST), version("v2", SECOND, storage=False)]
        )

    def path(self, api: str, *names: str) -> str:
        return "/".join([f"/apis/{GROUP}/{api}/namespaces/{self.namespace}/{self.plural}", *names])

    def obj(self, api: str, name: str = "x", **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{GROUP}/{api}",
            "kind": self.plural.title(),
            "metadata": {"name": name},
            "spec": spec,
        }

    def create(self, api: str, name: str = "x", **spec: Any) -> Any:
        return self.server.create(self.path(api), self.obj(api, name, **spec))

    def apply(self, api: str, manager: str, *, force: bool = False, **spec: Any) -> Reply:
        query = {"fieldManager": manager, "force": "true" if force else None}
        return self.server.send("PATCH", self.path(api, "x"), self.obj(api, **spec), media=APPLY, **query)

    def change(self, change: Any) -> None:
        """Changes the definition."""
        definition = self.server.get(f"{PATH}/{self.name}")
        change(definition["spec"]["versions"])
        self.server.replace(f"{PATH}/{self.name}", definition)


def managers(obj: Any) -> list[tuple[str, str, str]]:
    entries = obj["metadata"].get("managedFields") or []
    return [(each["manager"], each["operation"], each["apiVersion"].rpartition("/")[2]) for each in entries]


def test_fields_that_the_asked_version_does_not_declare_are_pruned(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    kind = Kind(server, definitions, namespace)
    made = kind.create("v1", b="b")
    assert made["spec"] == {"a": 1, "first": "one", "b": "b"}
    found = server.get(kind.path("v2", "x"))
    assert (found["apiVersion"], found["spec"]) == (f"{GROUP}/v2", {"a": 1})
    assert found["metadata"] == made["metadata"]
    assert server.get(kind.path("v2"))["items"] == [found]


def test_fields_that_the_storage_version_does_not_declare_are_not_stored(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    """The defaults of the asked version are filled in where a request is decoded; those of the storage version when an
    object is read."""
    kind = Kind(server, definitions, namespace)
    assert kind.create("v2", c="c")["spec"] == {"a": 2}
    assert server.get(kind.path("v2", "x"))["spec"] == {"a": 2}
    assert server.get(kind.path("v1", "x"))["spec"] == {"a": 2, "first": "one"}
    dry = server.create(kind.path("v2"), kind.obj("v2", "dry", c="c"), dryRun="All")
    assert dry["spec"] == {"a": 2}


def test_each_version_has_its_own_warnings_validation_columns_and_subresources(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    columns = {
        name: [{"name": name.title(), "type": "string", "jsonPath": f".spec.{name}"}] for name in ("first", "second")
    }
    versions = [
        version("v1", FIRST, additionalPrinterColumns=columns["first"], subresources={"status": {}}),
        version("v2", SECOND, storage=False, additionalPrinterColumns=columns["second"]),
    ]
    kind = Kind(server, definitions, namespace, versions)
    reply = server.send("POST", kind.path("v1"), kind.obj("v1", c="c"))
    assert (reply.status, reply.warnings) == (201, ('unknown field \\"spec.c\\"',))
    refused = server.send("PATCH", kind.path("v2", "x"), {"spec": {"a": 9}}, media=MERGE).refused(422, "Invalid")
    assert refused["details"]["causes"][0]["field"] == "spec.a"
    server.merge(kind.path("v1", "x"), {"spec": {"a": 9}})
    rows = {api: server.get(kind.path(api), accept=TABLE) for api in ("v1", "v2")}
    shown = {
        api: [each["name"] for each in table["columnDefinitions"]] + table["rows"][0]["cells"]
        for api, table in rows.items()
    }
    assert shown == {"v1": ["Name", "First", "x", "one"], "v2": ["Name", "Second", "x", None]}
    assert server.send("PATCH", kind.path("v2", "x", "status"), {"status": {"a": 1}}, media=MERGE).status == 404
    server.merge(kind.path("v1", "x"), {"status": {"phase": "One"}})
    assert "status" not in server.get(kind.path("v1", "x"))
    server.merge(kind.path("v2", "x"), {"status": {"phase": "Two"}})
    assert server.get(kind.path("v1", "x"))["status"] == {"phase": "Two"}


def test_a_watch_shows_the_asked_version(server: Server, namespace: str, definitions: Definitions) -> None:
    kind = Kind(server, definitions, namespace)
    kind.create("v1", "before", b="b")
    with server.watch(kind.path("v2")) as watch:
        first = watch.next()[1]
        kind.create("v1", "after", b="b")
        second = watch.next()[1]
    for found in (first, second):
        assert (found["apiVersion"], found["spec"]) == (f"{GROUP}/v2", {"a": 1})


def test_selectors_see_the_asked_version(server: Server, namespace: str, definitions: Definitions) -> None:
    versions = [
        version("v1", FIRST, selectableFields=[{"jsonPath": ".spec.b"}]),
        version("v2", schema(a=NUMBER, b=TEXT, c=TEXT), storage=False, selectableFields=[{"jsonPath": ".spec.c"}]),
    ]
    kind = Kind(server, definitions, namespace, versions)
    kind.create("v2", b="b", c="c")
    assert server.get(kind.path("v2"), fieldSelector="spec.c=c")["items"] == []
    assert len(server.get(kind.path("v1"), fieldSelector="spec.b=b")["items"]) == 1
    assert server.send("GET", kind.path("v2"), fieldSelector="spec.b=b").status == 400
    with server.watch(kind.path("v1"), fieldSelector="spec.b=b") as watch:
        assert watch.next()[1]["metadata"]["name"] == "x"


def test_a_deprecated_version_warns_on_every_answer(server: Server, namespace: str, definitions: Definitions) -> None:
    versions = [
        version("v1", ANYTHING),
        {**version("v1beta1", ANYTHING, storage=False), "deprecated": True},
        {**version("v1alpha1", ANYTHING, storage=False), "deprecated": True, "deprecationWarning": "use something"},
        {**version("v2", ANYTHING, storage=False), "deprecated": True},
    ]
    kind = Kind(server, definitions, namespace, versions)
    name = kind.plural.title()
    warnings = {api: server.send("GET", kind.path(api)).warnings for api in ("v1", "v1beta1", "v1alpha1", "v2")}
    assert warnings == {
        "v1": (),
        "v1beta1": (f"{GROUP}/v1beta1 {name} is deprecated; use {GROUP}/v1 {name}",),
        "v1alpha1": ("use something",),
        "v2": (f"{GROUP}/v2 {name} is deprecated",),
    }
    for reply in (
        server.send("POST", kind.path("v1alpha1"), kind.obj("v1alpha1")),
        server.send("GET", kind.path("v1alpha1", "missing")),
        server.send("DELETE", kind.path("v1alpha1", "x")),
    ):
        assert reply.warnings == ("use something",)
    with server.watch(kind.path("v1alpha1")) as watch:
        assert watch.header("Warning") == '299 - "use something"'


def test_discovery_prefers_the_most_stable_and_newest_version(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    names = ["v1alpha1", "v1", "v1beta2", "zeta", "v2", "v1beta1", "v10"]
    versions = [version(name, ANYTHING, storage=name == "v1") for name in names]
    group = f"k{namespace.rpartition('-')[2]}.example.com"
    made = crd("things", "Thing", versions, group=group)
    server.create(PATH, made)
    definitions.made.append(made["metadata"]["name"])

    def discovered() -> list[str]:
        reply = server.send("GET", f"/apis/{group}")
        return [each["version"] for each in reply.body["versions"]] if reply.status == 200 else []

    eventually("all versions are discovered", lambda: len(discovered()) == len(names))
    expected = ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "zeta"]
    assert discovered() == expected
    assert server.get(f"/apis/{group}")["preferredVersion"]["version"] == "v10"
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    def in_one_document() -> list[str]:
        items = server.get("/apis", accept=aggregated)["items"]
        found = [each for each in items if each["metadata"]["name"] == group]
        return [each["version"] for each in found[0]["versions"]] if found else []

    eventually("the aggregated document has them", lambda: in_one_document() == expected)


# -- the storage version -----------------------------------------------------------------------------------------------


def test_objects_are_served_after_the_storage_version_changes(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    kind = Kind(server, definitions, namespace)
    made = kind.create("v1", b="b")

    def store_second(versions: Any) -> None:
        versions[0]["storage"], versions[1]["storage"] = False, True

    kind.change(store_second)
    stored = eventually(
        "the status names both",
        lambda: len(found := server.get(f"{PATH}/{kind.name}")["status"]["storedVersions"]) == 2 and found,
    )
    assert stored == ["v1", "v2"]
    eventually("objects are stored in v2", lambda: _stored_in_second(server, kind))
    assert server.get(kind.path("v1", "x")) == made
    assert server.get(kind.path("v2", "x"))["spec"] == {"a": 1}
    # A write of the same object stores it again, in the new version: that is how objects are migrated.
    found = server.replace(kind.path("v1", "x"), server.get(kind.path("v1", "x")))
    assert found["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    assert found["spec"] == {"a": 1}
    again = server.replace(kind.path("v2", "x"), server.get(kind.path("v2", "x")))
    assert again["spec"] == {"a": 1, "second": "two"}


def _stored_in_second(server: Server, kind: Kind) -> bool:
    """Whether a new object keeps a field that only the second version declares."""
    found = server.create(kind.path("v2"), kind.obj("v2", "", c="c") | {"metadata": {"generateName": "probe-"}})
    return "c" in found["spec"]


def test_a_stored_version_can_be_removed_once_the_status_no_longer_names_it(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    kind = Kind(server, definitions, namespace)

    def store_second(versions: Any) -> None:
        versions[0]["storage"], versions[1]["storage"] = False, True

    kind.change(store_second)
    eventually("both are stored", lambda: len(server.get(f"{PATH}/{kind.name}")["status"]["storedVersions"]) == 2)
    definition = server.get(f"{PATH}/{kind.name}")
    del definition["spec"]["versions"][0]
    refused = server.send("PUT", f"{PATH}/{kind.name}", definition).refused(422, "Invalid")
    assert refused["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must '
            "remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 "
            "from status.storedVersions",
            "field": "status.storedVersions[0]",
        }
    ]
    server.merge(f"{PATH}/{kind.name}/status", {"status": {"storedVersions": ["v2"]}})
    found = server.get(f"{PATH}/{kind.name}")
    assert found["status"]["storedVersions"] == ["v2"]
    del found["spec"]["versions"][0]
    server.replace(f"{PATH}/{kind.name}", found)
    eventually("v1 is gone", lambda: server.send("GET", kind.path("v1")).status == 404)


def test_the_watches_of_a_kind_end_when_its_definition_changes(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    kind = Kind(server, definitions, namespace)
    with server.watch(
        kind.path("v1"), resourceVersion=server.get(kind.path("v1"))["metadata"]["resourceVersion"]
    ) as watch:
        kind.change(lambda versions: versions[1].update(served=False))
        assert watch.rest() == []


# -- the managers of fields --------------------------------------------------------------------------------------------


def test_an_apply_moves_with_its_manager_from_version_to_version(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    versions = [version("v1", schema(a=NUMBER, b=TEXT)), version("v2", schema(a=NUMBER, b=TEXT), storage=False)]
    kind = Kind(server, definitions, namespace, versions)
    kind.apply("v1", "one", a=1, b="b").ok()
    found = kind.apply("v2", "one", a=1).ok()
    assert found["spec"] == {"a": 1}
    assert managers(found) == [("one", "Apply", "v2")]
    refused = kind.apply("v1", "two", a=2).refused(409, "Conflict")
    assert refused["details"]["causes"][0]["field"] == ".spec.a"
    server.merge(kind.path("v1", "x"), {"spec": {"b": "c"}}, fieldManager="three")
    assert managers(server.get(kind.path("v2", "x"))) == [("one", "Apply", "v2"), ("three", "Update", "v1")]


def test_fields_that_another_managers_version_does_not_declare_cannot_be_applied(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    versions = [
        version("v1", schema(a=NUMBER, b=TEXT)),
        version("v2", schema(a=NUMBER, c=TEXT), storage=False),
    ]
    kind = Kind(server, definitions, namespace, versions)
    kind.apply("v1", "one", a=1).ok()
    message = ".spec.c: field not declared in schema"
    refused = kind.apply("v2", "two", c="c")
    assert refused.status == 500
    assert refused.body["message"] == f"failed to convert new object: {message}"
    refused = kind.apply("v2", "one", c="c")
    assert refused.body["message"] == (
        f"failed to prune fields: failed to convert merged object to last applied version: {message}"
    )
    updated = server.merge(kind.path("v2", "x"), {"spec": {"c": "c"}})
    assert managers(updated) == []


def test_the_fields_of_a_version_that_is_no_longer_served_are_still_owned(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    same = schema(a=NUMBER, b=TEXT)
    kind = Kind(server, definitions, namespace, [version("v1", same), version("v2", same, storage=False)])
    kind.apply("v2", "one", a=1, b="b").ok()
    kind.change(lambda versions: versions[1].update(served=False))
    eventually("v2 is not served", lambda: server.send("GET", kind.path("v2")).status == 404)
    kind.apply("v1", "two", a=2).refused(409, "Conflict")
    assert kind.apply("v1", "one", a=2).ok()["spec"] == {"a": 2}


def test_nothing_can_be_applied_while_a_manager_is_of_a_version_that_is_gone(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    """An update is carried out, without managers."""
    same = schema(a=NUMBER, b=TEXT)
    kind = Kind(server, definitions, namespace, [version("v1", same), version("v1beta1", same, storage=False)])
    kind.apply("v1beta1", "one", a=1, b="b").ok()
    kind.change(lambda versions: versions.pop())
    eventually("v1beta1 is gone", lambda: server.send("GET", kind.path("v1beta1")).status == 404)
    for manager in ("one", "two"):
        refused = kind.apply("v1", manager, force=True, a=2)
        assert (refused.status, refused.body["message"]) == (
            500,
            f"request to convert CR to an invalid group/version: {GROUP}/v1beta1",
        )
    found = server.merge(kind.path("v1", "x"), {"spec": {"a": 3}})
    assert (found["spec"], managers(found)) == ({"a": 3, "b": "b"}, [])
    assert kind.apply("v1", "one", force=True, a=4).ok()["spec"] == {"a": 4, "b": "b"}


def test_a_default_that_a_managers_version_lacks_fails_its_apply_inside_of_an_atomic_list_too(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    def parts(**fields: Any) -> dict[str, Any]:
        return schema(parts={"type": "array", "items": {"type": "object", "properties": fields}})

    versions = [
        version("v1", parts(a=TEXT, b={**TEXT, "default": "b"})),
        version("v1beta1", parts(a=TEXT), storage=False),
    ]
    kind = Kind(server, definitions, namespace, versions)
    kind.apply("v1beta1", "one", parts=[{"a": "a"}]).ok()
    refused = kind.apply("v1", "one", parts=[{"a": "c"}])
    assert (refused.status, refused.body["message"]) == (500, ".spec.parts[0].b: field not declared in schema")


# -- values from before a change of the schema -------------------------------------------------------------------------


def test_values_that_an_update_leaves_as_they_are_need_not_be_valid(
    server: Server, namespace: str, definitions: Definitions
) -> None:
    part = {"type": "object", "properties": {"name": TEXT, "size": NUMBER}, "required": ["name"]}
    parts = {
        "type": "array",
        "items": part,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    plain = {"type": "array", "items": NUMBER}
    inner = {"type": "object", "properties": {"name": TEXT, "must": TEXT}}
    strict_part = {**part, "properties": {"name": TEXT, "size": {**NUMBER, "maximum": 3}}}
    strict = schema(
        a={**NUMBER, "maximum": 5},
        b={**TEXT, "enum": ["x"]},
        parts={**parts, "items": strict_part},
        plain={**plain, "items": {**NUMBER, "maximum": 3}},
        inner={**inner, "required": ["must"]},
    )
    loose = schema(a=NUMBER, b=TEXT, parts=parts, plain=plain, inner=inner)
    kind = Kind(server, definitions, namespace, [version("v1", loose), version("v2", strict, storage=False)])
    sizes = [{"name": "p", "size": 9}, {"name": "q", "size": 9}]
    kind.create("v1", a=9, b="y", parts=sizes, plain=[8, 9], inner={"name": "n"})

    def causes(spec: Any) -> list[str]:
        reply = server.send("PATCH", kind.path("v2", "x"), {"spec": spec}, media=MERGE, dryRun="All")
        return [each["field"] for each in reply.body["details"]["causes"]] if reply.status == 422 else []

    assert causes({"a": 5}) == []
    assert causes({"a": 8}) == ["spec.a"]
    assert causes({"b": "z"}) == ["spec.b"]
    assert causes({"parts": [sizes[1], sizes[0], {"name": "r"}]}) == []
    assert causes({"parts": [{"name": "p", "size": 8}, sizes[1]]}) == ["spec.parts[0].size"]
    assert causes({"plain": [8, 9, 1]}) == ["spec.plain[0]", "spec.plain[1]"]
    assert causes({"inner": {"name": "m"}}) == ["spec.inner.must"]


def test_stored_objects_are_read_by_todays_schema(server: Server, namespace: str, definitions: Definitions) -> None:
    """They are not written again: what a schema hides is there again when the field returns."""
    kind = Kind(server, definitions, namespace, [version("v1", schema(a=NUMBER, b=TEXT))])
    made = kind.create("v1", a=1, b="b")

    def of(**fields: Any) -> None:
        kind.change(lambda versions: versions[0].update(schema={"openAPIV3Schema": schema(**fields)}))

    def is_read_as(**spec: Any) -> None:
        found = eventually("it is read", lambda: (got := server.get(kind.path("v1", "x")))["spec"] == spec and got)
        assert found["metadata"] == made["metadata"]

    of(a=NUMBER)
    is_read_as(a=1)
    of(a=NUMBER, c={**TEXT, "default": "c"})
    is_read_as(a=1, c="c")
    of(a=NUMBER, b=TEXT, c={**TEXT, "default": "d"})
    is_read_as(a=1, b="b", c="d")
    assert server.get(kind.path("v1"))["items"][0]["spec"] == {"a": 1, "b": "b", "c": "d"}
