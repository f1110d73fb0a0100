"""The names and shapes of Kubernetes' built-in kinds, packaged with ruleop.

`build_table` makes `builtin.json` from the documents of a real API server. It has one kind or one shape per line, so
that the diff of a new Kubernetes release is readable.

Equal shapes are stored once. Shapes may contain themselves, so equality is computed as in the minimisation of automata:
start with classes by the attributes of a node, and split them by the classes of the children until no class splits.
Every group version publishes its own copy of PodSpec and ObjectMeta; all copies are in one class.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kubernetes.kinds import GroupKind, Kind, Object
from ruleop.kubernetes.schema import UNKNOWN, OpenApi, Shape, Unique
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MERGE_ATTRIBUTES = (
    "type", "preserve_unknown", "atomic", "retain_keys", "defaults", "derived", "drops_empty", "list_type", "keys",
    "key_defaults", "unique", "scalar", "format",
)  # fmt: skip
"""The attributes of a shape that merges depend on. The others are in `ruleop.kubernetes.builtin.builtin_types`."""


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """A kind's resource, as the API serves it."""

    plural: str
    namespaced: bool
    status_subresource: bool
    kind: Kind

    @property
    def title(self) -> str:
        """The resource as kubectl writes it: `deployments.apps`."""
        return f"{self.plural}.{self.kind.group}" if self.kind.group else self.plural


def builtin_kinds() -> tuple[Kind, ...]:
    """All built-in kinds; by group, and within a group the server's preferred version first."""
    return tuple(_table().resources)


def builtin_resource(kind: Kind | GroupKind) -> ResourceInfo | None:
    """The resource of a built-in kind; for a kind without version, in the version that the server prefers."""
    if isinstance(kind, Kind):
        return _table().resources.get(kind)
    return _table().preferred.get(kind)


def builtin_shape(kind: Kind) -> Shape | None:
    """A built-in kind's shape, the same object each time; None for kinds that are not built in."""
    return _table().shapes.get(kind)


def builtin_release() -> str:
    """The Kubernetes release of the table, such as 1.36. For messages: an unknown kind may be newer."""
    return _table().release


def object_meta() -> Shape:
    """The shape of `metadata`, which is the same for every kind."""
    return _table().shapes[Kind("", "v1", "ConfigMap")].fields["metadata"]


@dataclass(frozen=True, slots=True)
class _Table:
    release: str
    resources: Mapping[Kind, ResourceInfo]
    preferred: Mapping[GroupKind, ResourceInfo]
    shapes: Mapping[Kind, Shape]


@functools.cache
def _table() -> _Table:
    return read_table(Path(__file__).with_name("builtin.json").read_bytes())


def read_table(data: bytes) -> _Table:
    """The inverse of `build_table`."""
    written = orjson.loads(data)
    nodes: list[dict[str, Any]] = written["shapes"]
    # Two passes, because a shape may refer to a later one, or to itself.
    shapes = [Shape() for _ in nodes]
    for shape, node in zip(shapes, nodes, strict=True):
        for attribute, value in node.items():
            if attribute == "fields":
                shape.fields = {name: shapes[number] for name, number in value.items()}
            elif attribute in ("values", "items"):
                setattr(shape, attribute, shapes[value])
            elif attribute == "unique":
                shape.unique = tuple(
                    Unique(each["field"], tuple(each["within"]), tuple(each["sharing"]), each["required"])
                    for each in value
                )
            else:
                setattr(shape, attribute, tuple(value) if attribute == "keys" else value)
    resources: dict[Kind, ResourceInfo] = {}
    preferred: dict[GroupKind, ResourceInfo] = {}
    kind_shapes: dict[Kind, Shape] = {}
    for row in written["kinds"]:
        kind = Kind.parse(row["apiVersion"], row["kind"])
        resources[kind] = ResourceInfo(row["plural"], row["namespaced"], row["status"], kind)
        preferred.setdefault(kind.versionless, resources[kind])
        kind_shapes[kind] = shapes[row["shape"]]
    return _Table(written["kubernetes"], resources, preferred, kind_shapes)


def build_table(documents: Mapping[str, Object], discovery: Iterable[Object]) -> bytes:
    """The table, byte for byte the same for the same API.

    `documents` are the server's OpenAPI v3 documents by their path below /openapi/v3 (api/v1, apis/apps/v1);
    `discovery` are the APIGroupDiscoveryLists of /api and /apis. The kinds are those that discovery serves as
    resources: no lists, no options.
    """
    readers = {path: OpenApi(document) for path, document in documents.items()}
    release = next(iter(documents.values()))["info"]["version"]
    rows: list[tuple[ResourceInfo, Shape]] = []
    for resource in _served_resources(discovery):
        kind = resource.kind
        reader = readers.get(f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}")
        rows.append((resource, (reader.shape(kind) if reader else None) or UNKNOWN))
    nodes, numbers = minimised_nodes([shape for _, shape in rows])
    kinds = [
        {
            "apiVersion": resource.kind.api_version,
            "kind": resource.kind.kind,
            "plural": resource.plural,
            "namespaced": resource.namespaced,
            "status": resource.status_subresource,
            "shape": number,
        }
        for (resource, _), number in zip(rows, numbers, strict=True)
    ]
    lines = [
        b'{"kubernetes":' + orjson.dumps(release) + b',"kinds":[',
        b",\n".join(orjson.dumps(row) for row in kinds),
        b'],"shapes":[',
        b",\n".join(orjson.dumps(node) for node in nodes),
        b"]}\n",
    ]
    return b"\n".join(lines)


def _served_resources(discovery: Iterable[Object]) -> list[ResourceInfo]:
    found: list[tuple[str, int, str, ResourceInfo]] = []
    for group_list in discovery:
        for group in group_list["items"]:
            name = group["metadata"].get("name", "")
            for preference, version in enumerate(group["versions"]):
                for resource in version["resources"]:
                    kind = Kind(name, version["version"], resource["responseKind"]["kind"])
                    status = any(
                        subresource["subresource"] == "status" for subresource in resource.get("subresources") or ()
                    )
                    info = ResourceInfo(resource["resource"], resource["scope"] == "Namespaced", status, kind)
                    found.append((name, preference, kind.kind, info))
    return [info for *_, info in sorted(found, key=lambda entry: entry[:3])]


def _children(shape: Shape) -> Iterator[tuple[str, Shape]]:
    yield from sorted(shape.fields.items())
    if shape.values is not None:
        yield "additionalProperties", shape.values
    if shape.items is not None:
        yield "items", shape.items


def _attributes(shape: Shape) -> dict[str, Any]:
    """The attributes of a shape itself that differ from the defaults."""
    plain = {name: getattr(shape, name) for name in MERGE_ATTRIBUTES}
    return {name: value for name, value in plain.items() if value != getattr(UNKNOWN, name)}


def minimised_nodes(roots: list[Shape]) -> tuple[list[dict[str, Any]], list[int]]:
    """One node per class of equal shapes, numbered in the order of a walk from the roots, and the number of each
    root."""
    visited: dict[int, Shape] = {}
    stack = list(reversed(roots))
    while stack:
        shape = stack.pop()
        if id(shape) not in visited:
            visited[id(shape)] = shape
            stack.extend(child for _, child in reversed(list(_children(shape))))

    # Values, items and fields cannot be confused: the signature includes which of them a shape has.
    signature: dict[int, Any] = {
        key: (
            orjson.dumps(_attributes(shape)),
            shape.values is not None,
            shape.items is not None,
            tuple(sorted(shape.fields)),
        )
        for key, shape in visited.items()
    }
    classes, count = _class_numbers(signature), 0
    while count != (count := len(set(classes.values()))):
        classes = _class_numbers(
            {
                key: (classes[key], tuple((name, classes[id(child)]) for name, child in _children(shape)))
                for key, shape in visited.items()
            }
        )

    nodes: list[dict[str, Any]] = []
    for key, shape in visited.items():
        if classes[key] == len(nodes):
            node = _attributes(shape)
            if shape.fields:
                node["fields"] = {name: classes[id(child)] for name, child in sorted(shape.fields.items())}
            for attribute in ("values", "items"):
                child = getattr(shape, attribute)
                if child is not None:
                    node[attribute] = classes[id(child)]
            nodes.append(node)
    return nodes, [classes[id(root)] for root in roots]


def _class_numbers(signatures: Mapping[int, Any]) -> dict[int, int]:
    numbers: dict[Any, int] = {}
    return {key: numbers.setdefault(signature, len(numbers)) for key, signature in signatures.items()}
