"""When drift becomes a field conflict, how ruleop backs off, and when it ends. The test sets the clock."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Create, Delete, Patch, ServerSideApply
from ruleop.planning.changes.drift import (
    CAP,
    ENOUGH,
    FIRST,
    QUIET,
    WINDOW,
    Decision,
    conflict_message,
    corrected_fields,
    fields_of,
    is_altered,
    managers_of,
    reverted,
)

KEY = ObjectKey("apps", "Deployment", "shop", "web")
REPLICAS = frozenset({"spec.replicas"})
IMAGE = frozenset({"spec.image"})


class DriftingChild:
    """A child, a client that changes it, and a clock."""

    def __init__(self):
        self.drift = None
        self.now = 1000.0

    def changed(self, fields=REPLICAS, desired="a"):
        """The decision after a client has changed these fields."""
        if self.drift is None or self.drift.desired_digest != desired:
            return Decision.REVERT
        decision = self.drift.decide(fields, self.now)
        if decision is Decision.REPORT:
            self.drift = self.drift.noticed(fields, "in conflict", self.now)
        elif decision is Decision.HOLD:
            self.drift = self.drift.held()
        return decision

    def revert(self, fields=REPLICAS, desired="a", *, altered=False):
        self.drift = reverted(self.drift, desired, fields, self.now, altered=altered)

    def rounds(self, count, apart=1.0, **more):
        """The first decision other than to revert at once."""
        for _ in range(count):
            if (decision := self.changed(**more)) is not Decision.REVERT:
                return decision
            self.revert(**more)
            self.now += apart
        return Decision.REVERT

    def noticed(self):
        assert self.rounds(ENOUGH) is Decision.REVERT
        assert self.changed() is Decision.REPORT
        return self

    def next_check(self):
        return self.drift.next_check(self.now)


def test_a_few_changes_by_hand_are_reverted_at_once():
    child = DriftingChild()
    assert child.rounds(ENOUGH) is Decision.REVERT
    child.now += WINDOW + 1
    assert child.rounds(ENOUGH) is Decision.REVERT
    assert child.drift.message == ""


def test_repeated_changes_of_the_same_fields_are_a_conflict():
    child = DriftingChild()
    assert child.rounds(100) is Decision.REPORT
    assert child.now == 1000.0 + ENOUGH


def test_slow_changes_are_not_a_conflict():
    assert DriftingChild().rounds(100, apart=WINDOW / (ENOUGH - 1)) is Decision.REVERT


def test_changes_of_different_fields_are_counted_separately():
    """A person may change one field after the other."""
    child = DriftingChild()
    assert child.rounds(ENOUGH - 1) is Decision.REVERT
    assert child.rounds(ENOUGH - 1, fields=IMAGE) is Decision.REVERT
    assert child.rounds(1) is Decision.REVERT
    both = DriftingChild()
    for _ in range(ENOUGH):
        assert both.rounds(1, fields=IMAGE | REPLICAS) is Decision.REVERT
    assert both.changed() is Decision.REPORT, "what they have in common counts"


def test_a_changed_desired_object_is_written_at_once_during_a_conflict():
    child = DriftingChild().noticed()
    assert child.changed(desired="b") is Decision.REVERT
    child.revert(desired="b")
    assert child.drift.message == ""


def test_reverts_in_a_conflict_back_off():
    child = DriftingChild().noticed()
    pauses = []
    for _ in range(8):
        start = child.now
        while child.changed() is Decision.HOLD:
            child.now = child.next_check()
        pauses.append(child.now - start)
        child.revert()
    assert pauses == [FIRST, 20, 40, 80, 160, CAP, CAP, CAP]


def test_a_field_is_drifted_only_while_it_differs_and_the_backoff_lasts():
    child = DriftingChild().noticed()
    assert child.drift.drifted
    child.now += FIRST
    assert child.changed() is Decision.REVERT
    child.revert()
    assert not child.drift.drifted
    assert child.changed() is Decision.HOLD
    assert child.drift.drifted


def test_a_conflict_ends_when_a_revert_lasts():
    child = DriftingChild().noticed()
    child.now += FIRST
    assert child.changed() is Decision.REVERT
    child.revert()
    assert child.next_check() == child.now + QUIET
    child.now += QUIET - 1
    assert not child.drift.is_over(child.now)
    child.now += 1
    assert child.drift.is_over(child.now)


def test_a_conflict_ends_when_the_fields_return_to_the_desired_values():
    """A conflict whose fields are as desired before the next revert."""
    child = DriftingChild().noticed()
    child.now += FIRST
    assert not child.drift.is_over(child.now)
    assert child.next_check() == child.now + QUIET
    child.now += QUIET
    assert child.drift.is_over(child.now)


def test_a_conflict_outlasts_the_longest_backoff():
    child = DriftingChild().noticed()
    for _ in range(6):
        while child.changed() is Decision.HOLD:
            child.now = child.next_check()
            assert not child.drift.is_over(child.now)
        child.revert()


def test_drift_without_a_conflict_expires():
    child = DriftingChild()
    child.revert()
    assert not child.drift.is_over(child.now + WINDOW)
    assert child.drift.is_over(child.now + WINDOW + 1)


def test_a_value_altered_by_the_server_on_each_write_is_a_conflict():
    child = DriftingChild()
    for _ in range(ENOUGH):
        assert child.changed() is Decision.REVERT
        child.revert(altered=True)
    assert child.changed() is Decision.REPORT
    assert child.drift.altered
    child = DriftingChild()
    child.revert(altered=False)
    child.revert(altered=True)
    assert not child.drift.altered, "once it took the value as it was"


def test_a_new_conflict_is_reported_once():
    child = DriftingChild().noticed()
    noticed = child.drift
    assert noticed.noticed(REPLICAS, "in other words", child.now + 5) is noticed


# -- fields of actions -------------------------------------------------------------------------------------------------

LIVE = {
    "kind": "Deployment",
    "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
    "spec": {"replicas": 5, "theirs": 1},
}
WANTED = {**LIVE, "spec": {"replicas": 2, "theirs": 1}}
PATCH = Patch(
    KEY, "web", {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"replicas": 2}}, LIVE, WANTED, "a"
)


def test_corrected_fields_are_computed_for_each_kind_of_action():
    assert corrected_fields(PATCH) == REPLICAS, "guards are no fields"
    sent = {"kind": "Deployment", "metadata": {"name": "web", "uid": "u"}, "spec": {"replicas": 2}}
    assert corrected_fields(ServerSideApply(KEY, "web", sent, LIVE, "a")) == REPLICAS, "what an apply leaves out stays"
    assert corrected_fields(Create(KEY, "web", sent, "a")) == frozenset({""})
    assert corrected_fields(Delete(KEY, "web", LIVE, "pruned")) is None
    assert corrected_fields(Patch(KEY, "web", PATCH.patch, LIVE, WANTED, "a", "adopted")) is None
    assert fields_of({"metadata": {"labels": {"a": None}}, "spec": {"ports": [1], "map": {}}}) == {
        "metadata.labels.a",
        "spec.ports",
        "spec.map",
    }


def test_an_answer_that_differs_in_the_corrected_fields_is_altered():
    assert not is_altered(PATCH, WANTED, REPLICAS)
    assert is_altered(PATCH, {**WANTED, "spec": {"replicas": 3, "theirs": 1}}, REPLICAS)
    assert not is_altered(PATCH, {**WANTED, "spec": {"replicas": 2, "theirs": 9}}, REPLICAS), (
        "another field is another matter"
    )


def test_conflict_messages_name_fields_and_managers():
    create = Create(KEY, "web", LIVE, "a")
    assert (
        conflict_message(create, [], [], by_server=False)
        == "Deployment/web is repeatedly deleted; backing off before recreating it"
    )
    assert conflict_message(PATCH, ["spec.replicas"], ["kubectl", "scaler"], by_server=False) == (
        "Deployment/web: spec.replicas is repeatedly changed by kubectl and scaler; backing off before reverting it"
    )
    assert conflict_message(PATCH, list("abcde"), [], by_server=False) == (
        "Deployment/web: a, b, c, d and more are repeatedly changed by somebody; backing off before reverting it"
    )
    assert "spec.replicas is changed by the API server or a webhook at each write" in conflict_message(
        PATCH, ["spec.replicas"], [], by_server=True
    )


# -- managers ----------------------------------------------------------------------------------------------------------


def entry(manager, fields, time="2026-01-01T00:00:00Z"):
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


CONTAINER = {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:image": {}}}}}


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([entry("scaler", {"f:spec": {"f:replicas": {}}}), entry("other", {"f:spec": {"f:paused": {}}})], ["scaler"]),
        ([entry("ruleop", {"f:spec": {"f:paused": {}}}), entry("injector", CONTAINER)], ["injector"]),
        ([entry("b", {"f:spec": {"f:replicas": {}}}), entry("a", CONTAINER)], ["a", "b"]),
        # A removed field has no manager: the last writer is reported.
        (
            [
                entry("early", {}, "2026-01-01T00:00:00Z"),
                entry("late", {"f:spec": {"f:paused": {}}}, "2026-02-01T00:00:00Z"),
            ],
            ["late"],
        ),
        # ... unless it wrote only the status.
        (
            [
                entry("early", {}),
                {**entry("reporter", {"f:status": {}}, "2026-02-01T00:00:00Z"), "subresource": "status"},
            ],
            ["early"],
        ),
        # An undesired value under ruleop's name: another ruleop.
        ([entry("ruleop", {"f:spec": {"f:replicas": {}}})], ["another ruleop or a webhook"]),
        ([entry("ruleop", {"f:spec": {"f:paused": {}}})], []),
        # A map or a list as a whole is named only if nobody owns a field in it.
        ([entry("ruleop", {"f:spec": {}}), entry("scaler", {"f:spec": {"f:replicas": {}}})], ["scaler"]),
        ([entry("ruleop", {"f:spec": {}}), entry("atomic", {"f:spec": {"f:containers": {}}})], ["atomic"]),
        ([entry("ruleop", {"f:spec": {}}), entry("late", {"f:metadata": {"f:labels": {}}})], ["late"]),
        ([entry("ruleop", {"f:spec": {}})], ["another ruleop or a webhook"]),
        ([], []),
    ],
)
def test_the_managers_of_differing_fields_are_found(entries, found):
    live = {"spec": {"replicas": 5, "paused": True, "containers": [{"name": "app", "image": "theirs"}]}}
    desired = {
        "spec": {"replicas": 2, "containers": [{"name": "app", "image": "ours"}, {"name": "side"}], "removed": 1}
    }
    assert managers_of(entries, live, desired) == found
