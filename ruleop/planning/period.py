"""How often a CR is looked at although nothing has happened: as its rule says, or as it says itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.planning.marks import RECONCILE_PERIOD, annotations_of
from ruleop.rules import parse_duration

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.rules import Rule

SHORTEST = 1.0  # seconds that a CR may say: whoever may write it need not be whoever pays for the operator


def reconcile_period(rule: Rule, resource: Object) -> tuple[float, str]:
    """Seconds, 0 for never; and what is wrong with what the CR says, which is told and stops nothing."""
    text = annotations_of(resource).get(RECONCILE_PERIOD)
    if text is None:
        return rule.reconcile_period, ""
    try:
        own = parse_duration(str(text))
    except ValueError as error:
        return rule.reconcile_period, f"the annotation {RECONCILE_PERIOD} has no effect: {error}"
    return (max(SHORTEST, own) if own else 0.0), ""
