"""The form of a CRD's schema: whether each keyword has a value of its type.

What has another form is left out, so that the other modules need not expect it: an empty property (`note:` without a
schema) becomes one that allows every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.schema.schema_findings import SchemaFinding
from ruleop.kubernetes.schema.validation import is_type
from ruleop.kubernetes.schema.violations import format_value

if TYPE_CHECKING:
    from ruleop.kubernetes.schema.openapi import Schema
    from ruleop.kubernetes.schema.schema_findings import FieldPath

_SCHEMAS: Final = frozenset({"not", "items", "additionalProperties", "additionalItems"})
_MAPS_OF_SCHEMAS: Final = frozenset({"properties", "patternProperties", "definitions"})
_LISTS_OF_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf"})
_MAPPING: Final = "a mapping of names to schemas"
_A_SCHEMA: Final = "a schema such as {type: string}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_rules(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("rule"), str) for each in value
    )


_TYPED: Final[tuple[tuple[Callable[[Any], bool], str, tuple[str, ...]], ...]] = (
    (partial(is_type, name="string"), "text", (
        "type", "format", "pattern", "title", "description", "x-kubernetes-list-type", "x-kubernetes-map-type",
    )),
    (partial(is_type, name="number"), "a number", ("minimum", "maximum", "multipleOf")),
    (_is_count, "an integer", ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")),
    (partial(is_type, name="boolean"), "true or false", (
        "nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
    )),
    (_is_names, "a list of names", ("required", "x-kubernetes-list-map-keys")),
    (partial(is_type, name="array"), "a list", ("enum",)),
    (_is_rules, "a list of rules such as {rule: self.a < self.b}", ("x-kubernetes-validations",)),
)  # fmt: skip
_TESTS: Final = {keyword: (test, words) for test, words, keywords in _TYPED for keyword in keywords}


class SchemaForm:
    """A schema with only what has the right form, and what has not."""

    def __init__(self, schema: Schema, path: FieldPath = ()) -> None:
        self.findings: list[SchemaFinding] = []
        self.schema = self._schema(schema, path)

    def _schema(self, schema: Schema, path: FieldPath) -> dict[str, Any]:
        return {
            keyword: found
            for keyword, value in schema.items()
            if value is not None
            for found in self._keyword(keyword, value, (*path, keyword))
        }

    def _keyword(self, keyword: str, value: Any, path: FieldPath) -> Iterator[Any]:
        """The value of a keyword, or nothing."""
        if keyword in _MAPS_OF_SCHEMAS:
            if self._has_form(isinstance(value, Mapping), _MAPPING, value, path):
                yield {str(name): self._member(each, (*path, str(name))) for name, each in value.items()}
        elif keyword in _LISTS_OF_SCHEMAS:
            if self._has_form(isinstance(value, list), "a list of schemas", value, path):
                yield [self._member(each, (*path, index)) for index, each in enumerate(value)]
        elif keyword in _SCHEMAS:
            if isinstance(value, Mapping):
                yield self._schema(value, path)
            elif isinstance(value, bool) and keyword.startswith("additional"):
                yield value
            elif keyword == "items" and isinstance(value, list):
                self.findings.append(SchemaFinding(path, "must be one schema, not a list of them"))
            else:
                self._has_form(False, _A_SCHEMA, value, path)
        elif keyword in _TESTS:
            test, words = _TESTS[keyword]
            if self._has_form(test(value), words, value, path):
                yield value
        else:
            yield value

    def _member(self, value: Any, path: FieldPath) -> dict[str, Any]:
        if self._has_form(isinstance(value, Mapping), _A_SCHEMA, value, path):
            return self._schema(value, path)
        return {}

    def _has_form(self, has_form: bool, words: str, value: Any, path: FieldPath) -> bool:
        if not has_form:
            self.findings.append(SchemaFinding(path, f"must be {words}, not {format_value(value)}"))
        return has_form
