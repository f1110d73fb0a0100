"""Folders with files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Files by their paths in the folder."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> Path:
        write_files(self.root, {path: text})
        return self.root / path

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text("utf-8")
        assert old in text
        self.write(path, text.replace(old, new))
