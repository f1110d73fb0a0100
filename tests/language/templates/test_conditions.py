"""Outcomes of conditions are found exactly if there are some."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.language.templates.bodies.conditions import (
    Assignment,
    Atom,
    Both,
    Either,
    Formula,
    Needs,
    Negation,
    Solver,
    TooLarge,
)

FREE = [Atom() for _ in range(3)]
RIVALS: list[Atom] = []
RIVALS += [Atom(RIVALS) for _ in range(3)]  # one of them at most is true
FORMULAS = st.recursive(
    st.sampled_from([True, False, *FREE, *RIVALS]),
    lambda inner: st.one_of(st.builds(Negation, inner), st.builds(Both, inner, inner), st.builds(Either, inner, inner)),
    max_leaves=5,
)
NEEDS = st.lists(st.tuples(FORMULAS, st.booleans()), max_size=3).map(tuple)
ALL = [
    dict(zip((*FREE, *RIVALS), outcomes, strict=True))
    for outcomes in itertools.product((True, False), repeat=6)
    if sum(outcomes[3:]) <= 1
]


def truth(formula: Formula, outcomes: Assignment) -> bool:
    match formula:
        case Atom():
            return outcomes[formula]
        case Negation():
            return not truth(formula.formula, outcomes)
        case Both():
            return truth(formula.left, outcomes) and truth(formula.right, outcomes)
        case Either():
            return truth(formula.left, outcomes) or truth(formula.right, outcomes)
    return formula


def are_met(needs: Needs, outcomes: Assignment) -> bool:
    return all(truth(formula, outcomes) is outcome for formula, outcome in needs)


@given(NEEDS, st.lists(NEEDS, max_size=3), st.booleans())
def test_outcomes_meet_all_needs_and_none_of_the_others(needs: Needs, without: list[Needs], prefers: bool) -> None:
    valid = [each for each in ALL if are_met(needs, each) and not any(are_met(one, each) for one in without)]
    found = Solver().solve(needs, without, lambda _: prefers)
    assert (found is not None) == bool(valid)
    if found is not None:
        completed = [each for each in ALL if found.items() <= each.items()]
        assert completed
        assert all(each in valid for each in completed)


def test_a_search_may_decide_about_any_number_of_conditions():
    needs = tuple((Either(Atom(), Atom()), True) for _ in range(600))
    found = Solver(left=10_000).solve(needs)  # each is evaluated some times, and not once for each of the others
    assert found is not None
    assert len(found) == len(needs)


def test_the_work_of_all_searches_for_one_template_has_a_limit():
    solver, needs = Solver(left=100), tuple((Atom(), True) for _ in range(30))
    for _ in range(3):
        assert solver.solve(needs) is not None
    with pytest.raises(TooLarge):
        solver.solve(needs)


def test_a_condition_of_many_parts_is_the_work_of_many():
    whole: Formula = Atom()
    for _ in range(200):
        whole = Either(Atom(), whole)
    assert Solver(left=10_000).solve(((whole, True),)) is not None
    with pytest.raises(TooLarge):
        Solver(left=100).solve(((whole, True),))
