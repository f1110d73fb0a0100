"""Every link of a page leads somewhere: a reader goes where a page sends them. `make site` checks the same when it
builds the pages; here neither the network nor Sphinx is needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.docs.links import anchors, links
from tests.docs.messages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


@cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def broken(page: Path, link: str) -> bool:
    """Whether a link within the repository has no target."""
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not link or link.startswith("/") or not target.is_relative_to(ROOT) or not exists(target):
        return True
    return bool(anchor) and (target.suffix != ".md" or anchor not in anchors(text(target)))


def exists(target: Path) -> bool:
    """In the letters that the link has, also on a file system that knows no difference."""
    return target == ROOT or (target.exists() and target.name in {each.name for each in target.parent.iterdir()})


def test_every_link_of_every_page_has_a_target() -> None:
    """One test for all pages: `make test` leaves none out."""
    found = [(page, link) for page in PAGES for link in links(text(page)) if not link.startswith(("https:", "mailto:"))]
    assert len(found) > 200
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in found if broken(page, link)] == []


@pytest.mark.parametrize(
    "link",
    [
        "gone.md",
        "docs/Rules.md",
        "docs/start.md#gone",
        "LICENSE#licence",
        "/docs/start.md",
        "../elsewhere.md",
        "",
        "#gone",
    ],
)
def test_a_link_without_a_target_is_found(link: str) -> None:
    assert broken(ROOT / "README.md", link)


@pytest.mark.parametrize("link", ["docs/start.md#install", "examples/wordpress", "#install", "LICENSE"])
def test_a_link_with_a_target_is_right(link: str) -> None:
    assert not broken(ROOT / "README.md", link)


def test_links_are_found_in_text_and_pictures_and_not_in_code_and_comments() -> None:
    page = (
        "A [link\nof two lines](a.md), ![a picture](b.svg) and `[code](c.md)`.\n\n```md\n[code](d.md)\n```\n"
        '<!-- [a comment](e.md) -->\n[with `code`](f.md "a title"), <https://example.com>\n\n[name]: g.md\n'
    )
    assert links(page) == ["a.md", "b.svg", "f.md", "https://example.com", "g.md"]


def test_headings_have_the_names_that_a_forge_gives_them() -> None:
    page = "# A page\n\n## `once`: it's so\n\n```sh\n# a comment\n```\n\n## Same\n\n### Same\n\n## [A link](x.md)\n"
    assert anchors(page) == {"a-page", "once-its-so", "same", "same-1", "a-link"}
