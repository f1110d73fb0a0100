"""The links and headings of a page, as a forge and the site read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_LINK = re.compile(
    r"\]\(\s*<?([^)>\s]*)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]\n]+\]:\s+(\S+)|<(https?://[^>\s]+)>", re.MULTILINE
)
_FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def links(text: str) -> list[str]:
    """The targets of the links and pictures of a page, outside of code and comments."""
    prose = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "code", _prose(text))
    return [next(filter(None, found.groups()), "") for found in _LINK.finditer(prose)]


def anchors(text: str) -> set[str]:
    """The names of the headings of a page: those of a forge, which the site has too."""
    return set(_anchors(text))


def _anchors(text: str) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for title in re.findall(r"^#+ (.+?)(?: #+)?$", _prose(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-")
        yield f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1


def _prose(text: str) -> str:
    return _COMMENT.sub("", _FENCE.sub("", text))
