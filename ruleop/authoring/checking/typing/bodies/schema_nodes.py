"""The schemas of kinds as nodes whose references are resolved when they are read.

CRDs and the documents of the built-in kinds declare the same things in different ways: a built-in quantity is a name, a
custom one a pattern. Nodes answer the questions of a check for both.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.builtin_types import type_schemas
from ruleop.kubernetes.crd import META_FIELDS
from ruleop.kubernetes.schema import OBJECT_META, OPTIONAL_FIELDS
from ruleop.language.templates.declarations import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Kind
    from ruleop.kubernetes.schema import Schema

_KINDS_OF_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"mapping"}),
    "array": frozenset({"list"}),
    "string": frozenset({"string"}),
    "integer": frozenset({"integer"}),
    "number": frozenset({"integer", "number"}),
    "boolean": frozenset({"boolean"}),
}
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_MEANINGS: Final = frozenset({"pattern", "enum", "format", "x-kubernetes-validations"})
"""The keywords that say what a text is."""
_INT_OR_STRING: Final = frozenset({"integer", "string"})


@dataclass(frozen=True, slots=True, eq=False)
class SchemaNode:
    """One node of a schema. Compared by identity: `below` returns the same node each time."""

    schema: Schema
    name: str = ""  # of a built-in type
    builtin: bool = False
    overrides: Mapping[str, SchemaNode] = field(default_factory=dict)  # properties that the server defines itself
    _properties: dict[str, SchemaNode] = field(default_factory=dict, repr=False)
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of values that the schema allows, with null where it is nullable."""
        if "kinds" not in self._cache:
            self._cache["kinds"] = self._kinds()
        found: frozenset[str] = self._cache["kinds"]
        return found

    def _kinds(self) -> frozenset[str]:
        schema = self.schema
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            kinds = _INT_OR_STRING
        elif self.is_quantity:
            kinds = frozenset({"string", "integer", "number"})
        else:
            declared = schema.get("type") or ("object" if "properties" in schema else "")
            kinds = _KINDS_OF_TYPE.get(declared, KINDS)
        return kinds | {"null"} if schema.get("nullable") else kinds

    @property
    def is_quantity(self) -> bool:
        return self.name == _QUANTITY

    @property
    def is_any_text(self) -> bool:
        """Whether the API server accepts every string here. A `maxLength` does not say what the text is."""
        return not self.builtin and self.kinds - {"null"} == {"string"} and not self.schema.keys() & _MEANINGS

    @property
    def names(self) -> Iterable[str]:
        """The declared properties."""
        return {**(self.schema.get("properties") or {}), **self.overrides}

    def member(self, name: str) -> SchemaNode | None:
        """The node of a declared property."""
        if name in self.overrides:
            return self.overrides[name]
        if self.schema.get("x-kubernetes-embedded-resource") and name in META_FIELDS:
            return self._below(name, {"x-kubernetes-preserve-unknown-fields": True})
        schema = (self.schema.get("properties") or {}).get(name)
        return self._below(name, schema) if isinstance(schema, Mapping) else None

    @property
    def is_open(self) -> bool:
        """Whether fields that are not declared are kept."""
        schema = self.schema
        if schema.get("x-kubernetes-preserve-unknown-fields") or "mapping" not in self.kinds or len(self.kinds) > 2:
            return True
        if schema.get("additionalProperties") is True:
            return True
        return self.builtin and not schema.get("properties") and "additionalProperties" not in schema

    @property
    def values(self) -> SchemaNode | None:
        """The node of undeclared members: the values of labels."""
        others = self.schema.get("additionalProperties")
        return self._below("additionalProperties", others) if isinstance(others, Mapping) else None

    @property
    def items(self) -> SchemaNode | None:
        items = self.schema.get("items")
        return self._below("items", items) if isinstance(items, Mapping) else None

    @property
    def required(self) -> frozenset[str]:
        found = set(self.schema.get("required") or ())
        for each in self.schema.get("allOf") or ():
            found |= set(each.get("required") or ())
        return frozenset(found) - OPTIONAL_FIELDS.get(self.name, frozenset())

    def is_always_set(self, name: str) -> bool:
        """Whether the API server has a value for the property whenever it has the mapping around it."""
        node = self.member(name)
        has_default = node is not None and not self.builtin and node.schema.get("default") is not None
        return has_default or name in self.required

    @property
    def least_items(self) -> int:
        return int(self.schema.get("minItems") or 0)

    @property
    def constants(self) -> tuple[Any, ...]:
        """The members of the enumeration, if there is one."""
        return tuple(self.schema.get("enum") or ())

    def _below(self, key: str, schema: Schema) -> SchemaNode:
        # A property named `items` and the items of a list need different keys; no type has both.
        if key not in self._properties:
            self._properties[key] = _resolved(schema) if self.builtin else SchemaNode(schema)
        return self._properties[key]


def _resolved(schema: Schema) -> SchemaNode:
    """The node of a schema inside a built-in type, which may refer to another one."""
    target = schema
    alternatives = schema.get("allOf")
    if isinstance(alternatives, list) and len(alternatives) == 1:
        target = alternatives[0]
    name = str(target.get("$ref") or "").rpartition("/")[2]
    if not name:
        return SchemaNode(schema, builtin=True)
    beside = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
    return SchemaNode({**_named(name).schema, **beside}, name, builtin=True) if beside else _named(name)


@functools.cache
def _named(name: str) -> SchemaNode:
    return SchemaNode(type_schemas().get(name, {}), name, builtin=True)


@functools.cache
def _builtin_names() -> Mapping[tuple[str, str, str], str]:
    return {
        (entry.get("group", ""), entry.get("version", ""), entry.get("kind", "")): name
        for name, schema in type_schemas().items()
        for entry in schema.get("x-kubernetes-group-version-kind") or ()
    }


def metadata_node() -> SchemaNode:
    return _named(OBJECT_META)


def node_of_crd(crd: CustomResourceDefinition, version: str) -> SchemaNode | None:
    """The node of a custom kind's objects; None if the CRD does not have the version, or no schema of
    it."""
    found = crd.version(version)
    if found is None or not found.schema:
        return None
    text = SchemaNode({"type": "string"})
    return SchemaNode(
        {**found.schema, "type": "object"}, overrides={"apiVersion": text, "kind": text, "metadata": metadata_node()}
    )


class KindSchemas:
    """The nodes of all kinds that a project can know: those of crds/ and the built-in ones."""

    def __init__(self, crds: Iterable[CustomResourceDefinition]) -> None:
        self._crds = {(crd.group, crd.kind): crd for crd in crds}
        self._found: dict[Kind, SchemaNode | None] = {}

    def node(self, kind: Kind) -> SchemaNode | None:
        if kind not in self._found:
            self._found[kind] = self._look_up(kind)
        return self._found[kind]

    def crd(self, kind: Kind) -> CustomResourceDefinition | None:
        return self._crds.get((kind.group, kind.kind))

    def _look_up(self, kind: Kind) -> SchemaNode | None:
        crd = self.crd(kind)
        if crd is not None:
            return node_of_crd(crd, kind.version)
        name = _builtin_names().get((kind.group, kind.version, kind.kind))
        return _named(name) if name else None
