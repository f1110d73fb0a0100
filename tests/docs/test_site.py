"""The site is made of the pages as they are (docs/conf.py); `make site` builds it, with every warning an error."""

from __future__ import annotations

import re
import runpy
from collections import Counter

from tests.docs.messages import ROOT

DOCS = ROOT / "docs"
CONF = runpy.run_path(str(DOCS / "conf.py"))
DECISIONS = "contributing/decisions"
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")


def test_the_left_column_has_every_page_once_by_what_people_want_to_do() -> None:
    column = CONF["column"](INDEX)
    assert re.findall(r":caption: (.+)", column) == ["Start", "Write rules", "Test", "Ship", "Operate", "Look up"]
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")} - {"README"}
    pages = {page for page in pages if not page.startswith(f"{DECISIONS}/")}
    assert Counter(re.findall(r"<(.+)>$", column, re.MULTILINE)) == Counter(pages)


def test_the_page_of_decisions_has_its_folder_below_it() -> None:
    assert "\ndecisions/*\n" in CONF["below"](DECISIONS)
    assert CONF["below"]("contributing/template-tree") == ""


def test_links_to_files_that_are_no_pages_lead_to_the_repository() -> None:
    source, links = CONF["SOURCE"], CONF["links"]
    assert links("[a](../CHANGELOG.md#unreleased)", DOCS) == f"[a]({source}/CHANGELOG.md#unreleased)"
    assert links("[a](../examples/wordpress)", DOCS) == f"[a]({source}/examples/wordpress)"
    assert links("[a](../rules.md#rbac) [b](../../LICENSE)", DOCS / "reference") == (
        f"[a](../rules.md#rbac) [b]({source}/LICENSE)"
    )
