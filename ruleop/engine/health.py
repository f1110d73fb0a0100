"""What Kubernetes and people ask the operator: is it alive, is it ready, and what has it measured.

`/healthz` says that the event loop turns. `/readyz` says that every store is synced and fresh and that the rules on disk are the ones that
run; `?verbose` says which of these holds. A store whose kind is not served or not permitted is named there, and keeps nobody from being
ready: it stops the children that need it and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from ruleop.errors import RuleopError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ruleop.engine.metrics import Metrics

    Answer = Callable[[web.Request], web.Response]


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
        """Listens on the two addresses, `host:port` or `:port`; `0` is off. Both may be the same."""
        routes: dict[str, dict[str, Answer]] = {}
        if _wanted(health):
            routes[health] = {"/healthz": self._alive, "/livez": self._alive, "/readyz": self._ready}
        if _wanted(metrics):
            routes.setdefault(metrics, {})["/metrics"] = self._metrics
        for address, answers in routes.items():
            await self._listen(address, answers)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where it listens: host and port of each address, in the order in which they were given."""
        return [address[:2] for runner in self._runners for address in runner.addresses[:1]]

    async def _listen(self, address: str, answers: Mapping[str, Answer]) -> None:
        app = web.Application()
        for path, answer in answers.items():

            async def handler(request: web.Request, answer: Answer = answer) -> web.Response:
                return answer(request)

            app.router.add_get(path, handler)
        host, _, port = address.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise RuleopError(f"cannot listen on {address!r}: an address is host:port, :port, or 0 for none")
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._runners.append(runner)
        try:
            await web.TCPSite(runner, host.strip("[]") or None, int(port)).start()
        except OSError as error:
            raise RuleopError(f"cannot listen on {address}: {error.strerror or error}; choose another address, or 0 for none") from error

    async def stop(self) -> None:
        while self._runners:
            await self._runners.pop().cleanup()

    def _alive(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    def _ready(self, request: web.Request) -> web.Response:
        checks = list(self.checks())
        ready = all(check.ok for check in checks if check.counts)
        lines = [_line(check) for check in checks]
        text = "\n".join([*lines, "ready" if ready else "not ready"]) if "verbose" in request.query or not ready else "ok"
        return web.Response(text=text + "\n", status=200 if ready else 503)

    def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _line(check: Check) -> str:
    """A check is one line; what more it has to say stands below it, indented, so that it cannot be taken for another check."""
    first, *more = check.message.splitlines() or [""]
    return "\n".join([f"[{'+' if check.ok else '-'}] {check.name}{': ' + first if first else ''}", *("    " + line for line in more)])


def _wanted(address: str) -> bool:
    return address not in {"", "0", ":0"}
