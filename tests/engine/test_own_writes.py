"""Changes of an object that is just being written: told once, later, or never if they are the write's echo."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.engine.cache.own_writes import OwnWrites
from ruleop.kinds import ObjectKey

WEB, API = (ObjectKey("", "Service", "shop", name) for name in ("web", "api"))


@pytest.fixture
def told():
    return []


@pytest.fixture
def own_writes():
    return OwnWrites()


def test_the_echo_is_not_told_and_the_rest_is_told_after_the_answer(own_writes, told):
    with own_writes.writing(WEB) as write:
        assert own_writes.hold(WEB, 5, lambda: told.append(5))
        assert own_writes.hold(WEB, 6, lambda: told.append(6))
        write.answered(5)
        assert told == []
    assert told == [6]


def test_without_an_answer_all_is_told(own_writes, told):
    with own_writes.writing(WEB):
        assert own_writes.hold(WEB, 5, lambda: told.append(5))
    assert told == [5]


def test_the_end_of_an_object_is_no_echo(own_writes, told):
    with own_writes.writing(WEB) as write:
        own_writes.hold(WEB, 0, lambda: told.append("gone"))
        write.answered(0)  # an answer without a version
    assert told == ["gone"]


def test_what_is_not_being_written_is_not_kept(own_writes):
    with own_writes.writing(WEB):
        assert not own_writes.hold(API, 5, pytest.fail)
    assert not own_writes.hold(WEB, 5, pytest.fail)


@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "change"]), st.sampled_from([WEB, API]), st.integers(0, 4))))
def test_whatever_overlaps_each_change_is_told_once_or_is_an_echo(steps):
    """Several writes of one object at once: two CRs want it."""
    own_writes, told = OwnWrites(), []
    going: dict[ObjectKey, list[tuple[ExitStack, int]]] = {WEB: [], API: []}
    changes: list[tuple[ObjectKey, int, int]] = []
    answers: dict[ObjectKey, set[int]] = {WEB: set(), API: set()}
    kept: list[tuple[ObjectKey, int, int]] = []

    def end(key, stack, answer, write):
        write.answered(answer)
        answers[key].add(answer)
        stack.close()
        if not going[key]:
            due = [each for each in kept if each[0] == key]
            assert [each for each in told if each in due] == [
                each for each in due if each[2] not in answers[key] or not each[2]
            ]
            kept[:] = [each for each in kept if each[0] != key]
            answers[key].clear()

    for number, (step, key, version) in enumerate(steps):
        if step == "begin":
            stack = ExitStack()
            going[key].append((stack, version, stack.enter_context(own_writes.writing(key))))
        elif step == "end" and going[key]:
            stack, answer, write = going[key].pop()
            end(key, stack, answer, write)
        elif step == "change":
            change = (key, number, version)
            changes.append(change)
            if own_writes.hold(key, version, lambda change=change: told.append(change)):
                assert going[key]
                kept.append(change)
            else:
                assert not going[key]
                told.append(change)
    for key, writes in going.items():
        while writes:
            stack, answer, write = writes.pop()
            end(key, stack, answer, write)
    assert not kept
    assert len(set(told)) == len(told)
