"""The site that `make site` builds of these pages. Its left column is made of the lists in README.md."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.templates import YamlJinjaLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
SOURCE = os.environ.get("SITE_SOURCE") or DOCS.parent.as_uri()
"""Where files of the repository are that are no pages: on a forge, or in this checkout."""

project = "ruleop"
html_title = "ruleop"
html_theme = "furo"
extensions = ["myst_parser"]
root_doc = "README"
nitpicky = True
smartquotes = False  # `--out` in plain text stays as it is
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # templates are coloured as YAML, which they are not
myst_heading_anchors = 6
myst_url_schemes = ["https", "mailto", "file"]
html_copy_source = html_use_index = False
html_show_sphinx = False
html_show_copyright = False
templates_path = ["site"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {
    "versions": os.environ.get("SITE_VERSIONS", "").split(),
    "this_version": os.environ.get("SITE_VERSION", "latest"),
}


def column(index: str) -> str:
    """The left column: each section of the index that lists pages, as a tree of contents."""
    trees = []
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if pages := re.findall(r"^- \[(.+?)\]\((.+?)\.md\)", text, re.MULTILINE):
            entries = "\n".join(f"{name} <{page}>" for name, page in pages)
            trees.append(f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n{entries}\n```\n")
    return "\n".join(trees)


def below(page: str) -> str:
    """The pages of a folder that the index does not list, as the tree of contents of the page that does."""
    return "```{toctree}\n:hidden:\n:glob:\n\ndecisions/*\n```\n" if page == "contributing/decisions" else ""


def links(text: str, folder: Path) -> str:
    """Links to files that are no pages, as links to the repository."""

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        return match[0] if target.is_relative_to(DOCS) else f"]({SOURCE}/{target.relative_to(DOCS.parent).as_posix()}"

    return re.sub(r"\]\((\.\./[^)#\s]*)", link, text)


def read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = links(source[0], (DOCS / page).parent)
    if tree := below(page):
        source[0] += "\n" + tree
    if page == root_doc:
        source[0] += "\n" + column(source[0])


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None:
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app: Sphinx) -> None:
    app.add_lexer("yaml", YamlJinjaLexer)
    app.connect("source-read", read)
    app.connect("build-finished", finish)
