"""The built-in kinds with everything that a check or an API server needs: types, required fields, enumerations,
strategic merge patches, subresources, short names, numbers of protobuf fields.

`build_types` makes `builtin_types.json` from the documents of a real API server: the schema of each type as published,
without its prose, and each resource of its discovery. The numbers come from the sources of Kubernetes. One type or one
resource is one line, so that the diff of a new Kubernetes release is readable. The file is read on first use. The
operator does not use it: what merges need is in `ruleop.kubernetes.builtin.table`, a quarter of the size.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.kubernetes.schema import EMPTY, OpenApi, with_inner
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from ruleop.kubernetes.schema import Schema, Shape


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object: its status, its scale, the eviction of a pod."""

    name: str
    kind: Kind  # of what is sent and answered: autoscaling/v1 Scale
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServedResource(ResourceInfo):
    """A resource as discovery describes it."""

    singular: str
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    returns_deleted: bool = False  # DELETE answers with the object, not with a Status

    def subresource(self, name: str) -> Subresource | None:
        return next((each for each in self.subresources if each.name == name), None)


@dataclass(frozen=True, slots=True)
class _Types:
    resources: tuple[ServedResource, ...]
    openapi: OpenApi
    schemas: Mapping[str, Schema]
    protobuf: Mapping[str, Object]


def served_resources() -> tuple[ServedResource, ...]:
    """The resources of the built-in kinds, in the order of discovery: groups as the server lists them, and of each
    group the preferred version first."""
    return _types().resources


def typed_shape(kind: Kind) -> Shape | None:
    """A built-in kind's shape with all attributes, the same object each time. Lists, options and the kinds of
    subresources have one as well."""
    return _types().openapi.shape(kind)


def typed_schema(kind: Kind) -> Schema | None:
    """A built-in kind's OpenAPI schema without prose and with references inlined, as in the schema of a CRD; the same
    object each time."""
    return _types().openapi.schema(kind)


def type_schemas() -> Mapping[str, Schema]:
    """The OpenAPI schemas of all built-in types by name, without prose."""
    return _types().schemas


def protobuf_fields(type_name: str) -> Object:
    """The fields of a built-in type by their numbers in protobuf, which are written as text; empty if it has none.

    An asterisk before the name of a field: its value is kept even if it is empty. A mapping: fields of the same type
    that are a message of their own."""
    return _types().protobuf.get(type_name, EMPTY)


@functools.cache
def kept_empty(type_name: str) -> frozenset[str]:
    """The fields of a built-in type that Go writes even if they are empty."""
    names = (each for each in protobuf_fields(type_name).values() if isinstance(each, str))
    return frozenset(each[1:] for each in names if each.startswith("*"))


@functools.cache
def _types() -> _Types:
    written = orjson.loads(Path(__file__).with_name("builtin_types.json").read_bytes())
    schemas = written["types"]
    return _Types(
        resources=tuple(_read_resource(row) for row in written["resources"]),
        protobuf={name: schema.pop("protobuf") for name, schema in schemas.items() if "protobuf" in schema},
        openapi=OpenApi({"components": {"schemas": schemas}}),
        schemas=schemas,
    )


def _read_resource(row: Mapping[str, Any]) -> ServedResource:
    subresources = tuple(
        Subresource(each["name"], Kind.parse(each["apiVersion"], each["kind"]), tuple(each["verbs"]))
        for each in row.get("subresources", ())
    )
    return ServedResource(
        plural=row["plural"],
        namespaced=row["namespaced"],
        status_subresource=any(each.name == "status" for each in subresources),
        kind=Kind.parse(row["apiVersion"], row["kind"]),
        singular=row["singular"],
        verbs=tuple(row["verbs"]),
        short_names=tuple(row.get("shortNames", ())),
        categories=tuple(row.get("categories", ())),
        subresources=subresources,
        returns_deleted=row.get("returnsDeleted", False),
    )


def build_types(documents: Mapping[str, Object], discovery: Iterable[Object], protobuf: Mapping[str, Object]) -> bytes:
    """The file, byte for byte the same for the same API. `protobuf`: of each type, its fields by their numbers. For the
    other arguments, see `ruleop.kubernetes.builtin.table.build_table`."""
    # The documents differ in two types, DeleteOptions and WatchEvent, each of which lists the group of its document
    # beside the core group. The core document comes first, and has them without such an addition.
    types: dict[str, Schema] = {}
    for _, document in sorted(documents.items()):
        for name, schema in ((document.get("components") or {}).get("schemas") or {}).items():
            numbers = {"protobuf": protobuf[name]} if name in protobuf else {}
            types.setdefault(name, _without_prose(schema) | numbers)
    deletes = _types_returned_by_delete(documents)
    rows = [row for group_list in discovery for group in group_list["items"] for row in _resource_rows(group, deletes)]
    lines = [
        b'{"resources":[',
        b",\n".join(orjson.dumps(row) for row in rows),
        b'],"types":{',
        b",\n".join(orjson.dumps(name) + b":" + orjson.dumps(types[name]) for name in sorted(types)),
        b"}}\n",
    ]
    return b"\n".join(lines)


def _types_returned_by_delete(documents: Mapping[str, Object]) -> set[tuple[str, str]]:
    """API version and plural of the resources whose deletion answers with the object."""
    found = set()
    for document in documents.values():
        for path, item in (document.get("paths") or {}).items():
            operation = item.get("delete") or {}
            if path.endswith("/{name}") and operation.get("x-kubernetes-action") == "delete":
                kind = operation["x-kubernetes-group-version-kind"]
                content = operation["responses"]["200"]["content"]["application/json"]
                if not content["schema"]["$ref"].endswith(".Status"):
                    found.add((Kind(kind["group"], kind["version"], "").api_version, path.split("/")[-2]))
    return found


def _resource_rows(group: Object, deletes: Container[tuple[str, str]]) -> list[dict[str, Any]]:
    name = group["metadata"].get("name", "")
    rows = []
    for version in group["versions"]:
        own = Kind(name, version["version"], "").api_version
        for resource in version["resources"]:
            subresources = [
                {
                    "name": each["subresource"],
                    **_kind_row(each["responseKind"], own),
                    "verbs": each["verbs"],
                }
                for each in resource.get("subresources") or ()
            ]
            row = {
                **_kind_row(resource["responseKind"], own),
                "plural": resource["resource"],
                "singular": resource["singularResource"],
                "namespaced": resource["scope"] == "Namespaced",
                "verbs": resource["verbs"],
                "shortNames": resource.get("shortNames"),
                "categories": resource.get("categories"),
                "subresources": subresources,
                "returnsDeleted": (own, resource["resource"]) in deletes or None,
            }
            rows.append({key: value for key, value in row.items() if value not in (None, [])})
    return rows


def _kind_row(response: Object, own: str) -> dict[str, str]:
    """Discovery leaves the group and version empty where they are those of the resource."""
    kind = Kind(response["group"], response["version"], response["kind"])
    return {"apiVersion": kind.api_version if kind.version else own, "kind": kind.kind}


def _without_prose(schema: Schema) -> dict[str, Any]:
    kept = {keyword: value for keyword, value in schema.items() if keyword not in _PROSE}
    return with_inner(kept, _without_prose)


_PROSE: Final = ("description", "externalDocs", "example")
