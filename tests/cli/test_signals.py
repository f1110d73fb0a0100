"""The signals that end a command."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from ruleop.cli.run import on_end_signal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_command_and_later_ones_do_nothing(number: signal.Signals) -> None:
    """None is reported to the event loop any more, whose pipe is closed first."""
    asked = asyncio.Event()
    with on_end_signal(asked.set):
        os.kill(os.getpid(), number)
        await asked.wait()
        asked.clear()
    os.kill(os.getpid(), number)
    await asyncio.sleep(0)
    assert not asked.is_set()
    assert signal.set_wakeup_fd(-1) == -1
