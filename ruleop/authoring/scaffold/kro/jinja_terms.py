"""Expressions of Jinja with what is known of their values, as they are made of expressions of kro."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.authoring.scaffold.naming import expression
from ruleop.core.errors import RuleopError

if TYPE_CHECKING:
    from ruleop.core.schema.openapi import Schema

CHOICE, OR, AND, NOT, COMPARED, SUM, PRODUCT, NEGATIVE, FILTERED, WHOLE = range(10)
"""Levels of operators: the higher, the tighter they bind. A FILTERED term may have another filter, and a WHOLE one
needs no brackets anywhere."""
_TAG: Final = re.compile(r"[{](?=[{%#])|[}](?=[}])|[%#](?=[}])")
_KINDS: Final = {"integer": "int", "number": "double", "boolean": "bool", "string": "string", "array": "list",
                 "object": "map"}  # fmt: skip


class InexpressibleError(RuleopError):
    """An expression that Jinja cannot say, or not exactly. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Term:
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


def described(code: str, schema: Schema | None, *, certain: bool) -> Term:
    """A value of this schema."""
    schema = schema or {}
    kind = "" if schema.get("x-kubernetes-int-or-string") else _KINDS.get(str(schema.get("type")), "")
    least = schema.get("minimum")
    return Term(
        code, WHOLE, kind, schema, certain, at_least_zero=kind == "int" and isinstance(least, int) and least >= 0
    )


def constant(value: str | float | bool | None) -> Term:
    if value is None:
        return Term("none", kind="null", certain=True)
    if isinstance(value, bool):
        return Term("true" if value else "false", kind="bool", certain=True)
    if isinstance(value, str):
        return Term(text_literal(value), kind="string", certain=True)
    kind = "int" if isinstance(value, int) else "double"
    return Term(repr(value), WHOLE if value >= 0 else NEGATIVE, kind, certain=True, at_least_zero=value >= 0)


def text_literal(text: str) -> str:
    """A string of Jinja, in which nothing looks like a tag of it."""
    escaped = text.encode("unicode_escape").decode("ascii").replace("'", "\\'")
    return "'" + _TAG.sub(lambda found: f"\\x{ord(found[0]):02x}", escaped) + "'"


def member(owner: Term, name: str) -> Term:
    """`owner.name`."""
    schema = owner.schema or {}
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    inner = properties.get(name) if isinstance(properties, Mapping) else None
    certain = owner.certain and isinstance(inner, Mapping)
    certain = certain and (name in (schema.get("required") or ()) or "default" in (inner or {}))
    if inner is None and isinstance(others, Mapping):
        inner = others
    return described(expression(owner.within(WHOLE), name), inner, certain=certain)


def is_set(owner: Term, name: str) -> Term:
    """Whether the owner has this field. Where the owner is missing, so is the answer."""
    found = member(owner, name)
    if owner.certain:
        return Term(f"{found.code} is defined", COMPARED, "bool", certain=True)
    return Term(f"{text_literal(name)} in {owner.within(SUM)}", COMPARED, "bool")


def both(terms: list[Term]) -> Term:
    return _joined(terms, "and", AND)


def either(terms: list[Term]) -> Term:
    return _joined(terms, "or", OR)


def _joined(terms: list[Term], word: str, level: int) -> Term:
    if len(terms) == 1:
        return terms[0]
    code = f" {word} ".join(each.within(level + 1) for each in terms)
    return Term(code, level, "bool", certain=all(each.certain for each in terms))


def negated(term: Term) -> Term:
    return Term(f"not {term.within(NOT)}", NOT, "bool", certain=term.certain)


def chosen(test: Term, first: Term, second: Term) -> Term:
    """`first if test else second`."""
    kinds = {first.kind, second.kind} - {"null"}
    code = first.within(OR)
    # Jinja would take an `if` behind `is defined` for an argument of the test.
    code = f"({code})" if code.endswith(" is defined") else code
    return Term(
        f"{code} if {test.within(OR)} else {second.within(CHOICE)}",
        CHOICE,
        kinds.pop() if len(kinds) == 1 else "",
        certain=test.certain and first.certain and second.certain,
        at_least_zero=first.at_least_zero and second.at_least_zero,
    )


def filtered(term: Term, code: str, kind: str, *, at_least_zero: bool = False) -> Term:
    """`term | code`."""
    return Term(f"{term.within(FILTERED)} | {code}", FILTERED, kind, certain=term.certain, at_least_zero=at_least_zero)
