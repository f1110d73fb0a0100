"""Causes for invalid fields, in the words of the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from ruleop.localcluster.errors import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import Object


def invalid_value(field: str, value: Any, problem: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {orjson.dumps(value).decode()}: {problem}", field)


def invalid_values(field: str, value: Any, problems: Iterable[str]) -> Iterator[Cause]:
    """One cause for each problem of a value."""
    return (invalid_value(field, value, problem) for problem in problems)


def immutable_value(field: str, value: Any) -> Cause:
    return invalid_value(field, value, "field is immutable")


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def forbidden_field(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def duplicate(field: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {orjson.dumps(value).decode()}", field)


def too_long(field: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def below_minimum(field: str, value: int | None, minimum: int = 0) -> Iterator[Cause]:
    if value is not None and value < minimum:
        yield invalid_value(field, value, f"must be greater than or equal to {minimum}")


def shown_selector(selector: Object | None) -> Object | None:
    """A label selector as messages show it: its labels sorted, and last what else it requires."""
    if selector is None:
        return None
    labels, requirements = selector.get("matchLabels"), selector.get("matchExpressions")
    found = {"matchLabels": dict(sorted(labels.items()))} if labels else {}
    return {**found, "matchExpressions": requirements} if requirements else found
