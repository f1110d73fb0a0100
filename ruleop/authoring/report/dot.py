"""Graphs in the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def digraph(name: str, statements: Iterable[str]) -> str:
    """A graph of rounded boxes, from left to right."""
    boxes = 'rankdir=LR; node [shape=box, style="rounded,filled", fontname="sans-serif"];'
    return "\n".join([f"digraph {name} {{", *(f"  {line}" for line in (boxes, *statements)), "}", ""])


def quoted(*lines: str) -> str:
    """A label."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'
