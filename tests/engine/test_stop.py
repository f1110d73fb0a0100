"""How the operator as a whole ends: when it is asked to, and when a part of it is not there any longer."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from ruleop.engine.manager.manager import Manager
from ruleop.engine.manager.options import Options
from tests.engine.test_start import RULES, nobody

__all__ = ["nobody"]


def manager_of(nobody, tmp_path):
    return Manager(RULES, tmp_path, Options(kubeconfig=str(nobody), metrics_address="0", health_address="0"))


def test_asked_to_end_before_it_could_begin_it_ends_in_order(run, nobody, tmp_path):
    async def asked():
        manager = manager_of(nobody, tmp_path)
        ending = asyncio.create_task(manager.run())
        await asyncio.sleep(0.05)
        manager.stopping.set()
        return await ending

    assert run(asked()) is True


def test_a_part_that_fails_ends_the_whole_and_says_where(run, nobody, tmp_path):
    """The rest would go on half blind."""

    async def fails():
        raise RuntimeError("hunter2")

    async def failing():
        manager = manager_of(nobody, tmp_path)
        ending = asyncio.create_task(manager.run())
        await asyncio.sleep(0)
        manager._spawn(fails(), "discovery")
        return await ending

    with capture_logs() as lines:
        assert run(failing()) is False
    (said,) = (line for line in lines if line["log_level"] == "error")
    assert said["part"] == "discovery"
