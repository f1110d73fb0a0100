"""One CR is never reconciled twice at once; N events while it runs cause exactly one more run."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hypothesis import strategies as st

from ruleop.operator.queue.work_queue import Request, Result, Urgency
from ruleop.operator.queue.workers import Workers
from ruleop.operator.telemetry.metrics import Metrics
from tests.invariants.operator_harness import settled_operator
from tests.invariants.scenarios import apps, property_test, run

CRS = [Request("ns", name) for name in "abc"]


@property_test(200)
def test_one_cr_has_one_pass_at_a_time_and_one_more_for_all_changes_meanwhile(data: Any) -> None:
    steps = data.draw(
        st.lists(st.tuples(st.sampled_from(["event", "event", "end"]), st.sampled_from(CRS), st.sampled_from(Urgency)))
    )
    run(_worked(steps))


async def _worked(steps: list[tuple[str, Request, Urgency]]) -> None:
    begun: Counter[Request] = Counter()
    expected: Counter[Request] = Counter()
    running: dict[Request, asyncio.Event] = {}
    dirty: set[Request] = set()

    async def work(request: Request, *_: Any) -> Result:
        assert request not in running, f"two passes of {request} at once"
        begun[request] += 1
        running[request] = asyncio.Event()
        try:
            await running[request].wait()
        finally:
            del running[request]
        return Result()

    workers = Workers("Test", limit=len(CRS), metrics=Metrics(), on_exit=lambda _: None)
    workers.open(True)
    workers.start(work)
    for what, cr, urgency in [*steps, *(("end", cr, Urgency.CHANGE) for cr in CRS * 2)]:
        if what == "event":
            workers.add(cr, "an event", urgency)
            if cr in running:
                dirty.add(cr)
            else:
                expected[cr] += 1
        elif cr in running:
            running[cr].set()
            if cr in dirty:
                dirty.remove(cr)
                expected[cr] += 1
        for _ in range(8):
            await asyncio.sleep(0)
        assert begun == expected
    assert not running
    await workers.stop()


async def test_five_edits_during_a_pass_cost_one_patch_of_each_child() -> None:
    server = apps("web")
    held, reached = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        reached.set()
        await held.wait()

    async with settled_operator(server) as harness:
        server.meddle = lambda asked: hold() if str(asked) == "patch deployments web-d" else None
        server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 2}}})
        harness.watcher("App").deliver()
        await reached.wait()
        server.forget()
        for replicas in range(3, 8):
            server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": replicas}}})
            harness.watcher("App").deliver()
        held.set()
        await harness.until_quiet()
        assert server.cluster["Deployment/web-d"]["spec"]["replicas"] == 7
        assert [each for each in server.writes() if "deployments" in each] == ["patch deployments web-d"]
