"""What is remembered of a CR between passes, and for how long."""

from __future__ import annotations

import pytest

from ruleop.engine.reconcile.memory import FOREIGN_CAP, REFUSED_CAP, Foreign, Memory, Refusal
from ruleop.kinds import ObjectKey
from ruleop.planning import Failed, Failure
from ruleop.schema.shape import UNKNOWN

A, B = (ObjectKey("", "ConfigMap", "shop", name) for name in "ab")
SHAPES = {A: UNKNOWN, B: UNKNOWN}
IMMUTABLE = Failed(Failure.IMMUTABLE, "it cannot change", "digest")


def obj(value):
    return {"metadata": {"name": "a"}, "spec": {"cpu": value}}


def remember(memory, failed, acted):
    memory.remember(failed, acted, versions={A: "7", B: "7"}, now=100.0)


def test_what_the_server_makes_of_a_value_is_learned_and_unlearned():
    memory = Memory()
    memory.learn({A: (obj("1000m"), obj("1")), B: (obj("1"), obj("1"))}, SHAPES)
    assert set(memory.learned) == {A}
    memory.learn({A: (obj("1"), obj("1"))}, SHAPES)
    assert not memory.learned, "an old answer would hide somebody's change"


def test_a_refusal_for_good_stands_while_other_things_are_written():
    memory = Memory()
    remember(memory, {A: IMMUTABLE}, {A})
    remember(memory, {}, {B})
    assert memory.failed == {A: Refusal(IMMUTABLE, "7", 100.0)}


def test_a_refusal_for_good_ends_when_the_object_is_acted_upon():
    memory = Memory()
    remember(memory, {A: IMMUTABLE}, {A})
    remember(memory, {B: IMMUTABLE}, {A, B})
    assert memory.failed == {B: Refusal(IMMUTABLE, "7", 100.0)}


def test_a_refusal_for_good_stands_for_a_minute_and_until_the_object_is_another_or_the_period_is_over():
    refusal = Refusal(IMMUTABLE, "7", 100.0)
    assert refusal.stands("8", 159.0, 0.0)
    assert not refusal.stands("8", 160.0, 0.0)
    assert refusal.stands("7", 1e9, 0.0)
    assert refusal.stands("7", 699.0, 600.0)
    assert not refusal.stands("7", 700.0, 600.0)
    assert refusal.stands("7", 101.0, 1.0), "a short period does not hurry"


def test_the_same_wish_is_tried_later_and_later_and_another_one_from_the_beginning():
    memory, waits = Memory(), []
    for _ in range(8):
        remember(memory, {A: IMMUTABLE}, {A})
        waits.append(memory.failed[A].wait)
    assert waits == [60, 120, 240, 480, 960, 1920, REFUSED_CAP, REFUSED_CAP]
    remember(memory, {A: Failed(Failure.IMMUTABLE, "it cannot change", "another")}, {A})
    assert memory.failed[A].wait == 60


@pytest.mark.parametrize("failure", [failure for failure in Failure if failure is not Failure.IMMUTABLE])
def test_any_other_failure_is_simply_tried_again(failure):
    memory = Memory()
    remember(memory, {A: Failed(failure, "no", "digest")}, {A})
    assert not memory.failed


def test_a_foreign_object_is_looked_at_less_and_less_often():
    memory = Memory()
    memory.meet({A: obj("theirs")}, 100.0)
    assert memory.foreign[A] == Foreign(obj("theirs"), 101.0, 1.0)
    waits, foreign = [], memory.foreign[A]
    for _ in range(8):
        foreign = foreign.again(obj("still theirs"), 200.0)
        waits.append(foreign.wait)
        assert foreign.look_at == 200.0 + foreign.wait
    assert waits == [2, 4, 8, 16, 32, FOREIGN_CAP, FOREIGN_CAP, FOREIGN_CAP]
    memory.foreign[A] = foreign.unseen("no answer", 250.0)
    assert memory.foreign[A].look_at == 250.0 + FOREIGN_CAP, "nor does one that cannot be read"
    memory.meet({A: obj("met again")}, 300.0)
    assert memory.foreign[A] == Foreign(obj("met again"), 360.0, FOREIGN_CAP), "meeting it again does not hurry"


def test_of_what_is_not_wanted_any_more_nothing_is_remembered():
    memory = Memory()
    memory.learn({A: (obj("1000m"), obj("1")), B: (obj("1000m"), obj("1"))}, SHAPES)
    memory.meet({A: obj("theirs"), B: obj("theirs")}, 100.0)
    remember(memory, {A: IMMUTABLE, B: IMMUTABLE}, {A, B})
    memory.recreated = {A: "digest", B: "digest"}
    memory.keep({B})
    assert [set(part) for part in (memory.learned, memory.foreign, memory.failed, memory.recreated)] == [{B}] * 4


def test_what_could_be_written_is_in_nobodys_way():
    memory = Memory()
    memory.meet({A: obj("theirs")}, 100.0)
    memory.learn({A: (obj("1"), obj("1"))}, SHAPES)
    assert not memory.foreign
