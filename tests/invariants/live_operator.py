"""The whole operator over HTTP: the real manager with its client, watches and leader election, and a cluster in
memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from tests.invariants import scenarios
from tests.invariants.api_server import HOME, ApiServer
from tests.operator.wire.http_server import serving


def kubeconfig(folder: Path, address: str) -> str:
    file = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": HOME}}],
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "users": [{"name": "me", "user": {}}],
    }
    file.write_text(json.dumps(config), "utf-8")
    return str(file)


class LiveOperator:
    """A running operator."""

    def __init__(self, manager: Manager, server: ApiServer) -> None:
        self.manager = manager
        self.server = server
        self.task = asyncio.create_task(manager.run())

    async def stop(self) -> None:
        """Stops it, and waits until it has stopped."""
        self.manager.stopping.set()
        await self.task

    async def end(self) -> None:
        """Stops it, by force if necessary."""
        self.manager.stopping.set()
        _, running = await asyncio.wait({self.task}, timeout=scenarios.PATIENCE)
        for task in running:
            task.cancel()
        await asyncio.wait({self.task}, timeout=scenarios.PATIENCE)


@contextlib.asynccontextmanager
async def live_operator(server: ApiServer, address: str, **options: Any) -> AsyncIterator[LiveOperator]:
    """Stops with the block."""
    with TemporaryDirectory() as folder:
        said = {
            "kubeconfig": kubeconfig(Path(folder), address),
            "metrics_address": "0",
            "health_address": "0",
            "reload": False,
        }
        project = server.cluster.project
        found = LiveOperator(Manager(project, Path(project.root), Options(**said, **options)), server)
        try:
            yield found
        finally:
            await found.end()


@contextlib.asynccontextmanager
async def operator_and_server(server: ApiServer, **options: Any) -> AsyncIterator[LiveOperator]:
    """The operator and the server in one event loop."""
    async with serving(server.handle) as recorder, live_operator(server, recorder.address, **options) as found:
        yield found
