"""How much of each test a run tries: a part that is always the same in `make test`, and all of it, at random, in
`make test-all`. CI tries all of it, too, but the same examples of properties in each run.

|                             | `make test`                            | `make test-all`        |
|-----------------------------|----------------------------------------|------------------------|
| of a property               | few of its examples, always the same   | all, at random         |
| of a test with many cases   | one, always the same                   | all                    |
| a test marked `slow`        | not                                    | yes                    |

No outcome depends on the speed of the machine: no example has a time limit, and none is refused because it was slow to
make. A property without settings of its own tries as many examples as the profile says; one with a list of health
checks names `too_slow` in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

ALL: Final = 100  # what hypothesis tries by default
FEWEST: Final = 3

_SPEED: Final = [HealthCheck.too_slow]
# Each keyword is given: hypothesis has other defaults where the environment has CI.
settings.register_profile(
    "fast", max_examples=ALL // 20, deadline=None, derandomize=True, database=None, suppress_health_check=_SPEED
)
settings.register_profile(
    "full", max_examples=ALL, deadline=None, derandomize=False, print_blob=True, suppress_health_check=_SPEED
)
# All examples, without chance: in CI, a failure is of the change that it tests.
settings.register_profile("repeatable", settings.get_profile("full"), derandomize=True, database=None)


def examples(number: int) -> int:
    """The part of `number` that the profile at hand asks for."""
    return max(min(number, FEWEST), number * settings().max_examples // ALL)


def repeat_examples() -> None:
    """Lets properties without chance have the same examples whatever ran before them.

    Hypothesis also tries the constants of those modules of this project that are loaded at the moment, and for that
    parses all of them.
    """
    assert callable(providers._get_local_constants)
    none = providers.Constants()
    providers._get_local_constants = lambda: none


def others_slow(cases: Iterable[Any], *fast: Any) -> list[Any]:
    """The cases of a test that takes long: all but these are marked slow."""
    cases = list(cases)
    assert all(each in cases for each in fast), f"a fast case is none of {cases}"
    return [case if case in fast else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def draw_one_case(metafunc: pytest.Metafunc) -> None:
    """Lets each table of this test have one case, which its name draws: so they are spread over a table.

    Drawn before pytest makes a test of each: making all of them takes longer than running these.
    """
    table = metafunc.parametrize
    name = metafunc.definition.nodeid

    def parametrize(argnames: Any, argvalues: Iterable[Any], *rest: Any, ids: Any = None, **more: Any) -> None:
        cases, named = list(argvalues), None if ids is None or callable(ids) else list(ids)
        fast = [number for number, case in enumerate(cases) if not _is_slow(case)]
        drawn = Random(f"{name} {argnames}").sample(fast or range(len(cases)), k=min(len(cases), 1))  # noqa: S311
        chosen = ids if named is None else [named[number] for number in drawn]
        table(argnames, [cases[number] for number in drawn], *rest, ids=chosen, **more)

    metafunc.parametrize = parametrize  # type: ignore[method-assign]


def _is_slow(case: Any) -> bool:
    return any(mark.name == "slow" for mark in getattr(case, "marks", ()))
