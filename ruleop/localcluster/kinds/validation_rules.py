"""Rules in CEL, which this server stores and does not evaluate: a client that writes a CRD with some is warned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.schema.schema_findings import format_path
from ruleop.schema.validation import subschemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.schema.openapi import Schema
    from ruleop.schema.schema_findings import FieldPath


def rule_warnings(document: Object, old: Object | None) -> list[str]:
    """The warning for a CRD whose rules are new or changed."""
    rules = _rules(document)
    if not rules or (old is not None and rules == _rules(old)):
        return []
    count, first = sum(len(each) for _, each in rules), format_path(rules[0][0])
    return [f"CEL rules are not evaluated by this local cluster ({count}, the first at {first})"]


def _rules(document: Object) -> list[tuple[FieldPath, list[Any]]]:
    return [
        found
        for index, version in enumerate(document["spec"].get("versions") or ())
        for found in _rules_of(
            (version.get("schema") or {}).get("openAPIV3Schema") or {},
            ("spec", "versions", index, "schema", "openAPIV3Schema"),
        )
    ]


def _rules_of(schema: Schema, path: FieldPath) -> Iterator[tuple[FieldPath, list[Any]]]:
    if rules := schema.get("x-kubernetes-validations"):
        yield path, rules
    for steps, each in subschemas(schema):
        yield from _rules_of(each, (*path, *steps))
