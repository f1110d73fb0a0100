"""The functions of CEL, and of kro's own libraries, that Jinja has under other names.

Each takes the remarks of the translation and its operands; a method's target is its first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.authoring.scaffold.kro import jinja_terms as terms
from ruleop.authoring.scaffold.kro.jinja_terms import COMPARED, FILTERED, SUM, WHOLE, InexpressibleError, Term

if TYPE_CHECKING:
    from collections.abc import Mapping

Function: TypeAlias = Callable[..., Term]
_SHORTER: Final = "kro: an error where the value is shorter"


def _as(code: str, kind: str | None, *takes: str, remark: str = "", at_least_zero: bool = False) -> Function:
    """A function by a pattern of Jinja, whose operands are {0}, {1}. `kind`: of the result; None is that of the first
    operand. `takes`: the kinds that each operand may have."""

    def call(remarks: list[str], *operands: Term) -> Term:
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
        return Term(text, level, found, certain=certain, at_least_zero=at_least_zero)

    return call


def _split(_: list[str], text: Term, separator: Term, count: Term | None = None) -> Term:
    # A literal that is not empty, or one with something behind it.
    if separator.level not in (SUM, WHOLE) or separator.code[:1] != "'" or separator.code[:2] == "''":
        raise InexpressibleError("split() by a separator that may be empty")
    more = ""
    if count is not None:
        if not count.code.isdigit() or int(count.code) < 1:
            raise InexpressibleError("split() into a number of parts that is computed")
        more = f", {int(count.code) - 1}"
    code = f"{text.within(WHOLE)}.split({separator.code}{more})"
    return Term(code, kind="list", schema={"items": {"type": "string"}}, certain=text.certain)


def _whole_number(remarks: list[str], value: Term) -> Term:
    if value.kind == "int":
        return value
    if value.kind != "double":
        remarks.append("kro: an error where the text is not a whole number; here it is 0")
    return replace(terms.filtered(value, "int", "int"), certain=False)


def _range(_: list[str], count: Term) -> Term:
    items = {"items": {"type": "integer", "minimum": 0}}
    return Term(f"range({count.code})", kind="list", schema=items, certain=count.certain)


def _json(remarks: list[str], value: Term) -> Term:
    remarks.append("kro sorts the keys of JSON, and escapes <, > and &")
    return terms.filtered(value, "to_json", "string")


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
    ("omit", 0): lambda _: Term("omit", certain=True),
}
NAMED: Final[Mapping[tuple[str, int], Function]] = {
    ("lists.range", 1): _range,
    ("json.marshal", 1): _json,
    ("json.unmarshal", 1): _as("{0} | from_json", "", "string"),
    ("math.greatest", 2): _as("[{0}, {1}] | max", None),
    ("math.least", 2): _as("[{0}, {1}] | min", None),
}
