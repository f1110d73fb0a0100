"""The pure core: `plan(rule, resource, observed, history) -> Plan`."""

from ruleop.planning.history import History
from ruleop.planning.model.actions import (
    Action,
    AddFinalizer,
    ChildReport,
    Create,
    Delete,
    Event,
    Expire,
    FieldConflict,
    FinalizerAction,
    ObjectReport,
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
from ruleop.planning.model.observed import FixedObjects, KindInfo, Kinds, Objects, Observed, Query, Served
from ruleop.planning.model.outcome import GRANT, Failed, Failure, Outcome
from ruleop.planning.plan import Plan
from ruleop.planning.planner import choose_rule, plan

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
    "RemoveFinalizer",
    "Requeue",
    "ResourceAction",
    "Served",
    "ServerSideApply",
    "State",
    "StatusWrite",
    "Wait",
    "choose_rule",
    "plan",
]
