"""Fields of values by their types: `spec.size`, `pods[0]`, `labels['app']`, and what is wrong with such a step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ruleop.authoring.checking.typing.types import (
    CONTAINERS,
    SCALARS,
    STRING,
    UNKNOWN,
    Type,
    Undefined,
    combined,
    describe,
    item_of,
    join,
    missing,
    of_node,
)
from ruleop.language.templates import Origin
from ruleop.nearest import nearest

if TYPE_CHECKING:
    from ruleop.language.rules.check_ids import Code


class LookupProblem(NamedTuple):
    """A mistake in a step, whatever the values are."""

    code: Code
    message: str


class Lookup(NamedTuple):
    type: Type
    problem: LookupProblem | None = None


def path_of(base: Type, key: object) -> str:
    """The source text of the field, as the author writes it; "" if the value has no name."""
    if not base.path:
        return ""
    if isinstance(key, str):
        return f"{base.path}.{key}" if key.isidentifier() else f"{base.path}['{key}']"
    return f"{base.path}[{key}]"


def field(base: Type, key: object) -> Lookup:
    """The field of a value. A problem is certain: it holds for every value of the type."""
    if base.is_missing:
        assert base.undefined is not None
        return Lookup(missing(replace(base.undefined, path=base.undefined.path or path_of(base, key))))
    if not base.is_known:
        path = path_of(base, key)
        return Lookup(Type(path=path, origin=base.origin, undefined=base.undefined))
    found: list[Type] = []
    problem: LookupProblem | None = None
    if "mapping" in base.kinds and isinstance(key, str):
        of_mapping = _member(base, key)
        found.append(of_mapping.type)
        problem = of_mapping.problem
    if "list" in base.kinds:
        of_list = _item(base, key)
        found.append(of_list.type)
        problem = problem or of_list.problem
    if "string" in base.kinds and (isinstance(key, int) or (isinstance(key, str) and key.isdigit())):
        found.append(STRING)
    if "other" in base.kinds:
        found.append((base.fields or {}).get(str(key), UNKNOWN))
    if not found:
        found.append(missing(Undefined("unknown", path_of(base, key))))
        what = base.path or "this value"
        problem = LookupProblem("type-mismatch", f"{what} is {describe(base.kinds)}, which has no fields{_shown(key)}")
    elif base.kinds & (SCALARS | {"null"}) and "other" not in base.kinds:
        found.append(missing(_absence(base, base.path, Undefined("optional", base.path, "it may be null"))))
    result = join(found)
    if base.undefined is not None:
        result = replace(result, undefined=combined(base.undefined, result.undefined))
    if len(base.kinds & (CONTAINERS | {"string"})) > 1:
        problem = None  # one of several kinds has the field
    return Lookup(result, problem)


def _shown(key: object) -> str:
    return f": remove .{key}" if isinstance(key, str) and key.isidentifier() else ""


def _absence(base: Type, path: str, given: Undefined) -> Undefined:
    if base.origin is Origin.LATER:
        return Undefined("later", path)
    return Undefined("live", path) if base.origin is Origin.LIVE else given


def _member(base: Type, key: str) -> Lookup:
    path = path_of(base, key)
    if base.fields is not None and key in base.fields:
        found = base.fields[key]
        return Lookup(found.maybe(Undefined("optional", path)) if base.partial else found)
    if base.node is not None:
        return _declared(base, key, path)
    if base.fields is None or base.values is not None:
        return Lookup(base.values if base.values is not None else UNKNOWN)
    if base.partial:
        return Lookup(missing(Undefined("optional", path)))
    return _unknown(base, key, path, base.fields)


def _declared(base: Type, key: str, path: str) -> Lookup:
    node = base.node
    assert node is not None
    below = node.member(key)
    if below is not None:
        found = of_node(below, path, origin=base.origin)
        if base.origin is not Origin.GIVEN or not node.is_always_set(key):
            found = found.maybe(_absence(base, path, Undefined("optional", path)))
        elif base.partial:
            found = found.maybe(base.stand_in or Undefined("optional", path))
        return Lookup(found)
    if node.values is not None:
        found = of_node(node.values, path, origin=base.origin)
        return Lookup(found.maybe(_absence(base, path, Undefined("optional", path))))
    if node.is_open:
        return Lookup(replace(UNKNOWN, origin=base.origin, path=path))
    return _unknown(base, key, path, node.names)


def _unknown(base: Type, key: str, path: str, names: object) -> Lookup:
    known = [str(name) for name in names]  # type: ignore[attr-defined]
    close = nearest(key, known)
    hint = f" (did you mean {path_of(base, close)}?)" if close and base.path else f" (did you mean {close}?)"
    if not close:
        shown = sorted(known)
        listed = ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
        hint = f" ({base.path or 'the mapping'} has {listed})" if shown else f" ({base.path or 'the mapping'} is empty)"
    where = "the schema" if base.node is not None else "the mapping"
    message = f"{path or key} is not in {where}{hint}"
    return Lookup(missing(Undefined("unknown", path or key, message)), LookupProblem("unknown-field", message))


def _item(base: Type, key: object) -> Lookup:
    item = item_of(base)
    if isinstance(key, str) and key.isdigit() and not base.named:
        key = int(key)
    if isinstance(key, int):
        if base.elements is not None and -len(base.elements) <= key < len(base.elements):
            return Lookup(base.elements[key])
        if (key if key >= 0 else -key - 1) < base.least:
            return Lookup(item)
        path = path_of(base, key)
        return Lookup(item.maybe(_absence(base, path, Undefined("optional", path, "the list may be shorter"))))
    if base.fields is not None and key in base.fields:
        return Lookup(base.fields[str(key)])
    if base.named and not (item.node is not None and str(key) in item.node.names):
        return Lookup(item.maybe(Undefined("later", path_of(base, key))))
    what = base.path or "this value"
    message = f"{what} is a list, which has no field {key}: use a loop, `map(attribute='{key}')` or `{what}[0].{key}`"
    return Lookup(missing(Undefined("unknown", path_of(base, key))), LookupProblem("type-mismatch", message))


def below(item: Type, attribute: str) -> Lookup:
    """`a.b.0` of an item, as `map` and `sort` name it."""
    problem: LookupProblem | None = None
    for part in attribute.split("."):
        found = field(item, part)
        problem = problem or found.problem
        item = found.type
    return Lookup(item, problem)


def with_field(base: Type, parts: tuple[str, ...], narrowed: Type) -> Type:
    """The type of a mapping of which the type of one field is known better."""
    if not parts or "mapping" not in base.kinds:
        return base
    inner = field(base, parts[0]).type if parts[1:] else narrowed
    member = with_field(inner.only({"mapping"}).defined(), parts[1:], narrowed) if parts[1:] else narrowed
    is_unknown = base.fields is None and base.node is None and base.values is None
    values = UNKNOWN if is_unknown else base.values  # its other fields stay unknown
    return replace(base.only({"mapping"}), fields={**(base.fields or {}), parts[0]: member}, values=values)
