"""The paths to watch for changes of a project.

The folder of a project may be a repository with thousands of files in `.git` and `.venv` that change all the time. So
only watches.yaml, the files that it includes, templates/ and crds/ are watched. A file or folder may be behind links,
as in a mounted ConfigMap (watches.yaml is a link to ..data/watches.yaml, and ..data a link to a folder named for the
date); each link on the path is watched as well.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.files import read_regular
from ruleop.language.rules.project_files import (
    MAX_BYTES,
    WATCHES,
    has_wildcards,
    matches_name,
    paths_of,
    patterns_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINKS = 40  # on the path of one file, as in Linux


@dataclass(frozen=True, slots=True)
class Place:
    """A folder without links in its path, and patterns of the relevant names in it. `deep`: including all folders
    below."""

    folder: Path
    names: tuple[str, ...] = ("*",)
    deep: bool = False

    def concerns(self, path: Path) -> bool:
        """Whether an event of this file or folder may change the project."""
        if path == self.folder:
            return True
        # Files of editors. The ..data of a ConfigMap starts with two dots.
        if path.name.endswith("~") or (path.name.startswith(".") and not path.name.startswith("..")):
            return False
        return any(fnmatchcase(path.name, pattern) for pattern in self.names)


def places(root: Path) -> tuple[Place, ...]:
    """The places to watch for the project in this folder."""
    found = _Collector(root.resolve())
    found.resolve(WATCHES)
    for pattern in patterns_in(_text(root / WATCHES)):
        found.add_pattern(pattern)
    for name in ("templates", "crds"):
        if (folder := found.resolve(name)).is_dir():
            found.deep.add(folder)
    return found.places()


def _text(file: Path) -> str:
    try:
        return read_regular(file, MAX_BYTES).decode("utf-8-sig")
    except (OSError, ValueError):
        return ""  # loading reports the error


@dataclass(slots=True)
class _Collector:
    root: Path
    names: dict[Path, set[str]] = field(default_factory=dict)
    deep: set[Path] = field(default_factory=set)

    def places(self) -> tuple[Place, ...]:
        """The places, without folders below deep ones."""
        deep = [
            folder for folder in self.deep if not any(folder.is_relative_to(other) for other in self.deep - {folder})
        ]
        flat = [
            folder
            for folder in self.names
            if folder.is_dir() and not any(folder.is_relative_to(other) for other in deep)
        ]
        return (
            *(Place(folder, tuple(sorted(self.names[folder]))) for folder in sorted(flat)),
            *(Place(folder, deep=True) for folder in sorted(deep)),
        )

    def resolve(self, path: str) -> Path:
        """The real path of a path below the project folder. Each step inside that folder is watched, and outside only
        the last."""
        at, steps, links = self.root, [step for step in path.split("/") if step], 0
        while steps:
            step = steps.pop(0)
            if step == "..":
                at = at.parent
                continue
            if not steps or at.is_relative_to(self.root):
                self.names.setdefault(at, set()).add(glob.escape(step))
            target = _link(at / step) if links < MAX_LINKS else None
            if target is None:
                at /= step
                continue
            links += 1
            at = Path(target.anchor or at)
            steps = [*target.relative_to(target.anchor).parts, *steps]
        return at

    def add_pattern(self, pattern: str) -> None:
        """Adds the folders in which a file may match the pattern, and the paths of the files that do."""
        for path in paths_of(pattern, self._matching):
            self.resolve(path)

    def _matching(self, folder: str, pattern: str) -> Iterator[str]:
        if not has_wildcards(pattern):
            yield pattern
            return
        place = self.resolve(folder)
        self.names.setdefault(place, set()).add(pattern)
        try:
            names = sorted(entry.name for entry in place.iterdir())
        except OSError:
            return
        yield from (name for name in names if matches_name(pattern, name))


def _link(path: Path) -> Path | None:
    try:
        return path.readlink()
    except OSError:
        return None
