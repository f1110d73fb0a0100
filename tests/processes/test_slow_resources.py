"""The operator as a process beside 64 custom resources whose plans take a second each, each second: what is small is
served, and the process answers and ends. Nothing is measured: what counts is what comes before what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limits.hostile import ENDLESS, KINDS, SMALL, Hostile
from tests.processes.fork_server import ForkServer
from tests.waiting import eventually

HOSTILE = 64
pytestmark = pytest.mark.slow


@pytest.fixture
def hostile(fork_server: ForkServer, tmp_path: Path) -> Iterator[Hostile]:
    with Hostile(fork_server, tmp_path) as found:
        yield found


def late_before(hostile: Hostile, name: str) -> int:
    """The hostile resources that were reported before this one's status was written last."""
    written = hostile.status_writes()
    last = len(written) - written[::-1].index(name)
    return len({each for each in written[:last] if each.startswith("hostile-")})


@pytest.mark.parametrize("kinds", [pytest.param(KINDS, id="of four kinds"), pytest.param(KINDS[:1], id="of its kind")])
def test_a_small_resource_is_served_beside_64_hostile_ones(hostile: Hostile, kinds: tuple[str, ...]) -> None:
    """That are new, as after a restart, and that have been planned before. Each that is reported has used a second: at
    most one, which is in progress, and one more in a pause of three seconds, if it takes that long on this machine."""
    hostile.create_hostile(HOSTILE, kinds)
    hostile.start()
    hostile.create(kinds[0], "small", SMALL)
    eventually("the small one", lambda: hostile.ready(kinds[0], "small")["status"] == "True")
    first = late_before(hostile, "small")
    eventually("a late plan", lambda: late_before(hostile, hostile.status_writes()[-1]) > first)
    before = late_before(hostile, hostile.status_writes()[-1])
    hostile.create(kinds[0], "other", SMALL)
    eventually("the other", lambda: hostile.ready(kinds[0], "other")["status"] == "True")
    assert first <= 4
    assert late_before(hostile, "other") - before <= 4


def test_the_process_answers_and_ends_beside_64_hostile_ones(hostile: Hostile) -> None:
    hostile.create_hostile(HOSTILE)
    hostile.start("--graceful-shutdown-timeout", "100s")
    eventually("late plans", lambda: len(set(hostile.status_writes())) >= 2)
    for path in ("/healthz", "/metrics"):
        assert eventually(f"an answer at {path}", lambda path=path: hostile.probe(path)[0]) == 200
    hostile.terminate()
    eventually("its end", lambda: not hostile.is_alive)
    lines = hostile.log()
    assert [each["event"] for each in lines if "level" not in each] == []
    events = [each["event"] for each in lines]
    assert "stopping" in events
    assert not [each for each in events if "could not be" in each]


def test_a_hostile_resource_reports_the_line_and_is_planned_at_once_when_it_is_fixed(hostile: Hostile) -> None:
    hostile.start()
    hostile.create("Apple", "own", ENDLESS)
    ready = eventually("the report", lambda: hostile.ready("Apple", "own"))
    assert ready["reason"] == "RenderFailed"
    assert "templates/config.yaml.j2:5" in ready["message"]
    assert "the plan takes more than a second of CPU time" in ready["message"]
    hostile.create("Apple", "own", SMALL)
    eventually("the fixed one", lambda: hostile.ready("Apple", "own")["status"] == "True")
