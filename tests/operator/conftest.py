"""Fixtures of the engine's tests. A test has no event loop except the one it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from tests.waiting import PATIENCE

Result = TypeVar("Result")


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Result]], Result]:
    """Runs a coroutine to its end in bounded time."""

    def to_the_end(coroutine: Coroutine[Any, Any, Result]) -> Result:
        async def bounded() -> Result:
            async with asyncio.timeout(PATIENCE):
                return await coroutine

        return asyncio.run(bounded())

    return to_the_end
