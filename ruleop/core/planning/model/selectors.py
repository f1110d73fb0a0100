"""Evaluates label selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ruleop.core.labels import Requirement, meets

if TYPE_CHECKING:
    from ruleop.core.rules import Selector

Matcher = Callable[[Mapping[str, str]], bool]


def compile_selector(selector: Selector, names: Mapping[str, Any]) -> Matcher:
    """A function that tests labels against the selector, whose strings are evaluated once."""
    labels = {key: value.string(names) for key, value in selector.match_labels.items()}
    requirements = requirements_of(selector, names)

    def matches(found: Mapping[str, str]) -> bool:
        return all(found.get(key) == value for key, value in labels.items()) and meets(found, requirements)

    return matches


def requirements_of(selector: Selector, names: Mapping[str, Any]) -> tuple[Requirement, ...]:
    return tuple(
        (each.key, each.operator, frozenset(value.string(names) for value in each.values))
        for each in selector.match_expressions
    )
