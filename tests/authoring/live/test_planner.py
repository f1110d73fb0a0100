"""The selectors with which the objects of many custom resources are read together."""

import pytest

from ruleop.authoring.live.live_planner import common_selector
from ruleop.kubernetes.kinds import GroupKind
from ruleop.planning.model.targets import Target

POD = GroupKind("", "Pod")


def target(*requirements, **labels):
    return Target(POD, "default", None, tuple(sorted(labels.items())), requirements)


@pytest.mark.parametrize(
    ("targets", "selector"),
    [
        ([target(app="a")], "app=a"),
        ([target(app="a"), target(app="b")], "app in (a,b)"),
        ([target(app="a", tier="x"), target(app="b", tier="x")], "app in (a,b),tier=x"),
        ([target(app="a", tier="x"), target(app="b")], "app in (a,b)"),
        ([target(app="a"), target(tier="x")], ""),
        ([target(("env", "In", frozenset({"y", "x"})), app="a")], "app=a,env in (x,y)"),
        ([target(("env", "Exists", frozenset()), app="a")], "app=a,env"),
        ([target(("env", "DoesNotExist", frozenset()), ("z", "NotIn", frozenset({"1"})))], "!env,z notin (1)"),
        ([target(("env", "Exists", frozenset())), target(("env", "Exists", frozenset()), app="a")], "env"),
        ([target(("env", "Exists", frozenset())), target()], ""),
        ([target(("env", "In", frozenset(map(str, range(2000)))), app="a")], "app=a"),
    ],
)
def test_a_selector_of_several_targets_selects_at_least_their_objects(targets, selector):
    assert common_selector(targets) == selector
