"""When drift becomes a field conflict, how ruleop backs off, and when it is over. No clock but the test's."""

from __future__ import annotations

import pytest

from ruleop.kinds import ObjectKey
from ruleop.planning import Create, Delete, Patch, Replace, ServerSideApply
from ruleop.planning.drift import (
    CAP,
    ENOUGH,
    FIRST,
    QUIET,
    WINDOW,
    Standing,
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


class Contested:
    """A child, somebody who changes what is written of it, and a clock."""

    def __init__(self):
        self.drift = None
        self.now = 1000.0

    def changed(self, fields=REPLICAS, desired="a"):
        """Somebody changes these fields: what ruleop does about it, when it plans."""
        if self.drift is None or self.drift.desired != desired:
            return Standing.FREE
        standing = self.drift.standing(fields, self.now)
        if standing is Standing.NOTICED:
            self.drift = self.drift.noticed(fields, "in conflict", self.now)
        elif standing is Standing.HELD:
            self.drift = self.drift.held()
        return standing

    def revert(self, fields=REPLICAS, desired="a", *, altered=False):
        self.drift = reverted(self.drift, desired, fields, self.now, altered=altered)

    def rounds(self, count, apart=1.0, **more):
        """What becomes of each change, until one is not reverted at once."""
        for _ in range(count):
            if (standing := self.changed(**more)) is not Standing.FREE:
                return standing
            self.revert(**more)
            self.now += apart
        return Standing.FREE

    def noticed(self):
        assert self.rounds(ENOUGH) is Standing.FREE
        assert self.changed() is Standing.NOTICED
        return self

    def next_check(self):
        return self.drift.next_check(self.now, held=False)


def test_changes_by_a_person_are_reverted_at_once():
    child = Contested()
    assert child.rounds(ENOUGH) is Standing.FREE
    child.now += WINDOW + 1
    assert child.rounds(ENOUGH) is Standing.FREE
    assert child.drift.message == ""


def test_the_same_fields_changed_repeatedly_are_a_conflict():
    child = Contested()
    assert child.rounds(100) is Standing.NOTICED
    assert child.now == 1000.0 + ENOUGH


def test_slow_changes_are_no_conflict():
    assert Contested().rounds(100, apart=WINDOW / (ENOUGH - 1)) is Standing.FREE


def test_changes_of_other_fields_do_not_add_up():
    """Somebody who works through an object changes one field after the other."""
    child = Contested()
    assert child.rounds(ENOUGH - 1) is Standing.FREE
    assert child.rounds(ENOUGH - 1, fields=IMAGE) is Standing.FREE
    assert child.rounds(1) is Standing.FREE
    both = Contested()
    for _ in range(ENOUGH):
        assert both.rounds(1, fields=IMAGE | REPLICAS) is Standing.FREE
    assert both.changed() is Standing.NOTICED, "what they have in common counts"


def test_another_desired_object_is_written_at_once():
    child = Contested().noticed()
    assert child.changed(desired="b") is Standing.FREE
    child.revert(desired="b")
    assert child.drift.message == ""


def test_reverts_in_a_conflict_back_off():
    child = Contested().noticed()
    pauses = []
    for _ in range(8):
        start = child.now
        while child.changed() is Standing.HELD:
            child.now = child.next_check()
        pauses.append(child.now - start)
        child.revert()
    assert pauses == [FIRST, 20, 40, 80, 160, CAP, CAP, CAP]


def test_it_is_held_only_while_its_fields_differ_and_the_pause_lasts():
    child = Contested().noticed()
    assert child.drift.undone
    child.now += FIRST
    assert child.changed() is Standing.FREE
    child.revert()
    assert not child.drift.undone
    assert child.changed() is Standing.HELD
    assert child.drift.undone


def test_it_is_over_when_a_revert_has_lasted():
    child = Contested().noticed()
    child.now += FIRST
    assert child.changed() is Standing.FREE
    child.revert()
    assert child.next_check() == child.now + QUIET
    child.now += QUIET - 1
    assert not child.drift.is_over(child.now)
    child.now += 1
    assert child.drift.is_over(child.now)


def test_it_is_over_when_the_other_side_gives_in():
    """Held, and as it should be after all."""
    child = Contested().noticed()
    child.now += FIRST
    assert not child.drift.is_over(child.now)
    assert child.next_check() == child.now + QUIET
    child.now += QUIET
    assert child.drift.is_over(child.now)


def test_it_lasts_through_the_longest_pause():
    child = Contested().noticed()
    for _ in range(6):
        while child.changed() is Standing.HELD:
            child.now = child.next_check()
            assert not child.drift.is_over(child.now)
        child.revert()


def test_drift_that_was_no_conflict_is_forgotten():
    child = Contested()
    child.revert()
    assert not child.drift.is_over(child.now + WINDOW)
    assert child.drift.is_over(child.now + WINDOW + 1)


def test_the_server_itself_may_be_the_other_side():
    child = Contested()
    for _ in range(ENOUGH):
        assert child.changed() is Standing.FREE
        child.revert(altered=True)
    assert child.changed() is Standing.NOTICED
    assert child.drift.altered
    child = Contested()
    child.revert(altered=False)
    child.revert(altered=True)
    assert not child.drift.altered, "once it took the value as it was"


def test_a_new_conflict_is_noticed_once():
    child = Contested().noticed()
    noticed = child.drift
    assert noticed.noticed(REPLICAS, "in other words", child.now + 5) is noticed


# -- what actions say ---------------------------------------------------------------------------------------------------------------------

LIVE = {
    "kind": "Deployment",
    "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
    "spec": {"replicas": 5, "theirs": 1},
}
WANTED = {**LIVE, "spec": {"replicas": 2, "theirs": 1}}
PATCH = Patch(
    KEY, "web", {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"replicas": 2}}, LIVE, WANTED, "a"
)


def test_fields_of_corrections():
    assert corrected_fields(PATCH) == REPLICAS, "guards are no fields"
    assert corrected_fields(Replace(KEY, "web", WANTED, LIVE, "a")) == REPLICAS
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


def test_an_answer_that_is_not_what_was_sent():
    assert not is_altered(PATCH, WANTED, REPLICAS)
    assert is_altered(PATCH, {**WANTED, "spec": {"replicas": 3, "theirs": 1}}, REPLICAS)
    assert not is_altered(PATCH, {**WANTED, "spec": {"replicas": 2, "theirs": 9}}, REPLICAS), (
        "another field is another matter"
    )


def test_messages():
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


# -- who it is ----------------------------------------------------------------------------------------------------------------------------


def entry(manager, fields, time="2026-01-01T00:00:00Z"):
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


CONTAINER = {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:image": {}}}}}


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([entry("scaler", {"f:spec": {"f:replicas": {}}}), entry("other", {"f:spec": {"f:paused": {}}})], ["scaler"]),
        ([entry("ruleop", {"f:spec": {"f:paused": {}}}), entry("injector", CONTAINER)], ["injector"]),
        ([entry("b", {"f:spec": {"f:replicas": {}}}), entry("a", CONTAINER)], ["a", "b"]),
        # What was removed is owned by nobody: the last to write is the likeliest.
        (
            [
                entry("early", {}, "2026-01-01T00:00:00Z"),
                entry("late", {"f:spec": {"f:paused": {}}}, "2026-02-01T00:00:00Z"),
            ],
            ["late"],
        ),
        # ... but not who only reports.
        (
            [
                entry("early", {}),
                {**entry("reporter", {"f:status": {}}, "2026-02-01T00:00:00Z"), "subresource": "status"},
            ],
            ["early"],
        ),
        # A value under our name that we do not want: there are two of us.
        ([entry("ruleop", {"f:spec": {"f:replicas": {}}})], ["another ruleop or a webhook"]),
        ([entry("ruleop", {"f:spec": {"f:paused": {}}})], []),
        ([], []),
    ],
)
def test_who_owns_what_differs(entries, found):
    live = {"spec": {"replicas": 5, "paused": True, "containers": [{"name": "app", "image": "theirs"}]}}
    wanted = {"spec": {"replicas": 2, "containers": [{"name": "app", "image": "ours"}, {"name": "side"}], "removed": 1}}
    assert managers_of(entries, live, wanted) == found
