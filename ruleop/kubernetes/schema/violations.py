"""A value that a keyword of its schema does not allow, and the words in which authors of rules and CRs read of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.schema.schema_findings import FieldPath, SchemaFinding
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema.openapi import Schema

LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_ARTICLES: Final = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
}
_OF_MISTYPED: Final = ("enum", LIST_TYPE)
"""Keywords that the server checks for a value of the wrong type, too."""


@dataclass(frozen=True, slots=True)
class Violation:
    path: FieldPath
    keyword: str
    value: JSON
    schema: Schema
    detail: Any = None
    """Details that the check found: the earlier one of two equal items, the violations of each alternative."""

    @property
    def expected(self) -> Any:
        return self.schema.get(self.keyword)

    @property
    def types(self) -> tuple[str, ...]:
        return types_of(self.schema)


def types_of(schema: Schema) -> tuple[str, ...]:
    """The types that a schema allows; none if it allows all."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer", "string"
    return (schema["type"],) if schema.get("type") else ()


def findings(violations: Iterable[Violation]) -> list[SchemaFinding]:
    """The violations in words. One of the type of a value hides others of the same value."""
    found, mistyped = [], set[FieldPath]()
    for each in violations:
        if each.keyword == "type":
            mistyped.add(each.path)
        if each.keyword not in _OF_MISTYPED or each.path not in mistyped:
            found.append(SchemaFinding(each.path, describe(each)))
    return found


def describe(violation: Violation) -> str:
    return _WORDS[violation.keyword](violation)


def format_value(value: JSON) -> str:
    """A value for a message: a short one as it is, otherwise its type."""
    if isinstance(value, list | Mapping):
        return _ARTICLES["array" if isinstance(value, list) else "object"]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else "a long string"


def _type(found: Violation) -> str:
    return f"must be {' or '.join(_ARTICLES.get(each, each) for each in found.types)}, not {format_value(found.value)}"


def _enum(found: Violation) -> str:
    value, members = found.value, found.expected
    listed = ", ".join(json.dumps(member, ensure_ascii=False) for member in members)
    texts = [member for member in members if isinstance(member, str)]
    hint = did_you_mean(value, texts) if isinstance(value, str) else ""
    return f"must be one of {listed}, not {format_value(value)}{hint}"


def _unknown(found: Violation) -> str:
    return f"is an unknown field{did_you_mean(str(found.path[-1]), found.schema.get('properties') or {})}"


def _size(how: str, unit: str) -> Callable[[Violation], str]:
    return lambda found: f"must have {how} {found.expected:g} {unit}, not {found.detail}"


def _limit(inclusive: str, exclusive: str) -> Callable[[Violation], str]:
    def words(found: Violation) -> str:
        if found.detail is None:
            return _impossible(found)
        how = exclusive if found.schema.get(f"exclusive{found.keyword.capitalize()}") is True else inclusive
        return f"must be {how} {found.detail}, not {found.value}"

    return words


def _multiple(found: Violation) -> str:
    if found.detail is None:
        return _impossible(found)
    return f"must be a multiple of {found.expected}, not {found.value}"


def _impossible(found: Violation) -> str:
    return f"cannot be valid: the schema's {found.keyword} is {found.expected}, which is not an integer"


def _pattern(found: Violation) -> str:
    if found.detail is not None:
        return f"the pattern {found.expected!r} of the schema is invalid: {found.detail}"
    return f"must match {found.expected!r}"


def _repeated(found: Violation) -> str:
    return f"repeats item {found.detail}, but each may occur only once"


def _repeated_key(found: Violation) -> str:
    keys, item = found.expected or (), found.value if isinstance(found.value, Mapping) else {}
    named = (
        ", ".join(f"{key} {format_value(item[key])}" for key in keys if key in item) or f"no {' and no '.join(keys)}"
    )
    return f"has the same key as item {found.detail}: {named}"


def _list_type(found: Violation) -> str:
    return "must be an object: the list has keys" if found.detail is None else _repeated(found)


def _any_of(found: Violation) -> str:
    return f"must match at least one of {len(found.detail)} alternatives; the nearest: {_nearest(found.detail)}"


def _one_of(found: Violation) -> str:
    fitting = sum(not each for each in found.detail)
    text = f"must match exactly one of {len(found.detail)} alternatives"
    return f"{text}, but matches {fitting}" if fitting else f"{text}; the nearest: {_nearest(found.detail)}"


def _nearest(tried: list[list[Violation]]) -> str:
    return str(min(map(findings, tried), key=len)[0])


_WORDS: Final[Mapping[str, Callable[[Violation], str]]] = {
    "type": _type,
    "enum": _enum,
    "required": lambda _: "is required",
    "additionalProperties": _unknown,
    "minProperties": _size("at least", "fields"),
    "maxProperties": _size("at most", "fields"),
    "minItems": _size("at least", "items"),
    "maxItems": _size("at most", "items"),
    "minLength": _size("at least", "characters"),
    "maxLength": _size("at most", "characters"),
    "uniqueItems": _repeated,
    LIST_TYPE: _list_type,
    LIST_KEYS: _repeated_key,
    "pattern": _pattern,
    "format": lambda found: f"must be a {found.expected}, not {format_value(found.value)}",
    "bits": lambda found: f"must fit in int{found.detail}",
    "minimum": _limit("at least", "more than"),
    "maximum": _limit("at most", "less than"),
    "multipleOf": _multiple,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": lambda _: "must not match the schema in `not`",
}
