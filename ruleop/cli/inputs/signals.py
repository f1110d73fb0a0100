"""Signals that end a command which runs until somebody stops it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def on_end_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block, SIGTERM and SIGINT call `stop` in the event loop. After it they are ignored."""
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop)
    try:
        yield
    finally:
        # The loop closes the pipe to which signals are reported before it stops reporting them.
        signal.set_wakeup_fd(-1)
