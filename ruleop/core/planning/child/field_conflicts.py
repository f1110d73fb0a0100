"""An object whose drift is reverted repeatedly: its write is withheld, and reported as a conflict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.core.kinds import Kind
from ruleop.core.planning.changes.drift import (
    WHOLE_OBJECT,
    Correction,
    Decision,
    conflict_message,
    corrected_fields,
    managers_of,
)
from ruleop.core.planning.changes.writes import changes
from ruleop.core.planning.child.apply import Applied
from ruleop.core.planning.child.field_patches import holder_of
from ruleop.core.planning.model.actions import Create, FieldConflict, Patch, Read, Replace, ServerSideApply
from ruleop.core.planning.model.managers import FieldsManager
from ruleop.core.planning.rendering.unplanned import ChildFails, Unread
from ruleop.core.templating.values.cost import descriptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ruleop.core.planning.history import History
    from ruleop.core.planning.model.marks import Owner
    from ruleop.core.planning.model.observed import Observed
    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.rules import Child


class HeldBack(ChildFails):
    """The object is repeatedly deleted; creating it again is delayed."""

    def __init__(self, conflict: FieldConflict) -> None:
        super().__init__(conflict.message, reason="FieldConflict")
        self.conflict = conflict


def with_field_conflict(
    child: Child, desired: Desired, applied: Applied, owner: Owner, observed: Observed, history: History
) -> Applied:
    """The decision, with the field conflict of a child that was reverted recently. An edit of the CR changes the
    desired object, which ends the conflict. Raises ChildFails and Unread."""
    drift = history.drift[desired.key]
    if (applied.action is None and not drift.message) or drift.desired_digest != desired.digest:
        return applied
    fields = corrected_fields(applied.action) if applied.action is not None else None
    if fields is None:
        return replace(applied, conflict_message=drift.message)
    assert isinstance(applied.action, (Create, Patch, Replace, ServerSideApply))
    decision = drift.decide(fields, observed.clock)
    if decision is Decision.REVERT:
        return replace(applied, conflict_message=drift.message)
    message = drift.message
    if decision is Decision.REPORT:
        message = _conflict_message(child, applied.action, drift.managed, owner, observed, by_server=drift.altered)
    conflict = FieldConflict(desired.key, child.id, fields, message, new=decision is Decision.REPORT)
    if fields == WHOLE_OBJECT:
        raise HeldBack(conflict)
    return Applied(
        applied.action.live if not isinstance(applied.action, Create) else None,
        conflict_message=message,
        conflict=conflict,
    )


def _conflict_message(
    child: Child,
    action: Correction,
    managed: tuple[Mapping[str, Any], ...] | None,
    owner: Owner,
    observed: Observed,
    *,
    by_server: bool,
) -> str:
    changed = changes(action, observed.kinds, None, allowance=descriptions())
    paths = list(dict.fromkeys(child.secrecy.path(each.path) for each in changed))
    if isinstance(action, Create) or action.live is None or by_server:
        return conflict_message(action, paths, (), by_server=by_server)
    if managed is None:
        raise Unread(Read(action.key, Kind.of(action.live), "managers"))
    own = action.manager if isinstance(action, ServerSideApply) else ""
    others = [each for each in managed if not own or each.get("manager") != own]
    managers = managers_of(others, action.live, action.object)
    names = [holder_of(each, action.key, owner, observed) if _is_ruleops(each) else each for each in managers]
    return conflict_message(action, paths, names, by_server=False)


def _is_ruleops(manager: str) -> bool:
    """Whether it sets fields for a child with `patch`."""
    return FieldsManager.named(manager) is not None
