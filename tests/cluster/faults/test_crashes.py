"""The operator is killed at each of its writes, before the server gets it or after the server has carried it out, and
started again. The objects are the same as without a crash.

In memory both are tried at each write. On the real server, where each takes seconds, they take turns, at the first of
the writes of a name: the others differ from it in their bodies, and the server answers them in the same way.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster.faults.lab import Lab, Make
from tests.cluster.faults.proxy import Call, CutError
from tests.cluster.faults.scenarios import SCENARIOS, Recording, run_with_fault

AT_ONCE = 4


class Crash:
    """Kills the operator when it makes a write of this name for the n-th time. How often it writes the status depends
    on when it learns what, so the n-th of all its writes is not always the same."""

    def __init__(self, write: str, number: int, *, done: bool) -> None:
        self.write, self.number, self.done = write, number, done

    def __call__(self, lab: Lab) -> None:
        async def strike(call: Call) -> None:
            if str(call) == self.write and self.number == sum(
                str(each) == self.write for each in lab.proxy.calls if 0 < each.number <= call.number
            ):
                call.hit = True
                lab.kill()
                raise CutError

        if self.done:
            lab.proxy.after = strike
        else:
            lab.proxy.before = strike


@pytest.mark.timeout(900)  # the scenario is gone through some thirty times
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_crash_at_any_write_does_not_change_the_final_state(
    make: Make, recordings: dict[Any, Recording], scenario: Any, request: pytest.FixtureRequest
) -> None:
    recording = recordings[scenario]
    writes = Counter(recording.writes)
    crashes = [
        Crash(write, number, done=done)
        for write, count in writes.items()
        for number in range(1, count + 1)
        for done in (False, True)
    ]
    if request.config.getoption("--cluster-server") == "real":
        first = [each for each in crashes if each.number == 1]
        crashes = [each for index, each in enumerate(first) if index % 4 in {0, 3}]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        hit = list(threads.map(lambda crash: run_with_fault(make, scenario, crash, recording), crashes))
    assert {each for of_one in hit for each in of_one} == set(writes)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_an_operator_killed_at_every_write_reaches_the_desired_state(
    make: Make, recordings: dict[Any, Recording], scenario: Any
) -> None:
    """Each operator makes one write at most, and never gets its answer."""

    def always(lab: Lab) -> None:
        async def strike(call: Call) -> None:
            if call.is_write:
                call.hit = True
                lab.kill()
                raise CutError

        lab.proxy.after = strike

    assert set(run_with_fault(make, scenario, always, recordings[scenario])) >= set(recordings[scenario].writes)
