"""The pure core: `plan(rule, resource, observed, history) -> Plan`."""

from ruleop.planning.child.existing import read_record
from ruleop.planning.child.field_patches import HELD_ADVICE, patch_targets, patched_key, patches_on
from ruleop.planning.child.kinds.ordinary import SENSITIVE
from ruleop.planning.child.readiness import readiness
from ruleop.planning.events import write_events
from ruleop.planning.history import ConflictingObject, History, Refusal, Writes
from ruleop.planning.model.actions import (
    GRANT,
    Action,
    AddFinalizer,
    ChildReport,
    Create,
    Delete,
    Event,
    Expire,
    Failed,
    Failure,
    FieldConflict,
    FinalizerAction,
    ObjectReport,
    Outcome,
    Patch,
    Problem,
    Read,
    RemoveFinalizer,
    Requeue,
    ResourceAction,
    ServerSideApply,
    State,
    StatusWrite,
    Wait,
)
from ruleop.planning.model.conditions import Condition, Conditions
from ruleop.planning.model.marks import Owner
from ruleop.planning.model.observed import FixedObjects, KindInfo, Kinds, Objects, Observed, Query, Served, parse_time
from ruleop.planning.plan import Plan
from ruleop.planning.planner import PLAN_IS_LATE, TOO_LONG, choose_rule, plan
from ruleop.planning.rendering.child_field_sites import MAX_LINES, lines_of

__all__ = [
    "GRANT",
    "HELD_ADVICE",
    "MAX_LINES",
    "PLAN_IS_LATE",
    "SENSITIVE",
    "TOO_LONG",
    "Action",
    "AddFinalizer",
    "ChildReport",
    "Condition",
    "Conditions",
    "ConflictingObject",
    "Create",
    "Delete",
    "Event",
    "Expire",
    "Failed",
    "Failure",
    "FieldConflict",
    "FinalizerAction",
    "FixedObjects",
    "History",
    "KindInfo",
    "Kinds",
    "ObjectReport",
    "Objects",
    "Observed",
    "Outcome",
    "Owner",
    "Patch",
    "Plan",
    "Problem",
    "Query",
    "Read",
    "Refusal",
    "RemoveFinalizer",
    "Requeue",
    "ResourceAction",
    "Served",
    "ServerSideApply",
    "State",
    "StatusWrite",
    "Wait",
    "Writes",
    "choose_rule",
    "lines_of",
    "parse_time",
    "patch_targets",
    "patched_key",
    "patches_on",
    "plan",
    "read_record",
    "readiness",
    "write_events",
]
