"""The pure core: `plan(rule, resource, observed, history) -> Plan`."""

from ruleop.core.planning.history import History
from ruleop.core.planning.model.actions import (
    Action,
    AddFinalizer,
    ChildReport,
    Create,
    Delete,
    Event,
    FieldConflict,
    FinalizerAction,
    ObjectReport,
    Patch,
    Problem,
    Read,
    RemoveFinalizer,
    Replace,
    Requeue,
    ServerSideApply,
    State,
    StatusWrite,
    Wait,
)
from ruleop.core.planning.model.conditions import Condition, Conditions
from ruleop.core.planning.model.marks import Owner
from ruleop.core.planning.model.observed import FixedObjects, KindInfo, Kinds, Objects, Observed, Query, Served
from ruleop.core.planning.model.outcome import GRANT, Failed, Failure, Outcome
from ruleop.core.planning.plan import Plan
from ruleop.core.planning.planner import Planning, SlowPlanError, choose_rule, plan

__all__ = [
    "GRANT",
    "Action",
    "AddFinalizer",
    "ChildReport",
    "Condition",
    "Conditions",
    "Create",
    "Delete",
    "Event",
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
    "Planning",
    "Problem",
    "Query",
    "Read",
    "RemoveFinalizer",
    "Replace",
    "Requeue",
    "Served",
    "ServerSideApply",
    "SlowPlanError",
    "State",
    "StatusWrite",
    "Wait",
    "choose_rule",
    "plan",
]
