"""When putting back becomes a fight, how it slows down, and when it is over. No clock but the test's."""

from __future__ import annotations

import pytest

from ruleop.engine.reconcile.field_conflicts import (
    CAP,
    ENOUGH,
    FIRST,
    QUIET,
    WINDOW,
    FieldConflicts,
    Standing,
    altered,
    correction,
    fields_of,
    message,
)
from ruleop.engine.reconcile.field_managers import opponents
from ruleop.kinds import ObjectKey
from ruleop.planning import Create, Delete, Patch, Replace, ServerSideApply

KEY = ObjectKey("apps", "Deployment", "shop", "web")
REPLICAS = frozenset({"spec.replicas"})
IMAGE = frozenset({"spec.image"})


class Ring:
    """A child, somebody who undoes what is written of it, and a clock."""

    def __init__(self):
        self.fights = FieldConflicts()
        self.now = 1000.0

    def undone(self, fields=REPLICAS, wanted="a"):
        return self.fights.meets(KEY, wanted, fields, self.now)

    def put_back(self, fields=REPLICAS, wanted="a", *, altered=False):
        self.fights.corrected(KEY, wanted, fields, self.now, altered=altered)

    def rounds(self, count, apart=1.0, **more):
        """What becomes of each, until one is not to be put back at once."""
        for _ in range(count):
            if (standing := self.undone(**more)) is not Standing.FREE:
                return standing
            self.put_back(**more)
            self.now += apart
        return Standing.FREE

    def noticed(self):
        assert self.rounds(ENOUGH) is Standing.FREE
        assert self.undone() is Standing.NOTICED
        return self


def test_a_person_is_put_back_at_once_each_time():
    ring = Ring()
    assert ring.rounds(ENOUGH) is Standing.FREE
    ring.now += WINDOW + 1
    assert ring.rounds(ENOUGH) is Standing.FREE
    assert ring.fights.told(ring.now) == {}


def test_the_same_fields_again_and_again_are_a_fight():
    ring = Ring()
    assert ring.rounds(100) is Standing.NOTICED
    assert ring.now == 1000.0 + ENOUGH


def test_slow_changes_are_no_fight():
    assert Ring().rounds(100, apart=WINDOW / (ENOUGH - 1)) is Standing.FREE


def test_other_fields_are_another_matter():
    """Somebody who works through an object changes one field after the other."""
    ring = Ring()
    assert ring.rounds(ENOUGH - 1) is Standing.FREE
    assert ring.rounds(ENOUGH - 1, fields=IMAGE) is Standing.FREE
    assert ring.rounds(1) is Standing.FREE
    both = Ring()
    for _ in range(ENOUGH):
        assert both.rounds(1, fields=IMAGE | REPLICAS) is Standing.FREE
    assert both.undone() is Standing.NOTICED, "what they have in common counts"


def test_another_wish_is_carried_out_at_once():
    ring = Ring().noticed()
    assert ring.undone(wanted="b") is Standing.FREE
    ring.put_back(wanted="b")
    assert ring.fights.told(ring.now) == {}


def test_corrections_come_later_and_later():
    ring = Ring().noticed()
    pauses = []
    for _ in range(8):
        start = ring.now
        while ring.undone() is Standing.HELD:
            ring.now = ring.fights.look_at(ring.now)
        pauses.append(ring.now - start)
        ring.put_back()
    assert pauses == [FIRST, 20, 40, 80, 160, CAP, CAP, CAP]


def test_it_is_held_while_undone_and_the_pause_lasts_and_not_before():
    """Planning leaves an object alone only where a difference was seen."""
    ring = Ring().noticed()
    ring.fights.name(KEY, "words")
    (fight,) = ring.fights.told(ring.now).values()
    assert (fight.wanted, fight.message, fight.held) == ("a", "words", True)
    ring.now += FIRST
    assert not ring.fights.told(ring.now)[KEY].held
    assert ring.undone() is Standing.FREE
    ring.put_back()
    assert not ring.fights.told(ring.now)[KEY].held
    assert ring.undone() is Standing.HELD
    assert ring.fights.told(ring.now)[KEY].held


def test_it_is_over_when_a_correction_has_stood():
    ring = Ring().noticed()
    ring.now += FIRST
    assert ring.undone() is Standing.FREE
    ring.put_back()
    assert ring.fights.look_at(ring.now) == ring.now + QUIET
    ring.now += QUIET - 1
    ring.fights.settle(ring.now)
    assert ring.fights
    ring.now += 1
    ring.fights.settle(ring.now)
    assert not ring.fights


def test_it_is_over_when_the_other_side_gives_in():
    """Held, and as it should be after all."""
    ring = Ring().noticed()
    ring.now += FIRST
    ring.fights.settle(ring.now)
    assert ring.fights.look_at(ring.now) == ring.now + QUIET
    ring.now += QUIET
    ring.fights.settle(ring.now)
    assert not ring.fights


def test_it_goes_on_through_the_longest_pause():
    ring = Ring().noticed()
    for _ in range(6):
        while ring.undone() is Standing.HELD:
            ring.now = ring.fights.look_at(ring.now)
            ring.fights.settle(ring.now)
            assert ring.fights
        ring.put_back()


def test_what_was_no_fight_is_forgotten():
    ring = Ring()
    ring.put_back()
    ring.fights.settle(ring.now + WINDOW)
    assert ring.fights
    ring.fights.settle(ring.now + WINDOW + 1)
    assert not ring.fights


def test_the_server_itself_may_be_the_other_side():
    ring = Ring()
    for _ in range(ENOUGH):
        assert ring.undone() is Standing.FREE
        ring.put_back(altered=True)
    assert ring.undone() is Standing.NOTICED
    assert ring.fights.is_altered(KEY)
    ring = Ring()
    ring.put_back(altered=False)
    ring.put_back(altered=True)
    assert not ring.fights.is_altered(KEY), "once it took the value as it was"


# -- what actions say ---------------------------------------------------------------------------------------------------------------------

LIVE = {"kind": "Deployment", "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"}, "spec": {"replicas": 5, "theirs": 1}}
WANTED = {**LIVE, "spec": {"replicas": 2, "theirs": 1}}
PATCH = Patch(KEY, "web", {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"replicas": 2}}, LIVE, WANTED, "a")


def test_fields_of_corrections():
    assert correction(PATCH) == REPLICAS, "guards are no fields"
    assert correction(Replace(KEY, "web", WANTED, LIVE, "a")) == REPLICAS
    sent = {"kind": "Deployment", "metadata": {"name": "web", "uid": "u"}, "spec": {"replicas": 2}}
    assert correction(ServerSideApply(KEY, "web", sent, LIVE, "a")) == REPLICAS, "what an apply leaves out stays"
    assert correction(Create(KEY, "web", sent, "a")) == frozenset({""})
    assert correction(Delete(KEY, "web", LIVE, "pruned")) is None
    assert correction(Patch(KEY, "web", PATCH.patch, LIVE, WANTED, "a", "adopted")) is None
    assert fields_of({"metadata": {"labels": {"a": None}}, "spec": {"ports": [1], "map": {}}}) == {
        "metadata.labels.a",
        "spec.ports",
        "spec.map",
    }


def test_an_answer_that_is_not_what_was_sent():
    assert not altered(PATCH, WANTED, REPLICAS)
    assert altered(PATCH, {**WANTED, "spec": {"replicas": 3, "theirs": 1}}, REPLICAS)
    assert not altered(PATCH, {**WANTED, "spec": {"replicas": 2, "theirs": 9}}, REPLICAS), "another field is another matter"


def test_messages():
    create = Create(KEY, "web", LIVE, "a")
    assert message(create, [], [], by_server=False) == "Deployment/web is repeatedly deleted; backing off before recreating it"
    assert message(PATCH, ["spec.replicas"], ["kubectl", "scaler"], by_server=False) == (
        "Deployment/web: spec.replicas is repeatedly changed by kubectl and scaler; backing off before reverting it"
    )
    assert message(PATCH, list("abcde"), [], by_server=False) == (
        "Deployment/web: a, b, c, d and more are repeatedly changed by somebody; backing off before reverting it"
    )
    assert "spec.replicas is changed by the API server or a webhook at each write" in message(PATCH, ["spec.replicas"], [], by_server=True)


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
        ([entry("early", {}, "2026-01-01T00:00:00Z"), entry("late", {"f:spec": {"f:paused": {}}}, "2026-02-01T00:00:00Z")], ["late"]),
        # ... but not who only reports.
        ([entry("early", {}), {**entry("reporter", {"f:status": {}}, "2026-02-01T00:00:00Z"), "subresource": "status"}], ["early"]),
        # A value under our name that we do not want: there are two of us.
        ([entry("ruleop", {"f:spec": {"f:replicas": {}}})], ["another ruleop or a webhook"]),
        ([entry("ruleop", {"f:spec": {"f:paused": {}}})], []),
        ([], []),
        (None, []),
    ],
)
def test_who_owns_what_differs(entries, found):
    live = {"spec": {"replicas": 5, "paused": True, "containers": [{"name": "app", "image": "theirs"}]}}
    wanted = {"spec": {"replicas": 2, "containers": [{"name": "app", "image": "ours"}, {"name": "side"}], "removed": 1}}
    assert opponents({"managedFields": entries}, live, wanted) == found
