"""What Kubernetes and people ask the operator: is it alive, is it ready, and what has it measured.

`/healthz` says that the event loop turns. `/readyz` says that every store is synced and fresh and that the rules on disk are the ones that
run; `?verbose` says which of these holds. A store whose kind is not served or not permitted is named there, and keeps nobody from being
ready: it stops the children that need it and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.engine.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that has to hold."""

    name: str
    ok: bool
    message: str = ""
    counts: bool = True  # False: told, but no reason not to be ready


class Health:
    def __init__(self, checks: Callable[[], Iterable[Check]], metrics: Metrics) -> None:
        self.checks = checks
        self.metrics = metrics
        self._runners: list[web.AppRunner] = []

    async def serve(self, *, health: str, metrics: str) -> None:
        """Listens on the two addresses, `host:port` or `:port`; `0` is off."""
        if _wanted(health):
            await self._listen(health, [("/healthz", self._alive), ("/livez", self._alive), ("/readyz", self._ready)])
        if _wanted(metrics):
            await self._listen(metrics, [("/metrics", self._metrics)])

    async def _listen(self, address: str, routes: list[tuple[str, Callable[[web.Request], web.Response]]]) -> None:
        app = web.Application()
        for path, answer in routes:

            async def handler(request: web.Request, answer: Callable[[web.Request], web.Response] = answer) -> web.Response:
                return answer(request)

            app.router.add_get(path, handler)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        host, _, port = address.rpartition(":")
        await web.TCPSite(runner, host.strip("[]") or None, int(port)).start()
        self._runners.append(runner)

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    def _alive(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    def _ready(self, request: web.Request) -> web.Response:
        checks = list(self.checks())
        ready = all(check.ok for check in checks if check.counts)
        lines = [f"[{'+' if check.ok else '-'}] {check.name}{': ' + check.message if check.message else ''}" for check in checks]
        text = "\n".join([*lines, "ready" if ready else "not ready"]) if "verbose" in request.query or not ready else "ok"
        return web.Response(text=text + "\n", status=200 if ready else 503)

    def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self.metrics.text(), content_type="text/plain", charset="utf-8")


def _wanted(address: str) -> bool:
    return address not in {"", "0", ":0"}
