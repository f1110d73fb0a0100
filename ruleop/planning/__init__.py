"""The pure core: `plan(rule, resource, observed) -> Plan`."""

from ruleop.planning.actions import (
    Action,
    AddFinalizer,
    ChildReport,
    Create,
    Delete,
    Event,
    ObjectReport,
    Patch,
    Plan,
    Problem,
    RemoveFinalizer,
    Replace,
    ServerSideApply,
    State,
    StatusWrite,
    Wait,
)
from ruleop.planning.marks import Owner
from ruleop.planning.observed import Failed, Failure, Fight, FixedObjects, KindInfo, Kinds, Objects, Observed, Served
from ruleop.planning.planner import choose_rule, plan

__all__ = [
    "Action",
    "AddFinalizer",
    "ChildReport",
    "Create",
    "Delete",
    "Event",
    "Failed",
    "Failure",
    "Fight",
    "FixedObjects",
    "KindInfo",
    "Kinds",
    "ObjectReport",
    "Objects",
    "Observed",
    "Owner",
    "Patch",
    "Plan",
    "Problem",
    "RemoveFinalizer",
    "Replace",
    "Served",
    "ServerSideApply",
    "State",
    "StatusWrite",
    "Wait",
    "choose_rule",
    "plan",
]
