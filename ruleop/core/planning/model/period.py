"""The reconcile period of a CR: that of its rule, or that of its annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.planning.model.marks import RECONCILE_PERIOD, annotations_of
from ruleop.core.rules import parse_duration

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.rules import Rule

MIN_PERIOD = 1.0  # seconds; users who may edit a CR must not overload the operator


def reconcile_period(rule: Rule, resource: Object) -> tuple[float, str]:
    """The period in seconds, 0 for never; and a note if the annotation is invalid, which is reported and ignored."""
    text = annotations_of(resource).get(RECONCILE_PERIOD)
    if text is None:
        return rule.reconcile_period, ""
    try:
        own = parse_duration(str(text))
    except ValueError as error:
        return rule.reconcile_period, f"the annotation {RECONCILE_PERIOD} has no effect: {error}"
    return (max(MIN_PERIOD, own) if own else 0.0), ""
