"""The pure core: `plan(rule, resource, observed, history) -> Plan`."""

from ruleop.core.planning.history import History
from ruleop.core.planning.model.actions import (
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
from ruleop.core.planning.model.conditions import Condition, Conditions
from ruleop.core.planning.model.marks import Owner
from ruleop.core.planning.model.observed import FixedObjects, KindInfo, Kinds, Objects, Observed, Query, Served
from ruleop.core.planning.model.outcome import GRANT, Failed, Failure, Outcome
from ruleop.core.planning.plan import Plan
from ruleop.core.planning.planner import choose_rule, plan

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
