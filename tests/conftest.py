"""What all tests share: assertions of their helpers that say what they found, how much of each a run tries, and a heap
that is not walked."""

from __future__ import annotations

import asyncio
import gc
import inspect
import math
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

pytest.register_assert_rewrite(
    "tests.cluster",
    "tests.contract",
    "tests.invariants",
    "tests.operator",
    "tests.planning",
    "tests.projects",
)

from ruleop.planning.guard import GUARD  # noqa: E402 - assertions are rewritten first
from tests import exploration  # noqa: E402 - it registers the profiles, of which pytest's --hypothesis-profile may load another
from tests.bytecode import compile_part  # noqa: E402 - as above
from tests.logs import forget_set_up  # noqa: E402 - as above
from tests.processes.fork_server import ForkServer  # noqa: E402 - it is rewritten too
from tests.waiting import PATIENCE  # noqa: E402 - as above

settings.load_profile("fast")

GUARD.limit = GUARD.patience = math.inf  # no test depends on the speed of the machine

gc.disable()  # until all tests are collected: what collection makes is kept, and would be walked many times


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of all tests, of tests/contract and of tests/cluster: pytest reads them only from here."""
    parser.addoption(
        "--contract-server",
        default="memory",
        help="what tests/contract runs against: memory, real (tests/controlplane), or a kubeconfig",
    )
    parser.addoption(
        "--cluster-server", choices=["memory", "real"], default="real", help="what tests/cluster runs against"
    )
    parser.addoption(
        "--record-contract", action="store_true", help="let tests/contract store the answers of a real server"
    )
    parser.addoption("--few-cases", action="store_true", help="run a part of each table (tests/exploration.py)")


@pytest.hookimpl(trylast=True)  # the profile is loaded before
def pytest_configure(config: pytest.Config) -> None:
    compile_part(config)
    if settings().derandomize:
        exploration.repeat_examples()


@pytest.hookimpl(tryfirst=True)  # pytest reads the tables of a test in this hook, too
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.config.getoption("--few-cases"):
        exploration.draw_one_case(metafunc)


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as found:
        yield found


def pytest_collection_finish() -> None:
    """Thousands of tests and all modules are objects too: each garbage collection would walk them, for a fifth of a
    second.

    With Python's own thresholds, collections of what tests make take a twentieth of the CPU.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 50)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine function to its end, in a loop of its own and in bounded time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await pyfuncitem.obj(**arguments)

    asyncio.run(bounded())
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    if structlog.is_configured():
        forget_set_up()
