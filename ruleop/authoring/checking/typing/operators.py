"""Types of fields and operators, by the types of their operands: `spec.size`, `pods[0]`, `a + b`, and what is wrong
with such a step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.authoring.checking.typing.types import (
    CONTAINERS,
    LIST,
    NUMBERS,
    SCALARS,
    STRING,
    UNKNOWN,
    Type,
    Undefined,
    combined,
    describe,
    item_of,
    join,
    list_of,
    missing,
    of_node,
)
from ruleop.language.templates import Origin
from ruleop.nearest import did_you_mean, nearest

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


# -- operators ---------------------------------------------------------------------------------------------------------
# Operators by the kinds of their operands, as `ruleop.language.templates.values.operators` computes them.


class OperationType(NamedTuple):
    type: Type
    problem: LookupProblem | None = None
    is_possible: bool = False  # it works for some values
    truth: bool | None = None  # of a comparison, if it is the same for all values


def _result(operator: str, left: str, right: str) -> str | None:
    """The kind of the result for operands of two kinds; None if that fails."""
    numeric = left in NUMBERS and right in NUMBERS
    if operator == "%" and left == "string":
        return "string"
    if operator == "+" and left == right and left in {"string", "list"}:
        return left
    if operator == "*" and {left, right} & {"string", "list"} and {left, right} & {"integer", "boolean"}:
        return left if left in {"string", "list"} else right
    if not numeric:
        return None
    return "number" if operator in {"/", "**"} or "number" in (left, right) else "integer"


def arithmetic(operator: str, left: Type, right: Type) -> OperationType:
    if not left.is_known or not right.is_known or "other" in left.kinds | right.kinds:
        return OperationType(UNKNOWN)
    pairs = [(a, b) for a in left.kinds for b in right.kinds]
    results = {pair: _result(operator, *pair) for pair in pairs}
    kinds = frozenset(result for result in results.values() if result is not None)
    if kinds == {"list"}:
        result = list_of(join((item_of(left), item_of(right))), least=max(left.least, right.least))
    elif kinds == {"string"}:
        result = STRING
    else:
        result = Type(kinds | {"integer", "number"} if "number" in kinds else kinds) if kinds else UNKNOWN
    if "list" in kinds and kinds != {"list"}:
        result = join((LIST, Type(kinds - {"list"})))
    failing = sorted(pair for pair, found in results.items() if found is None)
    if not failing:
        return OperationType(result)
    one, other = failing[0]
    can = "can fail" if kinds else "fails"
    advice = "; join text with ~" if operator == "+" and "string" in (one, other) else ""
    message = f"{describe([one])} {operator} {describe([other])} {can}{advice}"
    return OperationType(result, LookupProblem("type-mismatch", message), is_possible=bool(kinds))


def comparison(operator: str, left: Type, right: Type, texts: tuple[str, str]) -> OperationType:
    if not left.is_known or not right.is_known or not left.kinds or not right.kinds:
        return OperationType(UNKNOWN)
    if operator in {"eq", "ne"}:
        return _equality(operator, left, right, texts)
    if operator in {"in", "notin"}:
        return _membership(left, right, texts)
    return _ordering(left, right, texts)


def _groups(kinds: frozenset[str]) -> frozenset[str]:
    """Kinds of which a value can equal one of another: 1, 1.0 and True are equal."""
    return frozenset("number" if kind in NUMBERS else kind for kind in kinds)


def _equality(operator: str, left: Type, right: Type, texts: tuple[str, str]) -> OperationType:
    truth = operator == "ne"
    word = "always" if truth else "never"
    if not _groups(left.kinds) & _groups(right.kinds):
        if left.kinds == {"null"} or right.kinds == {"null"}:
            return OperationType(UNKNOWN, truth=truth)
        what = texts[0] or texts[1] or "this"
        one, other = (left, right) if texts[0] or not texts[1] else (right, left)
        message = (
            f"{what} is {describe(one.kinds)}, so it is {word} {'unlike' if truth else 'equal to'} "
            f"{describe(other.kinds)}"
        )
        if not truth and texts[0] and texts[1]:
            message = f"{texts[0]} is {describe(left.kinds)} and {texts[1]} is {describe(right.kinds)}: never equal"
        return OperationType(UNKNOWN, LookupProblem("type-mismatch", message), truth=truth)
    if left.constants is not None and right.constants is not None and left.constants and right.constants:
        values, others = _values(left), _values(right)
        if not values & others:
            return OperationType(UNKNOWN, _outside(left, right, texts, truth=truth), truth=truth)
        if len(values) == len(others) == 1:
            return OperationType(UNKNOWN, truth=not truth)
    return OperationType(UNKNOWN, _misspelt(left, right, texts), is_possible=True)


def _misspelt(left: Type, right: Type, texts: tuple[str, str]) -> LookupProblem | None:
    """The finding about a literal that the API writes in other letters: a claim is `Bound`, not `bound`. Of what a
    cluster writes only these are reported, because later versions may have more values."""
    for declared, literal, text in ((left, right, texts[0]), (right, left, texts[1])):
        known = declared.node.constants if declared.node is not None and declared.constants is None else None
        value = next(iter(_values(literal)), None) if len(literal.constants or ()) == 1 else None
        if not known or not text or not isinstance(value, str) or value in known:
            continue
        meant = {str(each).lower(): str(each) for each in known}.get(value.lower())
        if meant is not None:
            return LookupProblem("constant-condition", f"{text} is never {value}: the API writes {meant}")
    return None


def _values(each: Type) -> set[object]:
    return {value for _, value in each.constants or ()}


def _outside(left: Type, right: Type, texts: tuple[str, str], *, truth: bool) -> LookupProblem | None:
    """The finding about a literal that is not in the enumeration of the other side."""
    declared, literal, text = (left, right, texts[0]) if left.node is not None else (right, left, texts[1])
    if declared.node is None or len(literal.constants or ()) != 1 or not text:
        return None
    (value,) = _values(literal)
    members = sorted(str(each) for each in _values(declared))
    hint = did_you_mean(value, members) if isinstance(value, str) else ""
    shown = f"one of {', '.join(members)}" if len(members) > 1 else members[0]
    message = f"this is always {str(truth).lower()}: {text} is {shown}, never {value}{hint}"
    return LookupProblem("constant-condition", message)


def _membership(left: Type, right: Type, texts: tuple[str, str]) -> OperationType:
    containers = right.kinds & (CONTAINERS | {"string"})
    if "other" in right.kinds:
        return OperationType(UNKNOWN)
    what = texts[1] or "this value"
    if not containers:
        message = f"{what} is {describe(right.kinds)}: `in` needs text, a list or a mapping on the right"
        return OperationType(UNKNOWN, LookupProblem("type-mismatch", message))
    if (
        containers == {"string"}
        and right.kinds == {"string"}
        and "string" not in left.kinds
        and "other" not in left.kinds
    ):
        message = f"{texts[0] or 'the left side'} is {describe(left.kinds)}: only text can be searched in text"
        return OperationType(UNKNOWN, LookupProblem("type-mismatch", message))
    if right.kinds - containers:
        message = f"{what} may be {describe(right.kinds - containers)}: `in` needs text, a list or a mapping"
        return OperationType(UNKNOWN, LookupProblem("type-mismatch", message), is_possible=True)
    return OperationType(UNKNOWN)


_ORDERED: Final = ("string", "number", "list")


def _ordering(left: Type, right: Type, texts: tuple[str, str]) -> OperationType:
    if "other" in left.kinds | right.kinds:
        return OperationType(UNKNOWN)
    one, other = _groups(left.kinds), _groups(right.kinds)
    shared = {group for group in one & other if group in _ORDERED}
    names = f"{texts[0] or 'the left side'} {'{}'} {describe(left.kinds)} and {texts[1] or 'the right side'} {'{}'} "
    if not shared:
        message = names.format("is", "is") + f"{describe(right.kinds)}: they cannot be compared in order"
        return OperationType(UNKNOWN, LookupProblem("type-mismatch", message))
    if one != other or len(one) > 1:
        message = names.format("is", "is") + f"{describe(right.kinds)}: comparing them in order can fail"
        return OperationType(UNKNOWN, LookupProblem("type-mismatch", message), is_possible=True)
    return OperationType(UNKNOWN)
