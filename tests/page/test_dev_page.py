"""The page of `ruleop dev`: what it shows of the session, live."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from ruleop.kubernetes.kinds import ObjectKey
from tests.authoring.live.projects import SITES, site
from tests.exploration import others_slow
from tests.page.html import links, structure
from tests.page.projects import NOTES, note, url_of
from tests.page.session import Running, running
from tests.waiting import a_moment, until


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are rendered again without the pause of a second."""
    monkeypatch.setattr("ruleop.page.live.PERIOD", 0.05)


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login"},
    "data": {"password": base64.b64encode(b"hunter2-hunter2").decode()},
}


def test_the_kinds_the_list_and_a_custom_resource_with_its_graph(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [yaml.safe_load(site("a"))], files=SITES) as shown:
            await shown.shows("/", "Site", "1 custom resource", "Ready")
            found = await shown.shows("/resources?kind=Site.example.com", "a", "Ready")
            (link,) = [each for each in links(found.text) if each.startswith("/resource?")]
            found = await shown.shows(link, "● ready", "2 of 2 pods")
            assert "Nothing to do" in found.words
            nodes = [each for each in links(found.text) if "node=" in each]
            assert {each.partition("node=")[2] for each in nodes} == {"config#node", "web#node"}

    asyncio.run(look())


@pytest.mark.slow
def test_a_node_shows_the_rendered_object_with_the_line_of_the_template_and_who_owns_each_field(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            found = await shown.shows(url_of("a", node="config"), "ConfigMap", "Last writes: ruleop (Update)")
            assert 'text: "hello" templates/config.yaml.j2:5' in found.words
            assert 'name: "a" templates/config.yaml.j2:3' in found.words
            assert "Field owners (1)" in found.words
            assert "data.text" in found.words

    asyncio.run(look())


@pytest.mark.slow
def test_a_child_that_waits_has_its_expression_its_place_and_its_values(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a", go=False)], files=NOTES) as shown:
            found = await shown.shows(url_of("a"), "Waits", "spec.go | default(false)")
            assert "watches.yaml:10" in found.words
            assert "spec.go false" in found.words
            await shown.shows("/resources?reason=Waiting", "1 of 1")

    asyncio.run(look())


@pytest.mark.slow
def test_the_plan_of_the_next_pass_is_shown_and_values_of_secrets_are_masked(tmp_path: Path) -> None:
    async def look() -> None:
        samples = [SECRET, note("a", go=True)]
        async with running(tmp_path, samples, files=NOTES, dry_run=True) as shown:
            found = await shown.shows(url_of("a", node="copy"), "create Secret a-copy", "create ConfigMap a")
            for secret in ("hunter2", base64.b64encode(b"hunter2-hunter2").decode()):
                assert secret not in found.text
            assert "(hidden)" in found.text

    asyncio.run(look())


HOSTILE_PATHS = [url_of("a"), url_of("a", node="config"), "/resources", "/"]
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'--></style></svg><svg onload=alert(1)>",
    "{{ 7*7 }}{% raw %}",
    "javascript:alert(1)",
    "a\n\ndata: evil\nevent: page\n",
    "\u202eevil\u2028\x1b[31m\x00",
    "]]><!--",
]


@pytest.mark.parametrize("path", others_slow(HOSTILE_PATHS, url_of("a", node="config")))
def test_no_value_of_a_custom_resource_is_ever_html(tmp_path: Path, path: str) -> None:
    """A page has the same tags whatever the values are."""

    async def look(folder: str, values: list[str]) -> list[list[tuple[str, tuple[str, ...]]]]:
        found = []
        async with running(tmp_path / folder, [note("a")], files=NOTES) as shown:
            for value in values:
                shown.session.cluster.apply(note("a", text=value))
                await until("a pass with the value", lambda value=value: _reconciled(shown) == value)  # type: ignore[misc]
                answer = await shown.get(path)
                assert "\x1b" not in answer.text
                assert "\u202e" not in answer.text
                assert not [each for each in links(answer.text) if each.lower().startswith("javascript")]
                found.append(structure(answer.text))
        return found

    (harmless,) = asyncio.run(look("one", ["harmless"]))
    for value, hostile in zip(HOSTILE, asyncio.run(look("two", HOSTILE)), strict=True):
        assert hostile == harmless, value


def _reconciled(shown: Running) -> object:
    """The value that the last pass has seen."""
    found = shown.manager.known.cache.resource(ObjectKey("example.com", "Note", "default", "a"))
    if found is None or (found.get("status") or {}).get("observedGeneration") != found["metadata"]["generation"]:
        return None
    if "to be written" in str(found["status"]["conditions"]):  # of the child, whose watch is a little later
        return None
    return found["spec"]["text"]


@pytest.mark.slow
def test_the_list_is_filtered_and_paged(tmp_path: Path) -> None:
    async def look() -> None:
        samples = [note(f"n-{number:03}", "even" if number % 2 == 0 else "odd", go=number < 3) for number in range(120)]
        async with running(tmp_path, samples, files=NOTES) as shown:
            await shown.shows("/resources?state=ready", "3 of 120")
            assert "60 of 120" in (await shown.get("/resources?namespace=odd")).words
            assert "10 of 120" in (await shown.get("/resources?text=n-01")).words
            assert "0 of 120" in (await shown.get("/resources?text=%3Cscript%3E")).words
            await shown.shows("/resources?reason=Waiting", "117 of 120")
            third = await shown.get("/resources?page=3")
            assert "Page 3 of 3" in third.words
            assert len([each for each in links(third.text) if each.startswith("/resource?")]) == 20
            assert "Page 3 of 3" in (await shown.get("/resources?page=99")).words
            assert "Page 1 of 3" in (await shown.get("/resources?page=-x")).words

    asyncio.run(look())


@pytest.mark.slow
def test_viewers_of_one_page_get_it_again_after_a_change_and_it_is_rendered_once(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            await shown.shows("/resources", "1 of 1", "Waiting")
            async with shown.watched("/resources") as one, shown.watched("/resources") as two:
                assert "1 of 1" in await one()
                await two()
                assert shown.page.server is not None
                (watched,) = shown.page.server.live._watched.values()
                assert len(watched.viewers) == 2
                shown.session.cluster.apply(note("b"))
                for following in (one, two):
                    await _has(following, "2 of 2")
                assert list(shown.page.server.live._watched) == ["/resources"]  # rendered for both at once

    asyncio.run(look())


async def _has(following: Callable[[], Awaitable[str]], word: str) -> str:
    while word not in (found := await following()):
        pass
    return found


@pytest.mark.slow
def test_a_page_of_one_custom_resource_is_not_rendered_for_changes_of_others(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a"), note("b")], files=NOTES) as shown:
            await shown.shows("/resources?reason=Waiting", "2 of 2")
            async with shown.watched(url_of("a")) as following:
                await following()
                assert shown.page.server is not None
                live = shown.page.server.live
                (watched,) = live._watched.values()
                await until("nothing is left to be rendered", lambda: watched.about and not watched.changed)
                before = live.renderings
                shown.session.cluster.apply(note("b", text="other"))
                await a_moment(0.3)
                assert live.renderings == before
                shown.session.cluster.apply(note("a", go=True))
                await _has(following, "a-copy")

    asyncio.run(look())


@pytest.mark.slow
def test_without_viewers_nothing_is_subscribed_to_and_nothing_rendered(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            await shown.shows("/", "1 custom resource")
            assert shown.page.server is not None
            live = shown.page.server.live
            assert (live.viewers, live.subscriptions, live.renderings) == (0, 0, 0)
            async with shown.watched("/") as following:
                await following()
                assert live.viewers == 1
                assert live.subscriptions > 0
            await until("nobody looks", lambda: live.viewers == 0)
            assert live.subscriptions == 0
            rendered = live.renderings
            shown.session.cluster.apply(note("b"))
            await a_moment(0.3)
            assert live.renderings == rendered

    asyncio.run(look())


@pytest.mark.slow
def test_a_missing_custom_resource_or_page_is_reported(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            await until("the rules are in force", lambda: bool(shown.manager.work.controllers.by_kind))
            for path, text in (
                (url_of("missing"), "Note.example.com default/missing does not exist"),
                ("/resource?kind=Nothing&name=a", "no rule watches Nothing"),
                ("/other", "Not Found"),
            ):
                found = await shown.get(path)
                assert found.status == 404
                assert text in found.words
            assert "It has no object now" in (await shown.get(url_of("a", node="nothing"))).words

    asyncio.run(look())
