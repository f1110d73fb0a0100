"""What the page costs: the list of 10,000 custom resources, and ten viewers while 100 of them change each second.

    make bench        or        python bench/page.py [RESOURCES]

The operator, the API server in memory and the viewers are one process, so that the times are upper bounds. Nothing is
asserted.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiohttp

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ruleop.operator.telemetry import logging as logs  # noqa: E402
from ruleop.page.serving import operator_page  # noqa: E402
from tests.page.projects import NOTES, note, url_of  # noqa: E402
from tests.page.session import Running, running  # noqa: E402
from tests.waiting import until  # noqa: E402

if TYPE_CHECKING:
    from ruleop.page.serving import PageServer

RESOURCES, CHANGES, SECONDS, PATIENCE = 10_000, 100, 20.0, 600.0
NAMESPACES = 20


def named(number: int) -> str:
    return f"note-{number:05}"


async def measure(count: int) -> None:
    samples = [note(named(number), f"team-{number % NAMESPACES:02}") for number in range(count)]
    samples += [note(f"seen-{number}") for number in range(5)]
    with tempfile.TemporaryDirectory() as name:
        async with running(Path(name), samples, files=NOTES) as shown:
            (controller,) = shown.manager.work.controllers
            reported = controller.reconciler.pass_log.reported
            await until("all custom resources", lambda: len(reported) >= count and controller.is_quiet(), PATIENCE)
            with socket.socket() as found:
                found.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{found.getsockname()[1]}"
            async with operator_page(address, shown.manager) as server:
                await opened(shown.http, address, count)
                used = await changing(shown, count)
                print(f"{count:>7,} CRs, {CHANGES} changes a second, no viewer: {used:.1%} of a core")
                await watched(shown, server, address, count)


async def opened(http: aiohttp.ClientSession, address: str, count: int) -> None:
    for path in ("/resources", "/resources?text=note-001&reason=Waiting", "/", url_of("seen-1")):
        times = []
        for _ in range(9):
            start = time.perf_counter()
            async with http.get(f"http://{address}{path}") as answer:
                size = len(await answer.read())
            times.append(time.perf_counter() - start)
        print(
            f"{count:>7,} CRs: {path:45} {statistics.median(times) * 1000:6.1f} ms (first {times[0] * 1000:6.1f} ms), "
            f"{size >> 10} KB"
        )


async def watched(shown: Running, server: PageServer, address: str, count: int) -> None:
    paths = ["/", "/resources", "/rollouts", "/operator", "/resources?namespace=team-01"]
    paths += [url_of(f"seen-{number}") for number in range(5)]
    async with contextlib.AsyncExitStack() as stack:
        readers = [asyncio.create_task(_read(shown.http, address, path)) for path in paths]
        stack.callback(lambda: [each.cancel() for each in readers])
        await until("the viewers", lambda: server.live.viewers == len(paths))
        await asyncio.sleep(3.0)
        seconds, renderings = server.live.seconds, server.live.renderings
        used = await changing(shown, count)
        share = (server.live.seconds - seconds) / SECONDS
        renderings = server.live.renderings - renderings
        print(
            f"{count:>7,} CRs, {CHANGES} changes a second, {len(paths)} viewers: {used:.1%} of a core, of which "
            f"{renderings} renderings in {SECONDS:.0f} s take {share:.2%}"
        )


async def changing(shown: Running, count: int) -> float:
    """Changes custom resources for a while. Returns the CPU time per second, of the API server, too."""
    start, before, changes = time.perf_counter(), time.process_time(), 0
    while (passed := time.perf_counter() - start) < SECONDS:
        while changes < passed * CHANGES:
            number, text = changes % count, f"changed at {start + changes}"
            shown.session.cluster.apply(note(named(number), f"team-{number % NAMESPACES:02}", text=text))
            changes += 1
        await asyncio.sleep(0.02)
    return (time.process_time() - before) / passed


async def _read(http: aiohttp.ClientSession, address: str, path: str) -> None:
    url = f"http://{address}/live"
    async with http.get(url, params={"page": path}, timeout=aiohttp.ClientTimeout(total=PATIENCE)) as stream:
        async for _ in stream.content:
            pass


if __name__ == "__main__":
    logs.set_up("error", None)
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else RESOURCES))
