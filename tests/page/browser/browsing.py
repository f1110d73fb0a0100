"""A browser that shows the page of a session, and reports the complaints of the browser."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, Page, async_playwright, expect

from tests.page.session import Running

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
PATIENCE: Final = 60_000.0  # milliseconds: the machine may be busy
AXE: Final = Path(__file__).parent / "node_modules/axe-core/axe.min.js"


def executable() -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found is not None, f"no browser: none of {', '.join(NAMES)} is installed; see tests/page/browser/missing.sh"
    return found


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has no sandbox for root
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=executable(), args=arguments)
        try:
            yield launched
        finally:
            await launched.close()


@dataclass
class Tab:
    """A window of the browser, which has opened the printed URL."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        await self.page.goto(self.base + path)

    async def focus(self) -> str:
        """The text of the element that has the keyboard."""
        found: str = await self.page.evaluate("(document.activeElement.textContent || '').trim().replace(/\\s+/g, ' ')")
        return found

    async def tab_to(self, text: str, most: int = 80) -> None:
        """Presses Tab until something that begins with this text has the keyboard."""
        seen = []
        for _ in range(most):
            await self.page.keyboard.press("Tab")
            seen.append(await self.focus())
            if seen[-1].startswith(text):
                return
        raise AssertionError(f"nothing that begins with {text!r} is reached by Tab; reached: {seen}")


@contextlib.asynccontextmanager
async def tab(
    shown: Running, window: Browser, *, width: int = 1200, scheme: str = "light", scripts: bool = True
) -> AsyncIterator[Tab]:
    """At the end, the browser must not have complained: of the content policy, of a script, of a file."""
    options: dict[str, Any] = {"color_scheme": scheme, "java_script_enabled": scripts}
    context = await window.new_context(viewport={"width": width, "height": 800}, **options)
    context.set_default_timeout(PATIENCE)
    found = Tab(await context.new_page(), shown.base)
    found.page.on("console", lambda each: found.complaints.append(each.text) if each.type == "error" else None)
    found.page.on("pageerror", lambda each: found.complaints.append(str(each)))
    found.page.on("dialog", lambda each: found.complaints.append(f"dialog: {each.message}"))
    await found.page.goto(shown.page.url)
    yield found
    await context.close()
    assert found.complaints == []
