"""The forms of a child, with a class for each: which objects it desires, and how it decides about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.language.rules import Given, ItemEnd, Once, Ordinary, Patched
from ruleop.planning.child.kinds.ordinary import OrdinaryPlan

if TYPE_CHECKING:
    from ruleop.language.rules import Form
    from ruleop.planning.child.child_plan import ChildPlan


def plan_class(form: type[Form]) -> type[ChildPlan]:
    """The class for a form. The rare ones are loaded with the first child that has them."""
    if form is Ordinary:
        return OrdinaryPlan
    if form is Given:
        from ruleop.planning.child.kinds.given import GivenPlan  # noqa: PLC0415

        return GivenPlan
    if form is Patched:
        from ruleop.planning.child.kinds.patched import PatchPlan  # noqa: PLC0415

        return PatchPlan
    if form is Once:
        from ruleop.planning.child.kinds.once import OncePlan  # noqa: PLC0415

        return OncePlan
    if form is ItemEnd:
        from ruleop.planning.child.kinds.item_end import ItemEndPlan  # noqa: PLC0415

        return ItemEndPlan
    from ruleop.planning.child.kinds.schedule import SchedulePlan  # noqa: PLC0415

    return SchedulePlan
