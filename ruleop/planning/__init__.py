"""The pure core: `plan(rule, resource, observed, history) -> Plan`."""

from ruleop.planning.memory.history import History
from ruleop.planning.model.actions import (
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
    Plan,
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
from ruleop.planning.model.conditions import Condition, Conditions
from ruleop.planning.model.marks import Owner
from ruleop.planning.model.observed import FixedObjects, KindInfo, Kinds, Objects, Observed, Served
from ruleop.planning.model.outcome import Failed, Failure, Outcome
from ruleop.planning.planner import Planning, choose_rule, plan

__all__ = [
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
    "Read",
    "RemoveFinalizer",
    "Replace",
    "Requeue",
    "Served",
    "ServerSideApply",
    "State",
    "StatusWrite",
    "Wait",
    "choose_rule",
    "plan",
]
