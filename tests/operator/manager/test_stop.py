"""The operator stops when it is asked to, and when one of its tasks fails."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.operator.telemetry.probes import LoopWatchdog
from tests.operator.manager.test_start import RULES, unreachable
from tests.waiting import a_moment

__all__ = ["unreachable"]


def manager_of(unreachable, tmp_path):
    return Manager(RULES, tmp_path, Options(kubeconfig=str(unreachable), metrics_address="0", health_address="0"))


async def test_stopping_before_the_start_is_complete_is_in_order(unreachable, tmp_path):
    manager = manager_of(unreachable, tmp_path)
    ending = asyncio.create_task(manager.run())
    await a_moment()
    manager.stopping.set()
    assert await ending is True


def test_a_failed_task_stops_the_operator_and_is_logged(run, unreachable, tmp_path, monkeypatch):
    async def fail(_watchdog):
        raise RuntimeError("hunter2")

    monkeypatch.setattr(LoopWatchdog, "run", fail)
    with capture_logs() as lines:
        assert run(manager_of(unreachable, tmp_path).run()) is False
    (line,) = (line for line in lines if line["log_level"] == "error")
    assert (line["event"], line["task"]) == ("a task failed with an internal error; exiting", "loop_watchdog")
