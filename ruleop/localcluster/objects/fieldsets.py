"""Sets of fields, as in `metadata.managedFields`, and their algebra.

A set is the JSON of `fieldsV1` itself, so that an entry of managedFields is a set without any conversion:

    {"f:spec": {"f:replicas": {}, "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}}}

A member without members below it is `{}`; a member with some has the key `"."`. The root is not a member itself, and
`{}` there is the empty set. Sets are frozen: operations share parts of their arguments.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.errors import RuleopError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import Shape

FieldSet: TypeAlias = dict[str, Any]
FieldPath: TypeAlias = tuple[str, ...]
"""Path elements as they are written in `fieldsV1`: `("f:spec", "f:replicas")`."""

LEAF: Final[FieldSet] = {}
EMPTY: Final[FieldSet] = {}
SELF: Final = "."


class InvalidFieldsError(RuleopError):
    """A `fieldsV1` that cannot be read, or a list whose items cannot be identified."""


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """The fields in either set."""
    if not b or a is b:
        return a
    return _union_members(a, b) if a else b


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """The fields of `a` that are not in `b`. Fields below a member of `b` stay."""
    return _difference_members(a, b) if b else a


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """The fields in both sets."""
    found = {}
    for element in a.keys() & b.keys():
        if element != SELF:
            both = _intersection(a[element], b[element])
            if both is not None:
                found[element] = both
    return found


def without(a: FieldSet, b: FieldSet) -> FieldSet:
    """The fields of `a` that are neither in `b` nor below a field of `b`."""
    kept = {}
    for element, node in a.items():
        other = b.get(element)
        if other is None:
            kept[element] = node
        elif not _is_member(other):
            inner = without(node, other) if node else node
            if inner or not node:
                kept[element] = _lean(inner)
    return kept


def contains(fields: FieldSet, path: FieldPath) -> bool:
    for element in path:
        node = fields.get(element)
        if node is None:
            return False
        fields = node
    return _is_member(fields)


def paths(fields: FieldSet) -> Iterator[FieldPath]:
    """All members: at each level, the members first, then those below them."""
    elements = sorted(element for element in fields if element != SELF)
    yield from ((element,) for element in elements if _is_member(fields[element]))
    for element in elements:
        yield from ((element, *path) for path in paths(fields[element]))


def path_text(path: FieldPath) -> str:
    """A path as the server writes it: `.spec.template.spec.containers[name="a"].image`."""
    return "".join(map(element_text, path))


@lru_cache(maxsize=4096)
def element_text(element: str) -> str:
    kind, rest = element[0], element[2:]
    if kind == "f":
        return f".{rest}"
    value = json.loads(rest)
    if kind == "k":
        return "[" + ",".join(f"{name}={_value_text(value[name])}" for name in sorted(value)) + "]"
    return f"[={_value_text(value)}]" if kind == "v" else f"[{rest}]"


def check_fields(data: JSON) -> None:
    """Raises InvalidFieldsError for a client's `fieldsV1` that is not a set."""
    if not isinstance(data, dict):
        raise InvalidFieldsError("fieldsV1 is not an object")
    for key, inner in data.items():
        if key == SELF:
            continue
        if key[:2] not in ("f:", "k:", "v:", "i:"):
            raise InvalidFieldsError(f"not a path element: {key}")
        try:
            is_element = key[0] == "f" or isinstance(json.loads(key[2:]), dict) is (key[0] == "k")
        except ValueError:
            is_element = False
        if not is_element:
            raise InvalidFieldsError(f"not a path element: {key}")
        check_fields(inner)


def named_members(fields: FieldSet, shape: Shape | None) -> FieldSet:
    """The set with all declared fields on the way to its members. They are usually left out: who owns `spec.replicas`
    does not own `spec`."""
    if not fields:
        return fields
    named = {}
    for element, node in fields.items():
        if not node:
            named[element] = node
            continue
        inner = named_members(node, child_shape(shape, element))
        if SELF not in inner and shape is not None and element[0] == "f" and element[2:] in shape.fields:
            inner = {SELF: LEAF, **inner}
        named[element] = inner
    return named


def child_shape(shape: Shape | None, element: str) -> Shape | None:
    """The shape of what a path element leads to."""
    if shape is None:
        return None
    if element[0] == "f":
        return shape.fields.get(element[2:], shape.values)
    return shape.items


def item_element(item: JSON, shape: Shape) -> str:
    """The path element of an item of a granular list. A missing key counts as its default; a key without one is left
    out, which is another item. Raises InvalidFieldsError."""
    keys = shape.keys
    if not keys:
        return _member_element(item)
    if type(item) is not dict:
        problem = "a null element" if item is None else "non-map elements"
        raise InvalidFieldsError(f"associative list with keys may not have {problem}")
    if len(keys) == 1:
        value = item.get(keys[0])
        if type(value) is str:
            return _text_key(keys[0], value)
    defaults = shape.key_defaults
    names, values = [], []
    for name in keys:
        value = item[name] if name in item else defaults.get(name, _zero_key(name, shape))
        if value is not None or name in item:
            names.append(name)
            values.append(value)
    if not names:
        listed = " ".join(f'"{name}"' for name in keys)
        raise InvalidFieldsError(
            f"associative list with keys has an element that omits all key fields [{listed}]"
            " (and doesn't have default values for any key fields)"
        )
    return _key_element(tuple(names), tuple(values))


_OF_OWNERS: Final = ("uid",)
"""The shape of the metadata of custom resources does not say what is required."""


def _zero_key(name: str, shape: Shape) -> JSON:
    """The value of a missing key of a built-in type, which has no fields that are missing."""
    items = shape.items
    if not shape.drops_empty or items is None:
        return None
    if shape.keys == _OF_OWNERS:
        return ""
    if name not in items.required:
        return None
    return 0 if items.fields[name].scalar == "integer" else ""


def _member_element(item: JSON) -> str:
    kind = type(item)
    if kind is dict:
        raise InvalidFieldsError("associative list without keys has an element that's a map type")
    if kind is list:
        raise InvalidFieldsError("not supported: associative list with lists as elements")
    if item is None:
        raise InvalidFieldsError("associative list without keys has an element that's an explicit null")
    return "v:" + _json_text(item)


def _key_element(names: tuple[str, ...], values: tuple[JSON, ...]) -> str:
    try:
        return _written_key(names, values, tuple(map(type, values)))
    except TypeError:  # a key that is a map or a list cannot be cached
        return "k:" + _json_text(dict(sorted(zip(names, values, strict=True))))


@lru_cache(maxsize=8192)
def _text_key(name: str, value: str) -> str:
    return "k:" + _json_text({name: value})


@lru_cache(maxsize=8192)
def _written_key(names: tuple[str, ...], values: tuple[JSON, ...], _types: tuple[type, ...]) -> str:
    # The types are part of the cache's key, because 1 and True are equal in Python.
    return "k:" + _json_text(dict(sorted(zip(names, values, strict=True))))


_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def _json_text(value: JSON) -> str:
    """JSON as Go writes it, where whole floats are integers and HTML is escaped."""
    if type(value) is float and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_HTML)


def _value_text(value: JSON) -> str:
    if isinstance(value, dict):
        return "".join(f"{name}={_value_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return f"[{','.join(map(_value_text, value))}]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_member(node: FieldSet) -> bool:
    return not node or SELF in node


def _union(a: FieldSet, b: FieldSet) -> FieldSet:
    """Two nodes of the same field; an empty one is a member without members below it."""
    if a is b or not b:
        return a if _is_member(a) else {SELF: LEAF, **a}
    if not a:
        return b if SELF in b else {SELF: LEAF, **b}
    return _union_members(a, b)


def _union_members(a: FieldSet, b: FieldSet) -> FieldSet:
    joined = dict(a)
    for element, node in b.items():
        other = joined.get(element)
        joined[element] = node if other is None else _union(other, node)
    return joined


def _difference_members(a: FieldSet, b: FieldSet) -> FieldSet:
    common = a.keys() & b.keys()
    if not common:
        return a
    kept = dict(a)
    for element in common:
        inner = None if element == SELF else _difference(a[element], b[element])
        if inner is None:
            del kept[element]
        else:
            kept[element] = inner
    return kept


def _difference(a: FieldSet, b: FieldSet) -> FieldSet | None:
    if not a:
        return None if _is_member(b) else a
    if not b:  # only the member itself goes
        kept = {element: node for element, node in a.items() if element != SELF}
    else:
        kept = _difference_members(a, b)
    return _lean(kept) if kept else None


def _lean(node: FieldSet) -> FieldSet:
    return LEAF if len(node) == 1 and SELF in node else node


def _intersection(a: FieldSet, b: FieldSet) -> FieldSet | None:
    member = _is_member(a) and _is_member(b)
    both = intersection(a, b)
    if both:
        return {SELF: LEAF, **both} if member else both
    return LEAF if member else None
