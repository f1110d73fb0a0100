"""Validation of label selectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.validation.field_errors import forbidden_value, invalid_value, invalid_values, required
from ruleop.core.validation.fields.field_names import key_problems, label_value_problems, validate_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_WITH_VALUES, _WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")


def validate_label_selector(selector: Object | None, field: str) -> Iterator[FieldError]:
    yield from validate_labels((selector or {}).get("matchLabels") or {}, f"{field}.matchLabels")
    for index, each in enumerate((selector or {}).get("matchExpressions") or ()):
        yield from _validate_expression(each, f"{field}.matchExpressions[{index}]")


def _validate_expression(expression: Any, field: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values")
    if operator in _WITH_VALUES and not values:
        yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES and values:
        yield forbidden_value(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
        yield invalid_value(f"{field}.operator", operator, "not a valid selector operator")
    key = expression.get("key", "")
    yield from invalid_values(f"{field}.key", key, key_problems(key))
    for index, value in enumerate(values or ()):
        yield from invalid_values(f"{field}.values[{index}]", value, label_value_problems(value))


def shown_selector(selector: Object | None) -> Object | None:
    """A selector as messages show it: its labels sorted, and last what else it requires."""
    if selector is None:
        return None
    labels, requirements = selector.get("matchLabels"), selector.get("matchExpressions")
    found: dict[str, Any] = {"matchLabels": dict(sorted(labels.items()))} if labels else {}
    if requirements:
        found["matchExpressions"] = [
            {"key": "", "operator": "", **{name: each[name] for name in ("key", "operator", "values") if name in each}}
            for each in requirements
        ]
    return found
