"""Work in steps, as of planning."""

from __future__ import annotations

from typing import TypeVar

from ruleop.core.steps import Steps

T = TypeVar("T")


def finished(steps: Steps[T]) -> T:
    """The result of the work, done without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
