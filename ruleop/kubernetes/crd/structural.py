"""Pruning and defaulting of custom resources by their structural schema, as the API server does it on every request.

Offline commands do the same, so that templates render with the same object as in a cluster.

A port of apiextensions-apiserver (pkg/apiserver/schema: pruning, defaulting), in its order: prune unknown fields, drop
nulls that are not allowed, fill in defaults. Surprising rules:

- `type: object` without properties keeps nothing; `x-kubernetes-preserve-unknown-fields` or `additionalProperties`
  keeps fields.
- preserve-unknown-fields applies to everything below undeclared fields, but a declared property below it is pruned.
- `additionalProperties: true` keeps scalars and the keys of maps, and empties the maps below them.
- a default appears only where its parent exists: `spec.a.b: {default: 1}` does nothing without `spec.a` (or a default
  of `{}` there).

A schema here is the plain JSON of `openAPIV3Schema`. Arguments are never changed; results may share parts with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema import FieldPath, Schema

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})

_EMPTY: Schema = {}


def prune(obj: Object, schema: Schema) -> dict[str, Any]:
    """The custom resource without the fields that its schema does not declare. apiVersion, kind and metadata stay as
    they are."""
    if _is_resource_kept(obj, schema):
        return dict(obj)
    pruned: dict[str, Any] = _prune(obj, _as_resource(schema))
    return pruned


def default(obj: Object, schema: Schema) -> dict[str, Any]:
    """The custom resource, pruned or not, without the nulls that its schema does not allow and with the schema's
    defaults."""
    if _is_resource_kept(obj, schema):
        return dict(obj)
    defaulted: dict[str, Any] = _default(_drop_nulls(obj, schema), schema)
    return defaulted


def drop_unknown(value: JSON, schema: Schema) -> JSON:
    """A value from inside a custom resource (such as its status, with the schema of status) without the fields that the
    server would not keep. Writing these would be repeated on every pass."""
    return _drop_nulls(_prune(value, schema), schema)


def is_kept(value: JSON, schema: Schema | None) -> bool:
    """Whether the server keeps the value unchanged: no field would be dropped or filled in. True is certain; False
    means that `prune` and `default` have to be compared. This is ten times faster than they are, and nearly always
    true."""
    kind = type(value)
    if kind is dict:
        if schema is None or "x-kubernetes-preserve-unknown-fields" in schema:
            return False
        properties, others = schema.get("properties") or _EMPTY, schema.get("additionalProperties")
        for name, member in value.items():
            inner, within = properties.get(name, others), type(member)
            if member is None or not isinstance(inner, dict):
                return False
            if (within is dict or within is list) and not is_kept(member, inner):
                return False
        return all(name in value or "default" not in inner for name, inner in properties.items())
    if kind is list:
        items = schema.get("items") if schema is not None else None
        return all(item is not None and is_kept(item, items) for item in value)
    return value is not None


def _is_resource_kept(obj: Object, schema: Schema) -> bool:
    """Whether neither pruning nor defaulting changes a custom resource. True is certain."""
    properties: Mapping[str, Any] = schema.get("properties") or _EMPTY
    return (
        isinstance(obj, dict)
        and "x-kubernetes-preserve-unknown-fields" not in schema
        and all(
            name in META_FIELDS or (name in properties and is_kept(each, properties[name]))
            for name, each in obj.items()
        )
        and all(name in obj or "default" not in inner for name, inner in properties.items())
    )


def unknown_fields(obj: Object, schema: Schema) -> tuple[FieldPath, ...]:
    """The paths of the fields that `prune` removes. Fields below a removed field are not listed."""
    return tuple(_removed_paths(obj, prune(obj, schema), ()))


def declares(schema: Schema, path: tuple[str, ...]) -> bool:
    """Whether the server keeps a value at this path of a custom resource. A list on the path stands for its items."""
    current: Schema | None = _as_resource(schema)
    free = False
    for name in path:
        current, free = _item_schema(current, free=free)
        if current is not None and current.get("x-kubernetes-embedded-resource") and name in META_FIELDS:
            return True
        free = free or _preserves(current)
        declared, current = _property(current, name)
        if not declared and not free:
            return False
        if declared:
            free = current is not None and _preserves(current)
    return True


def schema_at(schema: Schema, path: FieldPath) -> Schema | None:
    """The schema of the value at this path; None where nothing is declared. An index stands for an item of a list, and
    may be left out."""
    current: Schema | None = schema
    for part in path:
        if isinstance(part, int):
            current = current.get("items") if current is not None else None
            continue
        current, _ = _item_schema(current, free=False)
        current = _property(current, part)[1]
    return current


def _as_resource(schema: Schema) -> Schema:
    return {**schema, "x-kubernetes-embedded-resource": True}


def _preserves(schema: Schema | None) -> bool:
    return schema is not None and schema.get("x-kubernetes-preserve-unknown-fields") is True


def _property(schema: Schema | None, name: str) -> tuple[bool, Schema | None]:
    """Whether the schema declares a field of this name, and the field's schema: that of the property, or else that of
    additionalProperties, which is None where it is `true`."""
    if schema is None:
        return False, None
    properties = schema.get("properties") or _EMPTY
    if name in properties:
        return True, properties[name]
    others = schema.get("additionalProperties")
    if others is None:
        return False, None
    return True, others if isinstance(others, Mapping) else None


def _items(schema: Schema | None) -> Schema | None:
    return schema.get("items") if schema is not None else None


def _item_schema(schema: Schema | None, *, free: bool) -> tuple[Schema | None, bool]:
    while schema is not None and "items" in schema:
        free = free or _preserves(schema)
        schema = schema["items"]
    return schema, free


def _prune(value: JSON, schema: Schema | None, *, free: bool = False) -> JSON:
    """`free`: below preserve-unknown-fields, where declared fields are pruned by their schemas, and all others kept."""
    free = free or _preserves(schema)
    if free and schema is None:
        return value
    if isinstance(value, Mapping):
        kept = {}
        resource = schema is not None and schema.get("x-kubernetes-embedded-resource")
        for name, member in value.items():
            declared, member_schema = _property(schema, name)
            if resource and name in META_FIELDS:
                kept[name] = member
            elif declared:
                kept[name] = _prune(member, member_schema)
            elif free:
                kept[name] = member
        return kept
    if isinstance(value, list):
        return [_prune(item, _items(schema), free=free) for item in value]
    return value


def _drop_nulls(value: JSON, schema: Schema | None) -> JSON:
    """The value without nulls in maps, where the field is not nullable and has no default. Nulls in lists are kept:
    removing one would move the other items."""
    if isinstance(value, Mapping):
        kept = {}
        for name, member in value.items():
            member_schema = _property(schema, name)[1]
            if member is None and _forbids_null(member_schema) and not _has_default(member_schema):
                continue
            kept[name] = _drop_nulls(member, member_schema)
        return kept
    if isinstance(value, list):
        return [_drop_nulls(item, _items(schema)) for item in value]
    return value


def _default(value: JSON, schema: Schema | None) -> JSON:
    if schema is None:
        return value
    if isinstance(value, Mapping):
        filled = dict(value)
        for name, property_schema in (schema.get("properties") or _EMPTY).items():
            missing = name not in filled or (filled[name] is None and _forbids_null(property_schema))
            if missing and _has_default(property_schema):
                filled[name] = _default_value(property_schema)
        for name, member in filled.items():
            _, member_schema = _property(schema, name)
            filled[name] = _default(_default_if_null(member, member_schema), member_schema)
        return filled
    if isinstance(value, list):
        items = _items(schema)
        return [_default(_default_if_null(item, items), items) for item in value]
    return value


def _default_if_null(value: JSON, schema: Schema | None) -> JSON:
    if value is None and schema is not None and _forbids_null(schema) and _has_default(schema):
        return _default_value(schema)
    return value


def _forbids_null(schema: Schema | None) -> bool:
    return schema is not None and schema.get("nullable") is not True


def _has_default(schema: Schema | None) -> bool:
    # A default of null counts as none, as in Go.
    return schema is not None and schema.get("default") is not None


def _default_value(schema: Schema) -> JSON:
    # The server prunes defaults when it reads the CRD.
    return _prune(schema["default"], schema)


def _removed_paths(before: JSON, after: JSON, path: FieldPath) -> Iterator[FieldPath]:
    if isinstance(before, Mapping):
        for name, member in before.items():
            if name in after:
                yield from _removed_paths(member, after[name], (*path, name))
            else:
                yield (*path, name)
    elif isinstance(before, list):
        for index, (item, kept) in enumerate(zip(before, after, strict=True)):
            yield from _removed_paths(item, kept, (*path, index))
