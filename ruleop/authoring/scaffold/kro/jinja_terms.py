"""Expressions of Jinja with what is known of their values, as they are made of expressions of kro.

Functions of CEL, and of kro's own libraries, have other names in Jinja. Each takes the remarks of the translation and
its operands; a method's target is its first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.authoring.scaffold.naming import expression
from ruleop.errors import RuleopError
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.schema import Schema

CHOICE, OR, AND, NOT, COMPARED, SUM, PRODUCT, NEGATIVE, FILTERED, WHOLE = range(10)
"""Levels of operators: the higher, the tighter they bind. A FILTERED term may have another filter, and a WHOLE one
needs no brackets anywhere."""
_TAG: Final = re.compile(r"[{](?=[{%#])|[}](?=[}])|[%#](?=[}])")
_KINDS: Final = {"integer": "int", "number": "double", "boolean": "bool", "string": "string", "array": "list",
                 "object": "map"}  # fmt: skip


class InexpressibleError(RuleopError):
    """An expression that Jinja cannot say, or not exactly. The message is the reason."""


@dataclass(frozen=True, slots=True)
class JinjaTerm:
    """`kind` is CEL's, or empty where it is not known. `certain`: it has a value for each custom resource that the
    schema admits; any other may be missing, which is an error, or not available yet."""

    code: str
    level: int = WHOLE
    kind: str = ""
    schema: Schema | None = None
    certain: bool = False
    at_least_zero: bool = False

    def within(self, level: int) -> str:
        """The code as an operand of an operator that binds like this."""
        return self.code if self.level >= level else f"({self.code})"


def described(code: str, schema: Schema | None, *, certain: bool) -> JinjaTerm:
    """A value of this schema."""
    schema = schema or {}
    kind = "" if schema.get("x-kubernetes-int-or-string") else _KINDS.get(str(schema.get("type")), "")
    least = schema.get("minimum")
    return JinjaTerm(
        code, WHOLE, kind, schema, certain, at_least_zero=kind == "int" and isinstance(least, int) and least >= 0
    )


def constant(value: str | float | bool | None) -> JinjaTerm:
    if value is None:
        return JinjaTerm("none", kind="null", certain=True)
    if isinstance(value, bool):
        return JinjaTerm("true" if value else "false", kind="bool", certain=True)
    if isinstance(value, str):
        return JinjaTerm(text_literal(value), kind="string", certain=True)
    kind = "int" if isinstance(value, int) else "double"
    return JinjaTerm(repr(value), WHOLE if value >= 0 else NEGATIVE, kind, certain=True, at_least_zero=value >= 0)


def text_literal(text: str) -> str:
    """A string of Jinja, in which nothing looks like a tag of it."""
    escaped = text.encode("unicode_escape").decode("ascii").replace("'", "\\'")
    return "'" + _TAG.sub(lambda found: f"\\x{ord(found[0]):02x}", escaped) + "'"


def member(owner: JinjaTerm, name: str) -> JinjaTerm:
    """`owner.name`."""
    schema = owner.schema or {}
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    inner = properties.get(name) if isinstance(properties, Mapping) else None
    certain = owner.certain and isinstance(inner, Mapping)
    certain = certain and (name in (schema.get("required") or ()) or "default" in (inner or {}))
    if inner is None and isinstance(others, Mapping):
        inner = others
    return described(expression(owner.within(WHOLE), name), inner, certain=certain)


def is_set(owner: JinjaTerm, name: str) -> JinjaTerm:
    """Whether the owner has this field. Where the owner is missing, so is the answer."""
    found = member(owner, name)
    if owner.certain:
        return JinjaTerm(f"{found.code} is defined", COMPARED, "bool", certain=True)
    return JinjaTerm(f"{text_literal(name)} in {owner.within(SUM)}", COMPARED, "bool")


def both(terms: list[JinjaTerm]) -> JinjaTerm:
    return _joined(terms, "and", AND)


def either(terms: list[JinjaTerm]) -> JinjaTerm:
    return _joined(terms, "or", OR)


def _joined(terms: list[JinjaTerm], word: str, level: int) -> JinjaTerm:
    if len(terms) == 1:
        return terms[0]
    code = f" {word} ".join(each.within(level + 1) for each in terms)
    return JinjaTerm(code, level, "bool", certain=all(each.certain for each in terms))


def negated(term: JinjaTerm) -> JinjaTerm:
    return JinjaTerm(f"not {term.within(NOT)}", NOT, "bool", certain=term.certain)


def chosen(test: JinjaTerm, first: JinjaTerm, second: JinjaTerm) -> JinjaTerm:
    """`first if test else second`."""
    kinds = {first.kind, second.kind} - {"null"}
    code = first.within(OR)
    # Jinja would take an `if` behind `is defined` for an argument of the test.
    code = f"({code})" if code.endswith(" is defined") else code
    return JinjaTerm(
        f"{code} if {test.within(OR)} else {second.within(CHOICE)}",
        CHOICE,
        kinds.pop() if len(kinds) == 1 else "",
        certain=test.certain and first.certain and second.certain,
        at_least_zero=first.at_least_zero and second.at_least_zero,
    )


def filtered(term: JinjaTerm, code: str, kind: str) -> JinjaTerm:
    """`term | code`."""
    return JinjaTerm(f"{term.within(FILTERED)} | {code}", FILTERED, kind, certain=term.certain)


Function: TypeAlias = Callable[..., JinjaTerm]
_SHORTER: Final = "kro: an error where the value is shorter"


def _as(code: str, kind: str | None, *takes: str, remark: str = "", at_least_zero: bool = False) -> Function:
    """A function by a pattern of Jinja, whose operands are {0}, {1}. `kind`: of the result; None is that of the first
    operand. `takes`: the kinds that each operand may have."""

    def call(remarks: list[str], *operands: JinjaTerm) -> JinjaTerm:
        for operand, kinds in zip(operands, takes, strict=False):
            if kinds and operand.kind not in ("", *kinds.split()):
                raise InexpressibleError(f"it is not known for a {operand.kind}")
        if remark:
            remarks.append(remark)
        is_filter = code.startswith("{0} |")
        levels = [FILTERED if is_filter and index == 0 else WHOLE for index, _ in enumerate(operands)]
        text = code.format(*(each.within(level) for each, level in zip(operands, levels, strict=True)))
        level = COMPARED if " in " in code else FILTERED if " | " in code else WHOLE
        certain = all(each.certain for each in operands) and not remark
        found = operands[0].kind if kind is None else kind
        return JinjaTerm(text, level, found, certain=certain, at_least_zero=at_least_zero)

    return call


def _split(_: list[str], text: JinjaTerm, separator: JinjaTerm, count: JinjaTerm | None = None) -> JinjaTerm:
    # A literal that is not empty, or one with something behind it.
    if separator.level not in (SUM, WHOLE) or separator.code[:1] != "'" or separator.code[:2] == "''":
        raise InexpressibleError("split() by a separator that may be empty")
    more = ""
    if count is not None:
        if not count.code.isdigit() or int(count.code) < 1:
            raise InexpressibleError("split() into a number of parts that is computed")
        more = f", {int(count.code) - 1}"
    code = f"{text.within(WHOLE)}.split({separator.code}{more})"
    return JinjaTerm(code, kind="list", schema={"items": {"type": "string"}}, certain=text.certain)


def _whole_number(remarks: list[str], value: JinjaTerm) -> JinjaTerm:
    if value.kind == "int":
        return value
    if value.kind != "double":
        remarks.append("kro: an error where the text is not a whole number; here it is 0")
    return replace(filtered(value, "int", "int"), certain=False)


def _range(_: list[str], count: JinjaTerm) -> JinjaTerm:
    items = {"items": {"type": "integer", "minimum": 0}}
    return JinjaTerm(f"range({count.code})", kind="list", schema=items, certain=count.certain)


def _json(remarks: list[str], value: JinjaTerm) -> JinjaTerm:
    remarks.append("kro sorts the keys of JSON, and escapes <, > and &")
    return filtered(value, "to_json", "string")


_SIZE: Final = _as("{0} | length", "int", "string list map", at_least_zero=True)
METHODS: Final[Mapping[tuple[str, int], Function]] = {
    ("size", 1): _SIZE,
    ("startsWith", 2): _as("{0}.startswith({1})", "bool", "string", "string"),
    ("endsWith", 2): _as("{0}.endswith({1})", "bool", "string", "string"),
    ("contains", 2): _as("{1} in {0}", "bool", "string", "string"),
    ("matches", 2): _as("{0} | regex_match({1})", "bool", "string", "string"),
    ("lowerAscii", 1): _as("{0} | lower", "string", "string", remark="kro changes only the letters of ASCII"),
    ("upperAscii", 1): _as("{0} | upper", "string", "string", remark="kro changes only the letters of ASCII"),
    ("trim", 1): _as("{0} | trim", "string", "string"),
    ("replace", 3): _as("{0} | replace({1}, {2})", "string", "string", "string", "string"),
    ("split", 2): _split,
    ("split", 3): _split,
    ("join", 1): _as("{0} | join", "string", "list"),
    ("join", 2): _as("{0} | join({1})", "string", "list", "string"),
    ("indexOf", 2): _as("{0}.find({1})", "int", "string", "string"),
    ("substring", 2): _as("{0}[{1}:]", "string", "string", remark=_SHORTER),
    ("substring", 3): _as("{0}[{1}:{2}]", "string", "string", remark=_SHORTER),
    ("slice", 3): _as("{0}[{1}:{2}]", "list", "list", remark=_SHORTER),
    ("sum", 1): _as("{0} | sum", "", "list"),
    ("min", 1): _as("{0} | min", "", "list"),
    ("max", 1): _as("{0} | max", "", "list"),
    ("distinct", 1): _as("{0} | unique(case_sensitive=true) | list", "list", "list"),
    ("sort", 1): _as("{0} | sort(case_sensitive=true)", "list", "list"),
    ("reverse", 1): _as("{0} | reverse | list", "list", "list"),
    ("flatten", 1): _as("{0} | flatten(1, skip_nulls=false)", "list", "list"),
    ("merge", 2): _as("{0} | combine({1}, recursive=false)", "map", "map", "map"),
}
FUNCTIONS: Final[Mapping[tuple[str, int], Function]] = {
    ("size", 1): _SIZE,
    ("int", 1): _whole_number,
    ("dyn", 1): lambda _, value: replace(value, kind=""),
    ("omit", 0): lambda _: JinjaTerm("omit", certain=True),
}
NAMED: Final[Mapping[tuple[str, int], Function]] = {
    ("lists.range", 1): _range,
    ("json.marshal", 1): _json,
    ("json.unmarshal", 1): _as("{0} | from_json", "", "string"),
    ("math.greatest", 2): _as("[{0}, {1}] | max", None),
    ("math.least", 2): _as("[{0}, {1}] | min", None),
}
