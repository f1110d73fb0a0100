"""Requirements on labels: what `matchExpressions` and label selectors consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

Requirement: TypeAlias = tuple[str, str, frozenset[str]]
"""A label's key, an operator (In, NotIn, Exists, DoesNotExist, Gt, Lt) and values."""


Matches: TypeAlias = "Callable[[Mapping[str, str]], bool]"
"""Whether an object with these labels is selected."""


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def any_labels(_: Mapping[str, str]) -> bool:
    """The selector that matches all objects."""
    return True


def requirements_of(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Those of a label selector with `matchLabels` and `matchExpressions`."""
    return (
        *((key, "In", frozenset([value])) for key, value in (selector.get("matchLabels") or {}).items()),
        *(
            (each["key"], each["operator"], frozenset(each.get("values") or []))
            for each in selector.get("matchExpressions") or []
        ),
    )


def meets(labels: Mapping[str, str], requirements: Iterable[Requirement]) -> bool:
    return all(_holds(labels, key, operator, values) for key, operator, values in requirements)


def _holds(labels: Mapping[str, str], key: str, operator: str, values: frozenset[str]) -> bool:
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator in ("Gt", "Lt"):
        return _compares(labels.get(key), operator, values)
    return (key in labels) == (operator == "Exists")


def _compares(value: str | None, operator: str, values: frozenset[str]) -> bool:
    try:
        number, limit = int(value or ""), int(next(iter(values)))
    except ValueError:
        return False
    return number > limit if operator == "Gt" else number < limit
