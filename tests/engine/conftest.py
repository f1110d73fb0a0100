"""Fixtures of the engine's tests. A test has no event loop except the one it starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tests.engine.controller_set_harness import ControllerSetHarness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

Result = TypeVar("Result")


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Result]], Result]:
    """Runs a coroutine to its end in bounded time."""

    def to_the_end(coroutine: Coroutine[Any, Any, Result]) -> Result:
        async def bounded() -> Result:
            async with asyncio.timeout(30):
                return await coroutine

        return asyncio.run(bounded())

    return to_the_end


@pytest.fixture
def run_scenario(run: Callable[[Coroutine[Any, Any, None]], None]) -> Callable[..., None]:
    """Runs a coroutine function with a new controller set."""

    def run_with_harness(scenario: Callable[[ControllerSetHarness], Awaitable[None]], **options: Any) -> None:
        async def run_and_stop() -> None:
            harness = ControllerSetHarness(**options)
            try:
                await scenario(harness)
            finally:
                await harness.controller_set.stop()

        run(run_and_stop())

    return run_with_harness
