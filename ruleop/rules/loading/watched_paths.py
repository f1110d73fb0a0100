"""Where a project's files are: the folders in which something has to happen before the project can be another one.

A project's folder may hold much else: it may be a repository, with thousands of files in `.git` and `.venv` that change all the time. So
only what belongs to the project is said here: watches.yaml and the files that it includes, templates/ and crds/. A file or folder may be a
link, or lie behind several, as in a mounted ConfigMap (watches.yaml is a link to ..data/watches.yaml, and ..data a link to a folder with a
date for a name); each link on the way is a place too, for it may be turned.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.rules.loading.files import MAX_BYTES, read_regular
from ruleop.rules.loading.includes import WATCHES, has_signs, means, patterns_in

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_LINKS = 40  # on the way to one file, as in Linux


@dataclass(frozen=True, slots=True)
class Place:
    """A folder without links in its path, and the patterns of the names in it that matter. `deep`: with all that is below it."""

    folder: Path
    names: tuple[str, ...] = ("*",)
    deep: bool = False

    def concerns(self, path: Path) -> bool:
        """Whether the project may be another one when something happens to this file or folder in the place."""
        if path == self.folder:
            return True
        # Editors' own files. The ..data of a ConfigMap begins with two dots.
        if path.name.endswith("~") or (path.name.startswith(".") and not path.name.startswith("..")):
            return False
        return any(fnmatchcase(path.name, pattern) for pattern in self.names)


def places(root: Path) -> tuple[Place, ...]:
    """The places of the project that is in this folder now."""
    found = _Finding(root.resolve())
    found.way(WATCHES)
    for pattern in patterns_in(_text(root / WATCHES)):
        found.included(pattern)
    for name in ("templates", "crds"):
        if (folder := found.way(name)).is_dir():
            found.deep.add(folder)
    return found.places()


def _text(file: Path) -> str:
    try:
        return read_regular(file, MAX_BYTES).decode("utf-8-sig")
    except (OSError, ValueError):
        return ""  # loading says why


@dataclass(slots=True)
class _Finding:
    root: Path
    names: dict[Path, set[str]] = field(default_factory=dict)
    deep: set[Path] = field(default_factory=set)

    def places(self) -> tuple[Place, ...]:
        """A place below one that is watched with all below it needs no watch of its own."""
        deep = [folder for folder in self.deep if not any(folder.is_relative_to(other) for other in self.deep - {folder})]
        flat = [folder for folder in self.names if folder.is_dir() and not any(folder.is_relative_to(other) for other in deep)]
        return (
            *(Place(folder, tuple(sorted(self.names[folder]))) for folder in sorted(flat)),
            *(Place(folder, deep=True) for folder in sorted(deep)),
        )

    def way(self, path: str) -> Path:
        """Where a path below the project's folder leads. Each step inside that folder is a place, and outside it the last one."""
        at, steps, links = self.root, [step for step in path.split("/") if step], 0
        while steps:
            step = steps.pop(0)
            if step == "..":
                at = at.parent
                continue
            if not steps or at.is_relative_to(self.root):
                self.names.setdefault(at, set()).add(glob.escape(step))
            target = _link(at / step) if links < MOST_LINKS else None
            if target is None:
                at /= step
                continue
            links += 1
            at = Path(target.anchor or at)
            steps = [*target.relative_to(target.anchor).parts, *steps]
        return at

    def included(self, pattern: str) -> None:
        """The folders in which a file may come to match the pattern, and the ways to those that do."""
        *outer, last = pattern.split("/")
        folders = [""]
        for part in outer:
            folders = [f"{folder}{name}/" for folder in folders for name in self._matching(folder, part)]
        for folder in folders:
            for name in self._matching(folder, last):
                self.way(folder + name)

    def _matching(self, folder: str, pattern: str) -> Iterator[str]:
        if not has_signs(pattern):
            yield pattern
            return
        place = self.way(folder)
        self.names.setdefault(place, set()).add(pattern)
        try:
            names = sorted(entry.name for entry in place.iterdir())
        except OSError:
            return
        yield from (name for name in names if means(pattern, name))


def _link(path: Path) -> Path | None:
    try:
        return path.readlink()
    except OSError:
        return None
