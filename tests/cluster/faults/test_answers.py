"""The first attempt of each write fails: without an answer, or with an error, whether the server carried it out or not.
In the end the objects are the same as without a fault, and no condition reports it any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.faults.lab import Lab, Make
from tests.cluster.faults.proxy import Answer, Call, CutError
from tests.cluster.faults.scenarios import SCENARIOS, Recording, run_with_fault

LATER = {"Retry-After": "1"}


class First:
    """A fault of the first attempt of each write."""

    def __init__(self, what: Callable[[], Answer], *, done: bool) -> None:
        self.what, self.done = what, done

    def __call__(self, lab: Lab) -> None:
        tried: set[str] = set()

        async def strike(call: Call) -> Answer | None:
            if not call.is_write or str(call) in tried:
                return None
            tried.add(str(call))
            call.hit = True
            return self.what()

        if self.done:
            lab.proxy.after = strike
        else:
            lab.proxy.before = strike


def cut() -> Answer:
    raise CutError


TROUBLES = {
    "the answer is lost": First(cut, done=True),
    "the request is lost": First(cut, done=False),
    "done, and 500": First(lambda: Answer(500, "InternalError"), done=True),
    "done, and 504": First(lambda: Answer(504, "Timeout"), done=True),
    "500": First(lambda: Answer(500, "InternalError"), done=False),
    "503": First(lambda: Answer(503, "ServiceUnavailable"), done=False),
    "429": First(lambda: Answer(429, "TooManyRequests", LATER), done=False),
    "409": First(lambda: Answer(409, "Conflict"), done=False),
    "401": First(lambda: Answer(401, "Unauthorized"), done=False),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_fault_at_each_write_does_not_change_the_final_state(
    make: Make, recordings: dict[Any, Recording], scenario: Any, trouble: str
) -> None:
    assert set(run_with_fault(make, scenario, TROUBLES[trouble], recordings[scenario])) >= set(
        recordings[scenario].writes
    )
