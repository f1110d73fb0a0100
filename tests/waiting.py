"""Waiting for what another thread or process does: nothing tells when it is done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 250.0  # seconds; a very busy machine needs them. Less than the timeout of a test
MISSING: Final[tuple[type[Exception], ...]] = (LookupError, TypeError)


def eventually(
    what: str, probe: Callable[[], T | None], timeout: float = PATIENCE, missing: tuple[type[Exception], ...] = MISSING
) -> T:
    """Waits until `probe` returns something true, and returns it. A missing field counts as false. `what` is for the
    error.

    The longer it has waited, the less often it asks, because each probe takes CPU time from what it waits for.
    """
    begun = time.monotonic()
    found: Any = None
    while (waited := time.monotonic() - begun) < timeout:
        try:
            found = probe()
        except missing as error:
            found = error
        else:
            if found:
                return found  # type: ignore[no-any-return]
        time.sleep(min(0.01 + waited / 10, 0.3))
    raise AssertionError(f"waited {timeout:.0f} s in vain for {what}; last seen: {found!r}")


async def until(what: str, holds: Callable[[], object], patience: float = PATIENCE) -> None:
    """Waits on the loop until this holds. `what` is for the error."""
    try:
        async with asyncio.timeout(patience):
            while not holds():  # noqa: ASYNC110 - what it waits for sets no event
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f"waited {patience:.0f} s in vain for {what}") from None


async def a_moment(seconds: float = 0.05) -> None:
    """Time enough for something that must not happen."""
    await asyncio.sleep(seconds)
