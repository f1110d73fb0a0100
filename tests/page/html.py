"""The structure of HTML: tags and names of attributes, without any text."""

from __future__ import annotations

from html.parser import HTMLParser


class _Structure(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in {"href", "src", "action"}]

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", ()))


def structure(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return _parsed(text).tags


def links(text: str) -> list[str]:
    return _parsed(text).links


def _parsed(text: str) -> _Structure:
    found = _Structure()
    found.feed(text)
    found.close()
    return found
