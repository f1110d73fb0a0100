"""Operators by the kinds of their operands, as `ruleop.language.templates.values.operators` computes them."""

from __future__ import annotations

from typing import Final, NamedTuple

from ruleop.authoring.checking.typing.lookups import LookupProblem
from ruleop.authoring.checking.typing.types import (
    CONTAINERS,
    LIST,
    NUMBERS,
    STRING,
    UNKNOWN,
    Type,
    describe,
    item_of,
    join,
    list_of,
)
from ruleop.nearest import did_you_mean


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
