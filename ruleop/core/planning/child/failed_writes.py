"""The state of an object whose write has failed, or is expected to: what the conditions say of it, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.planning.changes.list_conflicts import conflict_in_words
from ruleop.core.planning.changes.rejected_writes import condition_reason
from ruleop.core.planning.child.apply import name_conflict_message
from ruleop.core.planning.model.actions import Patch, ServerSideApply, State
from ruleop.core.planning.model.outcome import GRANT, Failed, Failure
from ruleop.core.planning.model.rbac_children import Granting
from ruleop.core.planning.model.rule_permissions import denied_write
from ruleop.core.planning.rendering.child_field_sites import field_site

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.core.errors import Site
    from ruleop.core.kinds import Object
    from ruleop.core.planning.child.child_plan import ChildPlan, ObjectPlan, PassReport
    from ruleop.core.rules import Child, Rule

MAX_LOCATED: Final = 4
"""Rejected objects of one child whose message has the line of the rejected field."""


def state_of_failed_write(
    rule: Rule, report: PassReport, child_plan: ChildPlan, object_plan: ObjectPlan, failed: Failed, *, held: str = ""
) -> tuple[State, str]:
    """The state and its message; adds a problem or a wait to the report. `held`: who holds the fields."""
    child, key = child_plan.child, object_plan.desired.key
    granting = Granting.of(object_plan.desired.rendered) if failed.verb == GRANT and not child.secrecy.holds else None
    if granting is not None:
        message = f"cannot write {key.kind}/{key.name}: {granting.remedy(failed.account)}"
    elif failed.verb and failed.verb != GRANT:
        message = denied_write(rule, object_plan.desired.info, key.namespace, failed)
    else:
        message = child.secrecy.rejection(failed.message, failed.redacted, failed.causes)
    reason = condition_reason(failed.failure)
    if reason is None:
        report.add_wait(
            child.id,
            f"{key} to be written" + (f": {message}" if failed.failure is Failure.OTHER else ""),
            why="write",
        )
        return State.PROGRESSING, message
    if failed.failure is Failure.HELD:
        report.has_held_fields = True
        message = f"{key}: {held}"
    if failed.failure is Failure.EXISTS:
        message = name_conflict_message(key, rule.kind.kind, None)
        report.add_problem(child.id, reason, message)
        return State.REFUSED, message
    if failed.failure is Failure.INVALID and (conflict := expected_rejection(child, object_plan, failed.managed)):
        message += f"; {conflict}"
    named = [cause.field for cause in failed.causes]
    sent = object_plan.applied.result if object_plan.applied is not None else None
    site = site_of(child_plan, object_plan, named, sent=sent)
    report.add_problem(child.id, reason, message, site)
    return State.FAILED, message


def expected_rejection(child: Child, object_plan: ObjectPlan, managed: Iterable[Mapping[str, Any]] = ()) -> str:
    """Describes a live list item that conflicts with a desired one; empty if there is none. A replaced object has
    only desired items. Empty for a child that reads Secrets: the key of an item may come from one."""
    applied = object_plan.applied
    if child.secrecy.holds or applied is None or applied.result is None:
        return ""
    if not isinstance(applied.action, (Patch, ServerSideApply)):
        return ""
    return conflict_in_words(applied.result, object_plan.desired.rendered, object_plan.desired.info.shape, managed)


def site_of(child_plan: ChildPlan, object_plan: ObjectPlan, fields: Iterable[str], sent: Object | None = None) -> Site:
    """The place of the first of these fields in the child's body. To find it, the body is rendered again, so only
    the first failed objects of a child have it."""
    child, found = child_plan.child, None
    if child_plan.located < MAX_LOCATED:
        child_plan.located += 1
        found = field_site(child, object_plan.desired, fields, sent)
    return found or child.body.site
