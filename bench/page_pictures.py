"""The pictures of the page in the documentation, and a film of frames: `make pictures` writes them.

They are taken in Chromium, of sessions of `ruleop dev` in this process, and have the time of the day in them.
"""

from __future__ import annotations

import asyncio
import shutil
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ruleop.operator.telemetry import logging as logs  # noqa: E402
from tests.page.browser.browsing import Tab, browser, tab  # noqa: E402
from tests.page.projects import ROLLED_OUT, note  # noqa: E402
from tests.page.session import Running, running  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

FOLDER: Final = ROOT / "docs" / "pictures" / "page"
WORDPRESS: Final = ROOT / "examples" / "wordpress"
SMALL: Final = "/resource?kind=WordPress.cms.example.com&namespace=default&name=small"
WIDTH, HEIGHT = 1120, 900
SECONDS: Final = 2.5  # that a frame of the film is shown
PASSWORDS: Final = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "small-passwords", "namespace": "default"},
    "stringData": {"password": "only-a-picture", "root-password": "only-a-picture"},
}


async def wordpress() -> dict[str, bytes]:
    """A WordPress that waits for the Secret of its passwords, and what happens when somebody creates it."""
    found: dict[str, bytes] = {}

    async def story(shown: Running, shows: Tab) -> None:
        page, film = shows.page, []
        await shown.shows("/", "2 custom resources", "Ready", "Waiting")
        await shows.open("/")
        found["kinds.png"] = await _shot(shows, height=420)
        film.append(await _shot(shows))
        await page.get_by_role("link", name="Waiting").click()
        film.append(await _shot(shows))
        await page.get_by_role("link", name="default/small").click()
        await page.locator("#live", has_text="live").wait_for()
        found["resource.png"] = await _shot(shows)
        film.append(found["resource.png"])
        shown.session.cluster.apply(PASSWORDS)
        await page.locator("svg.graph .state-waiting", has_text="app").wait_for()
        film.append(await _shot(shows))
        await page.locator("h1", has_text="ready").wait_for()
        film.append(await _shot(shows))
        await shows.open(f"{SMALL}&node=app")
        await page.locator("#node").scroll_into_view_if_needed()
        await page.evaluate("document.getElementById('node').scrollIntoView()")
        film.append(await _shot(shows))
        found["node.png"] = await _shot(shows, height=620)
        found["film.png"] = animated(film)

    await _taken(WORDPRESS, story, *_documents(WORDPRESS / "examples"))
    return found


async def rollout() -> dict[str, bytes]:
    """A rollout that stopped at its first failure."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        async def story(shown: Running, shows: Tab) -> None:
            await shown.shows("/resources?state=ready", "12 of 12")
            await shown.shows("/rollouts", "Complete")
            broken = ROLLED_OUT["templates/config.yaml.j2"].replace("spec.text", "spec.title")
            await asyncio.to_thread((folder / "templates/config.yaml.j2").write_text, broken)
            await shown.shows("/rollouts", "Stopped")
            await shows.open("/rollouts")
            found["rollout.png"] = await _shot(shows, height=780)

        samples = [note(f"team-{number:02}") for number in range(12)]
        waves = ROLLED_OUT["watches.yaml"].replace("maxUnavailable: 1", "maxUnavailable: 3")
        files = {**ROLLED_OUT, "watches.yaml": waves}
        await _taken(folder, story, *samples, files=files, rollouts=True)
    return found


async def _taken(
    folder: Path, story: Callable[[Running, Tab], Awaitable[None]], *samples: dict[str, Any], **options: Any
) -> None:
    async with (
        running(folder, samples, **options) as shown,
        browser() as window,
        tab(shown, window, width=WIDTH) as shows,
    ):
        await shows.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        await story(shown, shows)


async def _shot(shows: Tab, height: int = HEIGHT) -> bytes:
    window = {"x": 0.0, "y": 0.0, "width": float(WIDTH), "height": float(height)}
    return await shows.page.screenshot(animations="disabled", clip=window)  # type: ignore[arg-type] - a typed dict


def _documents(folder: Path) -> list[dict[str, Any]]:
    texts = [file.read_text() for file in sorted(folder.glob("*.yaml"))]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


# -- a film ------------------------------------------------------------------------------------------------------------


def animated(frames: list[bytes]) -> bytes:
    """An APNG of PNG files of one size, which browsers play and others show the first frame of."""
    heads = [dict(_chunks(frame))[b"IHDR"] for frame in frames]
    assert len(set(heads)) == 1, "the frames differ in their size"
    width, height = struct.unpack(">II", heads[0][:8])
    parts, number = [_chunk(b"IHDR", heads[0]), _chunk(b"acTL", struct.pack(">II", len(frames), 0))], 0
    for frame in frames:
        delay = round(SECONDS * 1000)
        parts.append(_chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, delay, 1000, 0, 0)))
        number += 1
        data = b"".join(body for kind, body in _chunks(frame) if kind == b"IDAT")
        if number == 1:
            parts.append(_chunk(b"IDAT", data))
        else:
            parts.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
            number += 1
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + _chunk(b"IEND", b"")


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


async def main() -> None:
    logs.set_up("error", None)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, picture in {**await wordpress(), **await rollout()}.items():
        await asyncio.to_thread((FOLDER / name).write_bytes, picture)
        print(f"docs/pictures/page/{name}  {len(picture) >> 10} KB")


if __name__ == "__main__":
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        sys.exit("the pictures of the page need Chromium: see tests/page/browser/missing.sh")
    asyncio.run(main())
