"""Changes of an object that is being written: reported once after the write, or never if they are ruleop's own
write."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.cache.own_writes import OwnWrites

WEB, API = (ObjectKey("", "Service", "shop", name) for name in ("web", "api"))


@pytest.fixture
def reported():
    return []


@pytest.fixture
def own_writes():
    return OwnWrites()


def test_ruleops_own_write_is_not_reported_and_other_changes_are_after_the_response(own_writes, reported):
    with own_writes.writing(WEB) as write:
        assert own_writes.hold(WEB, 5, lambda: reported.append(5))
        assert own_writes.hold(WEB, 6, lambda: reported.append(6))
        write.versions.add(5)
        assert reported == []
    assert reported == [6]


def test_without_a_response_all_changes_are_reported(own_writes, reported):
    with own_writes.writing(WEB):
        assert own_writes.hold(WEB, 5, lambda: reported.append(5))
    assert reported == [5]


def test_a_deletion_is_never_an_own_write(own_writes, reported):
    with own_writes.writing(WEB) as write:
        own_writes.hold(WEB, 0, lambda: reported.append("gone"))
        write.versions.add(0)  # an answer without a version
    assert reported == ["gone"]


def test_changes_of_objects_that_are_not_being_written_are_not_held(own_writes):
    with own_writes.writing(WEB):
        assert not own_writes.hold(API, 5, pytest.fail)
    assert not own_writes.hold(WEB, 5, pytest.fail)


@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "change"]), st.sampled_from([WEB, API]), st.integers(0, 4))))
def test_with_any_overlap_each_change_is_reported_once_or_is_an_own_write(steps):
    """Several concurrent writes of one object, by two CRs."""
    own_writes, reported = OwnWrites(), []
    going: dict[ObjectKey, list[tuple[ExitStack, int]]] = {WEB: [], API: []}
    changes: list[tuple[ObjectKey, int, int]] = []
    answers: dict[ObjectKey, set[int]] = {WEB: set(), API: set()}
    kept: list[tuple[ObjectKey, int, int]] = []

    def end(key, stack, answer, write):
        write.versions.add(answer)
        answers[key].add(answer)
        stack.close()
        if not going[key]:
            due = [each for each in kept if each[0] == key]
            assert [each for each in reported if each in due] == [
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
            if own_writes.hold(key, version, lambda change=change: reported.append(change)):
                assert going[key]
                kept.append(change)
            else:
                assert not going[key]
                reported.append(change)
    for key, writes in going.items():
        while writes:
            stack, answer, write = writes.pop()
            end(key, stack, answer, write)
    assert not kept
    assert len(set(reported)) == len(reported)
