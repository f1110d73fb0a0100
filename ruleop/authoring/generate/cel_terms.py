"""Parts of CEL expressions with what is known of their values, so that they mean in CEL exactly what Jinja means.

Exact means: for every custom resource that the schema admits, both have the same value, or both fail. A value fails in
CEL where a field is missing, as in Jinja. So operators keep Jinja's order: `a and b` is `a && b` only if `a` cannot
fail, and `a ? b : false` otherwise, because `&&` is false if one side is false, even if the other fails.

An integer of the schema may arrive as the double 1.0, which the API server stores as 1: comparisons of CEL do not see
the difference, and arithmetic converts it. Doubles are exact up to 2^53, so numbers beyond are not compared with them.
"""

from __future__ import annotations

import json
import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.typing.types import kind_of
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.authoring.checking.typing.types import SchemaNode


INT64: Final = (-(2**63), 2**63 - 1)
_EXACT: Final = 2**53
_KINDS: Final[Mapping[frozenset[str], str]] = {
    frozenset({"integer", "number"}): "number",
    **{frozenset({kind}): kind for kind in ("boolean", "integer", "string", "list", "mapping")},
}
_FORMATS: Final = frozenset({"byte", "date", "date-time", "duration"})
"""Formats of text that CEL reads as other types than text."""
SPEC: Final = "spec"
"""The path of the spec, which is an empty mapping in Jinja where it is missing."""
SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})
NUMBERS: Final = frozenset({"integer", "number"})
CONDITIONAL, OR, AND, RELATION, SUM, PRODUCT, UNARY, WHOLE = range(8)
"""Precedences: the operator of a text binds as tightly as its number says."""


class InexactError(Exception):
    """An expression that CEL cannot express exactly. The message is the reason."""


@dataclass(frozen=True, slots=True)
class CelTerm:
    """`kind` is that of the schema, or `object` for a mapping with declared fields."""

    text: str
    kind: str
    level: int = WHOLE
    path: str = ""  # in Jinja, for reasons; only of a field, which can be undefined
    present: tuple[str, ...] = ()  # conditions under which the field is set, outermost first; none if it always is
    fails: bool = False  # whether it fails for some custom resource
    is_raw: bool = False  # whether it is a field, whose type CEL does not know: an integer may be a double
    node: SchemaNode | None = None
    range: tuple[float, float] = INT64  # of a number
    item: CelTerm | None = None  # of a list that is not a field; its text is set by the loop
    constant: Any = field(default=None, hash=False)
    is_ascii: bool = False
    nonempty: str = ""  # of a list, a shorter condition than its size

    def within(self, level: int) -> str:
        """The text as an operand of an operator that binds as tightly as `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def name(self) -> str:
        return self.path or self.text


def inexact(reason: str) -> InexactError:
    return InexactError(reason)


# -- constants and fields ----------------------------------------------------------------------------------------------


def constant(value: Any) -> CelTerm:
    """A literal of the rules."""
    kind = kind_of(value)
    if kind == "string":
        return CelTerm(_quoted(value), kind, constant=value, is_ascii=value.isascii())
    if kind == "boolean":
        return CelTerm("true" if value else "false", kind, constant=value)
    if kind in NUMBERS:
        if not INT64[0] <= value <= INT64[1]:
            raise inexact(f"{value} has more than 64 bits")
        return CelTerm(repr(value), kind, level=UNARY if value < 0 else WHOLE, range=(value, value), constant=value)
    if kind == "list":
        items = [constant(each) for each in value]
        if {each.kind for each in items} - SCALARS or len({each.kind for each in items}) > 1:
            raise inexact("a list has items of several types")
        item = None
        if items:
            bounds = (min(each.range[0] for each in items), max(each.range[1] for each in items))
            item = replace(items[0], range=bounds, constant=None, is_ascii=all(each.is_ascii for each in items))
        return CelTerm(f"[{', '.join(each.text for each in items)}]", kind, item=item, constant=value)
    if kind == "mapping":
        return CelTerm("{}", kind, constant=value)
    raise inexact("null is not compared")


def _quoted(text: str) -> str:
    """A string of CEL, in which JSON's escapes mean the same."""
    return json.dumps(text, ensure_ascii=False)


def described(node: SchemaNode | None, term: CelTerm) -> CelTerm:
    """The term with what the schema says of its value."""
    if node is None:
        raise inexact(f"{term.name} is not in the schema")
    kind = _KINDS.get(node.kinds)
    if node.schema.get("nullable"):
        raise inexact(f"{term.name} may be null")
    if kind is None:
        raise inexact(f"the type of {term.name} is not certain")
    if kind == "string" and node.schema.get("format") in _FORMATS:
        raise inexact(f"CEL does not read the format {node.schema['format']} of {term.name} as text")
    if kind == "mapping" and (node.schema.get("properties") or node.values is None):
        kind = "object"
    return replace(
        term,
        kind=kind,
        node=node,
        fails=bool(term.present) or term.fails,
        is_raw=True,
        range=_range(node),
        is_ascii=bool(node.constants) and all(str(each).isascii() for each in node.constants),
    )


def _range(node: SchemaNode) -> tuple[float, float]:
    low, high = node.schema.get("minimum"), node.schema.get("maximum")
    return (
        low if low is not None and abs(low) <= _EXACT else INT64[0],
        high if high is not None and abs(high) <= _EXACT else INT64[1],
    )


def member(owner: CelTerm, name: str) -> CelTerm:
    """A field of a mapping."""
    path = f"{owner.name}.{name}"
    if owner.kind == "mapping" and owner.node is None and owner.constant is not None:
        if name not in owner.constant:
            raise inexact(f"{path} is not set")
        return replace(constant(owner.constant[name]), path=path)
    if owner.node is None or owner.kind not in {"object", "mapping"}:
        raise inexact(f"{owner.name} is not a mapping of the schema")
    if owner.fails and not owner.path:
        raise inexact(f"{owner.text} may fail")
    is_field = owner.kind == "object"
    if is_field and not (name.isidentifier() and name.isascii()):
        raise inexact(f"CEL cannot name the field {path}")
    text = f"{owner.text}.{name}" if is_field else f"{owner.within(WHOLE)}[{_quoted(name)}]"
    condition = f"has({text})" if is_field else f"{_quoted(name)} in {owner.within(SUM)}"
    is_set = is_field and owner.node.is_always_set(name)
    present = owner.present if is_set else (*owner.present, condition)
    node = owner.node.member(name) if is_field else owner.node.values
    return described(node, CelTerm(text, "any", path=path, present=present, fails=owner.fails))


def item_at(owner: CelTerm, index: int) -> CelTerm:
    if index < 0 or owner.node is None or owner.kind != "list":
        raise inexact("an index is counted from the end, or not of a list of the schema")
    condition = f"size({owner.text}) > {index}"
    found = CelTerm(
        f"{owner.within(WHOLE)}[{index}]", "any", path=f"{owner.path}[{index}]", present=(*owner.present, condition)
    )
    return described(owner.node.items, found)


def item_of(owner: CelTerm, variable: str) -> CelTerm:
    """The item that a loop over the list, or over the keys of the mapping, sees."""
    if owner.kind in {"mapping", "object"}:
        return CelTerm(variable, "string", path=f"a key of {owner.name}")
    if owner.node is not None:
        return described(owner.node.items, CelTerm(variable, "any", path=f"an item of {owner.name}"))
    if owner.kind != "list" or owner.item is None:
        raise inexact("a loop over what is neither a list of the schema nor a mapping")
    return replace(owner.item, text=variable, level=WHOLE)


# -- operators ---------------------------------------------------------------------------------------------------------


def boolean(text: str, *parts: CelTerm, level: int = WHOLE) -> CelTerm:
    return CelTerm(text, "boolean", level=level, fails=any(each.fails for each in parts))


def is_set(term: CelTerm) -> CelTerm:
    """Whether a field is defined."""
    if not term.path and term.fails:
        raise inexact(f"{term.text} may fail, and is undefined then if it is a `let`")
    if not term.present or term.path == SPEC:
        return constant(True)
    return boolean(" && ".join(term.present), level=AND if len(term.present) > 1 else _level(term.present[0]))


def _level(condition: str) -> int:
    return WHOLE if condition.startswith("has(") else RELATION


def truth(term: CelTerm) -> CelTerm:
    """The value as Python decides it in a condition."""
    if term.kind == "boolean":
        return term
    if term.kind == "string":
        return boolean(f'{term.within(SUM)} != ""', term, level=RELATION)
    if term.kind in NUMBERS:
        zero = "0" if term.kind == "integer" else "0.0"
        return boolean(f"{term.within(SUM)} != {zero}", term, level=RELATION)
    if term.kind in {"list", "mapping"}:
        return boolean(term.nonempty or f"size({term.text}) > 0", term, level=WHOLE if term.nonempty else RELATION)
    raise inexact(f"whether {term.name} is empty depends on fields that the schema does not list; use `is defined`")


def negated(term: CelTerm) -> CelTerm:
    if isinstance(term.constant, bool):
        return constant(not term.constant)
    return boolean(f"!{term.within(UNARY)}", term, level=UNARY)


def both(left: CelTerm, right: CelTerm) -> CelTerm:
    if isinstance(left.constant, bool):
        return right if left.constant else left
    if left.fails:
        found = boolean(f"{left.within(OR)} ? {right.within(OR)} : false", left, right, level=CONDITIONAL)
        return replace(found, is_raw=right.is_raw)
    return boolean(f"{left.within(AND)} && {right.within(AND)}", left, right, level=AND)


def either(left: CelTerm, right: CelTerm) -> CelTerm:
    if isinstance(left.constant, bool):
        return left if left.constant else right
    if left.fails:
        found = boolean(f"{left.within(OR)} ? true : {right.within(CONDITIONAL)}", left, right, level=CONDITIONAL)
        return replace(found, is_raw=right.is_raw)
    return boolean(f"{left.within(OR)} || {right.within(OR)}", left, right, level=OR)


def chosen(condition: CelTerm, left: CelTerm, right: CelTerm) -> CelTerm:
    """`left if condition else right`."""
    if isinstance(condition.constant, bool):
        return left if condition.constant else right
    if left.kind != right.kind and {left.kind, right.kind} == NUMBERS:
        left, right = _as_double(left), _as_double(right)
    if left.kind != right.kind or left.kind == "object":
        raise inexact(f"it is {left.kind} or {right.kind}, depending on the custom resource")
    kept = left if left.constant is None else right
    if left.kind not in SCALARS and not any(each.constant in ([], {}) for each in (left, right)):
        raise inexact(f"it is one of two values of the kind {left.kind}")
    return CelTerm(
        f"{condition.within(OR)} ? {left.within(OR)} : {right.within(CONDITIONAL)}",
        left.kind,
        level=CONDITIONAL,
        fails=condition.fails or left.fails or right.fails,
        is_raw=left.is_raw or right.is_raw,
        node=kept.node,
        range=(min(left.range[0], right.range[0]), max(left.range[1], right.range[1])),
        item=kept.item,
        is_ascii=left.is_ascii and right.is_ascii,
    )


_COMPARED: Final[Mapping[str, str]] = {
    "eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=",
}  # fmt: skip


def compared(symbol: str, left: CelTerm, right: CelTerm) -> CelTerm:
    """`symbol` is Jinja's name of the operator."""
    if left.kind == right.kind == "quantity" and (left.constant or right.constant):
        text = f"{left.text}.compareTo({right.text}) {_COMPARED[symbol]} 0"
        return boolean(text, left, right, level=RELATION)
    left, right = comparable(left, right)
    if symbol not in {"eq", "ne"} and left.kind == "boolean":
        raise inexact("CEL does not order booleans and numbers together")
    return boolean(f"{left.within(SUM)} {_COMPARED[symbol]} {right.within(SUM)}", left, right, level=RELATION)


def comparable(left: CelTerm, right: CelTerm) -> tuple[CelTerm, CelTerm]:
    """The operands of a comparison, of one type."""
    kinds = {left.kind, right.kind}
    if not kinds <= SCALARS or (len(kinds) > 1 and kinds != NUMBERS):
        raise inexact(f"it compares {left.name} ({left.kind}) with {right.name} ({right.kind})")
    if kinds <= NUMBERS and not (_is_small(left) or _is_small(right)):
        if "number" in kinds:
            raise inexact(f"{left.name} and {right.name} are numbers without bounds, of which CEL may lose digits")
        return as_integer(left), as_integer(right)
    return (_as_double(left), _as_double(right)) if "number" in kinds else (left, right)


def _is_small(term: CelTerm) -> bool:
    low, high = term.range
    return low >= -_EXACT and high <= _EXACT


def _as_double(term: CelTerm) -> CelTerm:
    if term.kind == "number":
        return term
    if isinstance(term.constant, int):
        return replace(constant(float(term.constant)), range=term.range, path=term.path)
    return replace(term, text=f"double({term.text})", kind="number", level=WHOLE, is_raw=False)


def as_integer(term: CelTerm) -> CelTerm:
    return replace(term, text=f"int({term.text})", level=WHOLE, is_raw=False) if term.is_raw else term


def contains(needle: CelTerm, haystack: CelTerm) -> CelTerm:
    """`needle in haystack`."""
    if haystack.kind == needle.kind == "string":
        return boolean(f"{haystack.within(WHOLE)}.contains({needle.text})", needle, haystack)
    if haystack.kind == "object" and isinstance(needle.constant, str):
        found = member(haystack, needle.constant)
        if haystack.path == SPEC or not haystack.fails:
            return is_set(found)
        return boolean(f"has({found.text})", haystack)
    if haystack.kind == "mapping" and needle.kind == "string" and haystack.constant is None:
        return boolean(f"{needle.within(SUM)} in {haystack.within(SUM)}", needle, haystack, level=RELATION)
    if haystack.kind != "list" or haystack.constant == []:
        raise inexact(f"`in` looks for {needle.name} ({needle.kind}) in {haystack.name} ({haystack.kind})")
    item = item_of(haystack, "item")
    first, second = comparable(needle, item)
    if second.text != item.text:  # converted
        if haystack.constant is None or second.kind != "number":
            raise inexact(f"the numbers of {haystack.name} are compared with another type")
        haystack = constant([float(each) for each in haystack.constant])
    return boolean(f"{first.within(SUM)} in {haystack.within(SUM)}", first, haystack, level=RELATION)


# -- numbers and text --------------------------------------------------------------------------------------------------


def arithmetic(symbol: str, left: CelTerm, right: CelTerm) -> CelTerm:
    """+, -, *, // or % of integers within 64 bits."""
    if {left.kind, right.kind} != {"integer"}:
        raise inexact(f"CEL calculates {left.kind} {symbol} {right.kind} otherwise")
    (a, b), (c, d) = left.range, right.range
    if symbol in {"//", "%"}:
        if a < 0 or c < 1:
            raise inexact(f"{symbol} of negative numbers or by zero is otherwise in CEL: give both a minimum")
        bounds: tuple[float, float] = (0, b // c) if symbol == "//" else (0, min(b, d - 1))
    else:
        corners = {"+": (a + c, b + d), "-": (a - d, b - c), "*": (a * c, a * d, b * c, b * d)}[symbol]
        bounds = (min(corners), max(corners))
    if not INT64[0] <= bounds[0] <= bounds[1] <= INT64[1]:
        names = " and ".join(each.path for each in (left, right) if each.path and not _is_small(each))
        raise inexact(f"an integer overflows in CEL: give {names or 'its operands'} a minimum and a maximum")
    level = SUM if symbol in "+-" else PRODUCT
    text = f"{as_integer(left).within(level)} {symbol[0]} {as_integer(right).within(level + 1)}"
    return CelTerm(text, "integer", level=level, fails=left.fails or right.fails, range=bounds)


def length(term: CelTerm) -> CelTerm:
    if term.kind not in {"string", "list", "mapping"}:
        raise inexact(f"{term.name} has no size in CEL")
    return CelTerm(f"size({term.text})", "integer", fails=term.fails, range=(0, 2**32))


def as_text(term: CelTerm) -> CelTerm:
    """The value as a part of longer text."""
    if term.kind == "string":
        return term
    if isinstance(term.constant, bool | int):
        return constant(str(term.constant).lower())
    if term.kind not in {"integer", "boolean"}:
        raise inexact(f"the text of {term.name} ({term.kind}) is otherwise in CEL")
    text = as_integer(term).text if term.kind == "integer" else term.text
    return CelTerm(f"string({text})", "string", fails=term.fails, is_ascii=True)


_WHOLE_QUANTITY: Final = re.compile(
    r"""\^ (\[[01]-9\] | \\d) \+? ((\[[01]-9\] | \\d) ([+*?] | \{\d*,?\d*\})?)*
    ( \[[KMGTPE]+\]i\?? | \[[kMGTPE]+\]\?? | \( ([KMGTPE]i \|? | [kMGTPE] \|?)+ \)\?? | [KMGTPE]i | [kMGTPE] )? \$""",
    re.VERBOSE,
)
"""A pattern that admits only quantities without a fraction: CEL rounds them to nanos."""


def quantity(term: CelTerm) -> CelTerm:
    """Text as a quantity, which is compared with a constant one: CEL knows none above 2^63."""
    if term.constant is not None:
        amount = parse_quantity(term.constant) if term.kind == "string" else None
        if amount is None or amount.denominator != 1 or not 0 < amount <= INT64[1]:
            raise inexact(f"{term.text} is not a whole quantity")
        return CelTerm(f"quantity({term.text})", "quantity", constant=amount)
    pattern = term.node.schema.get("pattern") if term.node is not None else None
    if term.kind != "string" or not _WHOLE_QUANTITY.fullmatch(pattern or ""):
        raise inexact(f"CEL rounds quantities: give {term.name} a pattern without a fraction, such as ^[0-9]+[MG]i$")
    return CelTerm(f"quantity({term.text})", "quantity", fails=term.fails)


def joined(parts: list[CelTerm]) -> CelTerm:
    texts = [as_text(each) for each in parts]
    if len(texts) == 1:
        return texts[0]
    fails, is_ascii = any(each.fails for each in texts), all(each.is_ascii for each in texts)
    return CelTerm(" + ".join(each.within(SUM) for each in texts), "string", level=SUM, fails=fails, is_ascii=is_ascii)
