"""The meter's reading, as one number for a whole pass: the only place that knows how ruleop counts."""

from __future__ import annotations

from functools import wraps
from typing import Any

from ruleop.templating.values import budget


class _Total:
    """What was spent before the meter was last refilled."""

    spent = 0


def _counting() -> None:
    refill = budget.Meter.refill

    @wraps(refill)
    def counted(meter: Any, *args: Any, **kwargs: Any) -> None:
        _Total.spent += _since_refill()
        refill(meter, *args, **kwargs)

    budget.Meter.refill = counted  # type: ignore[method-assign, assignment]


def _since_refill() -> int:
    return max(0, budget.FUEL - budget.METER.fuel)


def units() -> int:
    """The units that this process has spent so far."""
    return _Total.spent + _since_refill()


_counting()
