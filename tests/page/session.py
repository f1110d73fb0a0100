"""A session of `ruleop dev` in this process, and what its page answers."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import yaml
from yarl import URL

from ruleop.authoring.dev.dev_session import DevSession, DevSettings, DevView
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder
from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.page.serving import DevPage
from tests.folders import write_files
from tests.waiting import PATIENCE, until

Object = dict[str, Any]


@dataclass
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def words(self) -> str:
        """The text that a reader sees, without tags."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())


class NotedPage(DevPage):
    """The page, which remembers its operator."""

    manager: Manager | None = None

    def serve(self, manager: Manager) -> contextlib.AbstractAsyncContextManager[None]:
        self.manager = manager
        return super().serve(manager)


class Running:
    """The page of a session, for somebody who has opened the printed URL."""

    def __init__(self, session: DevSession, page: NotedPage, http: aiohttp.ClientSession) -> None:
        self.session, self.page, self.http = session, page, http
        self.base, _, self.token = page.url.partition("/?token=")

    @property
    def manager(self) -> Manager:
        assert self.page.manager is not None
        return self.page.manager

    async def open(self) -> None:
        """As a browser does: the answer to the printed URL sets a cookie."""
        assert (await self.get(f"/?token={self.token}")).status == 200

    async def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        async with self.http.request(method, self.base + path, headers=headers) as answer:
            return Answer(answer.status, await answer.text(), answer.headers)

    async def shows(self, path: str, *words: str) -> Answer:
        """The page, once it has all these words."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await self.get(path)
                if all(each in found.words for each in words):
                    return found
                await asyncio.sleep(0.05)

    @contextlib.asynccontextmanager
    async def watched(self, path: str) -> AsyncIterator[Callable[[], Any]]:
        """The live part of a page: a function that waits for the next version of it."""
        url = f"{self.base}/live?page={quote(path, safe='')}"
        async with self.http.get(URL(url, encoded=True), timeout=aiohttp.ClientTimeout(total=PATIENCE)) as stream:
            assert stream.status == 200, await stream.text()

            async def following() -> str:
                lines: list[str] = []
                async for line in stream.content:
                    text = line.decode().rstrip("\n")
                    if text.startswith("data: "):
                        lines.append(text.removeprefix("data: "))
                    elif not text and lines:
                        return "\n".join(lines)
                raise AssertionError("the stream has ended")

            yield following


@contextlib.asynccontextmanager
async def running(
    root: Path,
    samples: Sequence[Object] = (),
    *,
    files: Mapping[str, str] | None = None,
    rollouts: bool = False,
    dry_run: bool = False,
    page: NotedPage | None = None,
) -> AsyncIterator[Running]:
    """A session with the project of a folder, after `files` were written there."""
    write_files(root, files or {})
    page = page or NotedPage()
    options = Options(
        metrics_address="0",
        health_address="0",
        operator_namespace="default",
        reload=rollouts,
        prune_after_reload=0.1,
        rollouts=rollouts,
        dry_run=dry_run,
    )
    settings = DevSettings(tuple(samples), lambda: definitions(root), page=lambda: page)
    session = DevSession(load_with_sources(Folder(str(root)), ()).project, root, options, settings, DevView())
    task = asyncio.create_task(session.run())
    try:
        await until("the operator", lambda: page.server is not None or task.done())
        jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            shown = Running(session, page, http)
            if page.guard.hosts:
                await shown.open()
            yield shown
    finally:
        session.stopping.set()
        await task


def definitions(root: Path) -> list[Object]:
    return [each for file in sorted((root / "crds").glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]
