"""A custom resource that another process reconciles."""

from __future__ import annotations

from types import SimpleNamespace

from ruleop.operator.engine.shards.ownership import BySelector
from ruleop.operator.kube.leader.shards import Claims, ProcessLease


def test_only_a_reconcile_records_the_event() -> None:
    """Rollouts look at all custom resources several times a second."""
    recorded: list[object] = []
    events = SimpleNamespace(record=lambda _resource, found: recorded.extend(found))
    mine = BySelector("ruleop-b", "tier=x", SimpleNamespace(namespace="ops"), events)
    mine.claims = Claims("ruleop-b", 9)
    first = ProcessLease("ruleop-a", -1, "pod-a", None, "7", 15.0, since=5, selector="team=a")
    mine.claims.listed([first], 0.0)
    shared, other = ({"metadata": {"name": "web", "labels": labels}} for labels in ({"team": "a"}, {}))
    assert (mine.other_owner(shared), mine.other_owner(other)) == (first, None)
    assert not recorded
    assert (mine.owns(shared), mine.owns(other)) == (False, True)
    (event,) = recorded
    assert event.reason == "ReconciledElsewhere"
    assert 'with the selector "team=a"' in event.message
