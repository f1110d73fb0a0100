"""Nothing is written when nothing differs. In the steady state: zero writes, zero lists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.invariants.operator_harness import settled_operator
from tests.invariants.scenarios import apply_edit, cluster_with_sample, property_test, run
from tests.projects.samples import EXAMPLES
from tests.projects.test_convergence import EDITS


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_its_desired_state_causes_no_writes_also_after_a_restart(example: str) -> None:
    nothing_is_written_in_the_desired_state(example)


def nothing_is_written_in_the_desired_state(example: str) -> None:
    run(_at_rest(example))


async def _at_rest(example: str) -> None:
    server, _ = cluster_with_sample(example)
    async with settled_operator(server) as harness:
        assert server.writes()
        server.forget()
        harness.resync()
        await harness.until_quiet()
        assert server.asked == [], "at rest, nothing is asked for"
    await nothing_is_written_after_a_restart(server)


async def nothing_is_written_after_a_restart(server: Any) -> None:
    """Another operator, with an empty memory, on the same cluster."""
    server.forget()
    async with settled_operator(server) as harness:
        assert server.writes() == []
        server.forget()
        harness.resync()
        await harness.until_quiet()
        assert server.asked == []


@property_test(25)
def test_after_any_edits_the_desired_state_causes_no_writes_also_after_a_restart(data: Any) -> None:
    life = data.draw(st.sampled_from(sorted(EDITS)), label="life")
    edits = data.draw(st.lists(st.sampled_from(range(20)), min_size=1, max_size=5), label="edits")
    run(_after(life, edits))


async def _after(life: str, edits: list[int]) -> None:
    server, resource = cluster_with_sample(life)
    async with settled_operator(server) as harness:
        for edit in edits:
            if apply_edit(server, resource, life, edit):
                await harness.until_settled()
        server.forget()
        harness.resync()
        await harness.until_quiet()
        assert server.asked == [], "at rest, nothing is asked for"
    await nothing_is_written_after_a_restart(server)
