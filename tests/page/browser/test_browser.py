"""The page as a person uses it, in Chromium: with a pointer, the keyboard alone, on a telephone, without scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.async_api import expect

from tests.page.browser.browsing import AXE, Tab, browser, tab
from tests.page.projects import NOTES, ROLLED_OUT, note, url_of
from tests.page.session import Running, running
from tests.page.test_dev_page import HOSTILE

ROOT = Path(__file__).parents[3]
Object = dict[str, Any]


def documents(*files: str) -> list[Object]:
    return [each for file in files for each in yaml.safe_load_all((ROOT / file).read_text())]


def look(
    folder: Path, story: Callable[[Running, Tab], Awaitable[None]], *samples: Object, how: Any = None, **options: Any
) -> None:
    """A session, and a tab that shows it."""

    async def run() -> None:
        async with (
            running(folder, samples, **options) as shown,
            browser() as window,
            tab(shown, window, **(how or {})) as shows,
        ):
            await story(shown, shows)

    asyncio.run(run())


def test_the_five_minutes_of_the_readme(tmp_path: Path) -> None:
    """The repository's own project: from the printed URL to the template's line of a field; a change of the CR is seen
    without a reload, and so is its end."""
    app, memcached = documents("examples/app.yaml", "examples/memcached.yaml")

    async def story(shown: Running, shows: Tab) -> None:
        page = shows.page
        await expect(page).to_have_url(f"{shown.base}/")  # without the token
        await expect(page.get_by_role("heading", name="Memcached")).to_be_visible()
        await page.get_by_role("link", name="App", exact=True).click()
        await page.get_by_role("link", name="default/app-sample").click()
        await expect(page.locator("h1")).to_contain_text("ready")
        await expect(page.locator("svg.graph .state-ready")).to_have_count(3)
        await page.locator("svg.graph a", has_text="Deployment").click()
        node = page.locator("#node")
        await expect(node).to_contain_text("templates/app/deployment.yaml.j2:")
        await expect(node).to_contain_text('image: "nginx:1.29"')
        await expect(page.locator("#live")).to_have_text("live")
        app["spec"]["deployment"]["replicas"] = 3
        shown.session.cluster.apply(app)
        await expect(node).to_contain_text("replicas: 3")
        await expect(page.get_by_role("region", name="Objects")).to_contain_text("3 of 3 pods")
        await page.get_by_text("Field owners").click()
        await expect(node.get_by_role("cell", name="spec.replicas", exact=True)).to_be_visible()

    look(ROOT, story, app, memcached)


def test_a_custom_resource_that_waits_becomes_ready_before_the_readers_eyes(tmp_path: Path) -> None:
    async def story(shown: Running, shows: Tab) -> None:
        page = shows.page
        await page.get_by_role("link", name="Waiting").click()
        await page.get_by_role("link", name="default/a", exact=True).click()
        wait = page.locator(".wait")
        await expect(wait).to_contain_text("spec.go | default(false)")
        await expect(wait).to_contain_text("watches.yaml:10")
        await expect(page.locator("svg.graph .state-waiting").first).to_be_visible()
        shown.session.cluster.apply(note("a", go=True))
        await expect(page.locator("h1")).to_contain_text("ready")
        await expect(wait).to_have_count(0)

    look(tmp_path, story, note("a", go=False), files=NOTES)


def test_a_rollout_that_stops(tmp_path: Path) -> None:
    async def story(shown: Running, shows: Tab) -> None:
        page = shows.page
        await page.get_by_role("link", name="Rollouts").click()
        await expect(page.get_by_role("heading", name="Note.example.com Complete")).to_be_visible()
        broken = ROLLED_OUT["templates/config.yaml.j2"].replace("spec.text", "spec.missing")
        await asyncio.to_thread((tmp_path / "templates/config.yaml.j2").write_text, broken)
        await expect(page.get_by_role("heading", name="Note.example.com Stopped")).to_be_visible()
        await expect(page.locator(".group-held")).to_have_count(3)  # waves of one
        await page.locator(".group-failed a").click()
        await expect(page.locator("h1")).to_contain_text("RenderFailed")
        await expect(page.locator("main")).to_contain_text("spec.missing")

    look(tmp_path, story, *map(note, "abcd"), files=ROLLED_OUT, rollouts=True)


def test_the_keyboard_alone_reaches_everything(tmp_path: Path) -> None:
    async def story(shown: Running, shows: Tab) -> None:
        page = shows.page
        await page.keyboard.press("Tab")
        assert await shows.focus() == "Skip to content"
        await page.keyboard.press("Enter")
        await shows.tab_to("Note")
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"{shown.base}/resources?kind=Note.example.com")
        await shows.tab_to("default/a")
        await page.keyboard.press("Enter")
        await expect(page.locator("svg.graph")).to_be_visible()
        await shows.tab_to("config ConfigMap")
        await page.keyboard.press("Enter")
        await expect(page.locator("#node")).to_contain_text("templates/config.yaml.j2:5")
        await shows.tab_to("Field owners")
        await page.keyboard.press("Enter")
        await expect(page.locator("#node").get_by_role("cell", name="data.text", exact=True)).to_be_visible()

    look(tmp_path, story, note("a"), files=NOTES)


PATHS = ["/", "/resources", url_of("a"), url_of("a", node="config"), "/rollouts", "/operator", "/other"]
LONG = "x" * 300


@pytest.mark.parametrize("width", [360, 768])
def test_no_page_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    async def story(shown: Running, shows: Tab) -> None:
        await shown.shows("/resources", "1 of 1", "Waiting")
        for path in PATHS:
            await shows.open(path)
            assert await shows.page.evaluate("document.documentElement.scrollWidth") <= width, path
        shows.complaints.clear()  # the page that does not exist

    look(tmp_path, story, note("a", text=LONG), files=NOTES, how={"width": width})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(tmp_path: Path, scheme: str) -> None:
    """Contrast, names, roles, order: as assistive technology sees them."""

    async def story(shown: Running, shows: Tab) -> None:
        await shown.shows("/resources", "2 of 2", "Waiting", "Ready")
        source = await asyncio.to_thread(AXE.read_text)
        for path in PATHS:
            await shows.open(path)
            await shows.page.evaluate(source)
            result = await shows.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            found = [
                (each["id"], each["help"], each["nodes"][0]["html"])
                for each in result["violations"]
                if each["impact"] in {"serious", "critical"}
            ]
            assert found == [], path
        shows.complaints.clear()  # the page that does not exist

    look(tmp_path, story, note("a"), note("b", go=True), files=NOTES, how={"scheme": scheme})


def test_without_scripts_it_is_a_page_that_can_be_reloaded(tmp_path: Path) -> None:
    async def story(shown: Running, shows: Tab) -> None:
        page = shows.page
        await shown.shows("/resources", "2 of 2", "Waiting", "Ready")
        await shows.open("/resources")
        await page.get_by_label("State").select_option("ready")
        await page.get_by_role("button", name="Filter").click()
        await expect(page.locator("main")).to_contain_text("1 of 2")
        await page.get_by_role("link", name="default/b", exact=True).click()
        await page.locator("svg.graph a", has_text="ConfigMap").click()
        await expect(page.locator("#node")).to_contain_text("templates/config.yaml.j2:5")
        shown.session.cluster.apply(note("b", text="another", go=True))
        await shown.shows(url_of("b", node="config"), 'text: "another"')
        await page.reload()
        await expect(page.locator("#node")).to_contain_text('text: "another"')

    look(tmp_path, story, note("a"), note("b", go=True), files=NOTES, how={"scripts": False})


def test_values_that_would_be_markup_are_text(tmp_path: Path) -> None:
    """In pages, and in what the scripts put into them."""

    async def story(shown: Running, shows: Tab) -> None:
        page = shows.page
        await shows.open(url_of("a", node="config"))
        await expect(page.locator("#live")).to_have_text("live")
        for value in HOSTILE[:5]:
            shown.session.cluster.apply(note("a", text=value))
            shortest = value.split("\n", maxsplit=1)[0].replace('"', '\\"')
            await expect(page.locator("#node .yaml")).to_contain_text(shortest)
            assert await page.locator("main script, main img, main iframe, main style").count() == 0

    look(tmp_path, story, note("a"), files=NOTES)
