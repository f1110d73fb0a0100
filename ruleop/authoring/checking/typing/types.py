"""The type of a value: the kinds of JSON that it can be, its fields, and whether it can be missing; and the schemas of
kinds, from which the types of objects come.

A `Type` describes a set of values. The less is known the larger the set; `UNKNOWN` is the set of all. So a finding has
to hold for every value of the set, and joining two branches can only remove findings.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ruleop.kubernetes.builtin.builtin_types import type_schemas
from ruleop.kubernetes.crd import META_FIELDS
from ruleop.kubernetes.schema import OBJECT_META, OPTIONAL_FIELDS
from ruleop.language.templates import Origin
from ruleop.language.templates.declarations import KINDS, declared_kinds
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Kind
    from ruleop.kubernetes.schema import Schema


# -- schemas of kinds --------------------------------------------------------------------------------------------------
# The schemas of kinds as nodes whose references are resolved when they are read.
#
# CRDs and the documents of the built-in kinds declare the same things in different ways: a built-in quantity is a name,
# a custom one a pattern. Nodes answer the questions of a check for both.

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


# -- types -------------------------------------------------------------------------------------------------------------

Reason: TypeAlias = Literal[
    "optional", "no-spec", "undesired", "unserved", "live", "empty", "omit", "later", "unknown", "unset"
]


@dataclass(frozen=True, slots=True)
class Undefined:
    """The reason that a value can be missing, and the name of the field: `spec.tls` for the value `spec.tls.secret`."""

    reason: Reason
    path: str = ""
    hint: str = ""  # the end of the message about it

    @property
    def waits(self) -> bool:
        """Whether using the missing value waits instead of failing."""
        return self.reason == "later"


Constant: TypeAlias = tuple[str, Any]
"""A kind and a value: True and 1 differ."""


MODULE: Final = "module"
"""The `code` of an imported file, whose fields are its macros."""
CAPTURED: Final = "captured"
"""The `code` of text of a template."""


@dataclass(frozen=True, slots=True)
class Dumped:
    """The `code` of the text of `to_yaml` and `to_json`."""

    value: Type


@dataclass(frozen=True, slots=True)
class Type:
    kinds: frozenset[str] = KINDS
    node: SchemaNode | None = None
    fields: Mapping[str, Type] | None = None  # of a mapping that a template or the rules made
    values: Type | None = None  # of the members of a mapping that are not in `fields`
    item: Type | None = None
    elements: tuple[Type, ...] | None = None  # of a row, such as a pair of `items()`
    named: bool = False  # a list of objects that are also found by name
    partial: bool = False  # any declared field may be missing: the mapping itself may be an empty stand-in
    stand_in: Undefined | None = None  # why it is missing then
    origin: Origin = Origin.GIVEN
    path: str = ""
    undefined: Undefined | None = None
    constants: frozenset[Constant] | None = None
    least: int = 0  # items that a list certainly has
    code: Any = None  # a macro, an imported module, a let

    @property
    def is_inserted(self) -> bool:
        """Whether it is text that may be inserted as entries or items: of a macro, or of `to_yaml`."""
        return self.code == CAPTURED or isinstance(self.code, Dumped)

    @property
    def is_known(self) -> bool:
        return self.kinds != KINDS

    @property
    def is_missing(self) -> bool:
        """Whether there is certainly no value."""
        return not self.kinds and self.undefined is not None

    def only(self, kinds: Iterable[str]) -> Type:
        """The values of these kinds."""
        left = self.kinds & frozenset(kinds)
        if left == self.kinds:
            return self
        constants = None if self.constants is None else frozenset(each for each in self.constants if each[0] in left)
        return replace(self, kinds=left, constants=constants)

    def without(self, kinds: Iterable[str]) -> Type:
        return self.only(self.kinds - frozenset(kinds))

    def defined(self) -> Type:
        return self if self.undefined is None else replace(self, undefined=None)

    def maybe(self, undefined: Undefined | None) -> Type:
        """The type of a value that can also be missing for this reason."""
        found = combined(self.undefined, undefined)
        return self if found is self.undefined else replace(self, undefined=found)


UNKNOWN: Final = Type()
STRING: Final = Type(frozenset({"string"}))
INTEGER: Final = Type(frozenset({"integer"}))
NUMBER: Final = Type(frozenset({"integer", "number"}))
BOOLEAN: Final = Type(frozenset({"boolean"}))
NULL: Final = Type(frozenset({"null"}))
LIST: Final = Type(frozenset({"list"}))
MAPPING: Final = Type(frozenset({"mapping"}))
OTHER: Final = Type(frozenset({"other"}))
SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})
NUMBERS: Final = frozenset({"boolean", "integer", "number"})
CONTAINERS: Final = frozenset({"mapping", "list"})


@functools.cache
@functools.cache
def declared(words: str) -> Type:
    """The type that a filter, a function or a method declares to give."""
    return join(map(_declared_kind, words.split(" or ")))


def _declared_kind(words: str) -> Type:
    kind, _, items = words.partition(" of ")
    return list_of(declared(items)) if items else Type(declared_kinds(kind))


def missing(undefined: Undefined) -> Type:
    return Type(frozenset(), undefined=undefined)


def list_of(item: Type | None, *, least: int = 0) -> Type:
    return Type(frozenset({"list"}), item=item.defined() if item is not None else None, least=least)


def row_of(*elements: Type) -> Type:
    return Type(frozenset({"list"}), elements=elements, item=join(elements), least=len(elements))


def mapping_of(fields: Mapping[str, Type], *, values: Type | None = None) -> Type:
    return Type(frozenset({"mapping"}), fields=fields, values=values)


def entry_of(key: Type, value: Type) -> Type:
    """An entry of `items()` or `dictsort`: a row with names."""
    return replace(row_of(key, value), fields={"key": key, "value": value})


def of_node(node: SchemaNode | None, path: str, *, origin: Origin = Origin.GIVEN) -> Type:
    """The type of a value that a schema declares."""
    if node is None:
        return Type(path=path, origin=origin)
    constants = node.constants
    return Type(
        node.kinds,
        node=node,
        origin=origin,
        path=path,
        least=node.least_items,
        constants=frozenset((kind_of(each), each) for each in constants)
        if constants and origin is Origin.GIVEN and all(isinstance(each, str | int | float) for each in constants)
        else None,
    )


_KIND_OF: Final = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", dict: "mapping"}


def kind_of(value: Any) -> str:
    if (kind := _KIND_OF.get(type(value))) is not None:
        return kind
    if isinstance(value, str):
        return "string"
    return "mapping" if isinstance(value, Mapping) else "list" if isinstance(value, list | tuple) else "other"


def of_constant(value: Any) -> Type:
    """The type of a literal, with its value where it is a scalar."""
    kind = kind_of(value)
    if kind in SCALARS or kind == "null":
        return Type(frozenset({kind}), constants=frozenset([(kind, value)]))
    return of_data(value)


def of_data(value: Any, path: str = "") -> Type:
    """The type of plain data of the rules. The scalars may come from the environment, so only their kinds count."""
    kind = kind_of(value)
    if value is None:
        return Type(path=path)
    if isinstance(value, Mapping):
        fields = {key: of_data(each, f"{path}.{key}" if path else key) for key, each in value.items()}
        return Type(frozenset({"mapping"}), fields=fields, path=path)
    if isinstance(value, list | tuple):
        return Type(frozenset({"list"}), item=join(map(of_data, value)) if value else None, least=len(value), path=path)
    return Type(frozenset({kind}), path=path)


def join(types: Iterable[Type]) -> Type:
    """The type of a value that is of one of the types."""
    found: Type | None = None
    for each in types:
        found = each if found is None or found is each else _joined(found, each)
    return found if found is not None else UNKNOWN


def _joined(a: Type, b: Type) -> Type:
    undefined = combined(a.undefined, b.undefined)
    if not a.kinds or not b.kinds:
        return replace(a if a.kinds else b, undefined=undefined)
    kinds = a.kinds | b.kinds
    maps = [each for each in (a, b) if "mapping" in each.kinds]
    lists = [each for each in (a, b) if "list" in each.kinds]
    node, fields, values, partial = _joined_maps(maps)
    item = _joined_items(lists)
    if node is None and lists and all(each.node is lists[0].node for each in lists) and not maps:
        node = lists[0].node
    return Type(
        kinds,
        node=node,
        fields=fields,
        values=values,
        item=item,
        elements=a.elements if a.elements == b.elements else None,
        named=any(each.named for each in lists),
        partial=partial,
        origin=a.origin if a.origin is b.origin else _later(a.origin, b.origin),
        path=_joined_path(a, b),
        undefined=undefined,
        constants=_both(a, b),
        least=min((each.least for each in (*lists, *maps)), default=0),
        code=a.code if a.code == b.code else CAPTURED if a.is_inserted or b.is_inserted else None,
    )


def _joined_path(a: Type, b: Type) -> str:
    if a.path == b.path or not b.kinds & CONTAINERS or _is_empty(b) or is_empty_list(b):
        return a.path
    return b.path if not a.kinds & CONTAINERS or _is_empty(a) or is_empty_list(a) else ""


def _joined_maps(
    maps: list[Type],
) -> tuple[SchemaNode | None, Mapping[str, Type] | None, Type | None, bool]:
    if not maps:
        return None, None, None, False
    partial = any(each.partial for each in maps)
    filled = [each for each in maps if not _is_empty(each)]
    if not filled:
        return maps[0].node, maps[0].fields, maps[0].values, partial
    first = filled[0]
    if len(filled) < len(maps):
        return first.node, first.fields, first.values, True
    if all(each.node is first.node and each.fields is first.fields and each.values is first.values for each in filled):
        return first.node, first.fields, first.values, partial
    return None, None, None, False


def _is_empty(each: Type) -> bool:
    """Whether it is the mapping `{}`."""
    return each.fields is not None and not each.fields and each.values is None and each.node is None


def _joined_items(lists: list[Type]) -> Type | None:
    items = [item_of(each) for each in lists if not (each.constants is None and is_empty_list(each))]
    return join(items) if items and len(items) == len(lists) else items[0] if items else None


def is_empty_list(each: Type) -> bool:
    return each.elements == ()


def item_of(each: Type) -> Type:
    """The type of an item of a list."""
    if each.item is not None:
        return each.item
    if each.node is not None and each.node.items is not None:
        return of_node(each.node.items, f"{each.path}[]" if each.path else "", origin=each.origin)
    return UNKNOWN


def combined(a: Undefined | None, b: Undefined | None) -> Undefined | None:
    """The reason that counts where there are two: failing rather than waiting, then the first."""
    if a is None or (b is not None and a.waits and not b.waits):
        return b
    return a


def values_of(each: Type) -> Type | None:
    """The type of the members of a mapping that are not declared; None if it has none."""
    if each.node is None:
        return each.values
    node = each.node.values
    return of_node(node, f"{each.path}[]" if each.path else "", origin=each.origin) if node is not None else None


def _later(a: Origin, b: Origin) -> Origin:
    return Origin.LATER if Origin.LATER in (a, b) else Origin.LIVE


def _both(a: Type, b: Type) -> frozenset[Constant] | None:
    if a.constants is None or b.constants is None:
        return None
    found = a.constants | b.constants
    return found if len(found) <= 64 else None


def truth_of(value: Type) -> bool | None:
    """Whether the value counts as true: None if that is not known."""
    if value.kinds == {"null"}:
        return False
    if value.constants is not None and value.constants and value.undefined is None:
        truths = {bool(each) for _, each in value.constants}
        return truths.pop() if len(truths) == 1 else None
    return None


_WORDS: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "mapping": "a mapping",
    "list": "a list",
    "other": "a function",
}
_ORDER: Final = tuple(_WORDS)


def describe(kinds: Iterable[str]) -> str:
    """The kinds in words: `an integer or a string`."""
    found = set(kinds)
    if {"integer", "number"} <= found:
        found.discard("integer")
    return " or ".join(_WORDS[kind] for kind in _ORDER if kind in found) or "nothing"


def misfit(kinds: frozenset[str], allowed: frozenset[str]) -> tuple[str, bool]:
    """The kinds that are not allowed in words: `is a list`, or `may be null` where others are allowed; "" if all are.
    And whether some are."""
    possible = bool(kinds & allowed)
    wrong = kinds - allowed
    return f"{'may be' if possible else 'is'} {describe(wrong)}" if wrong else "", possible
