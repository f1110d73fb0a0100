"""Reads the files of a project from a folder. The rest of loading works on their texts in memory.

Only files below the folder are read: a link to the outside would allow anyone who can add a file to a project to read
the operator's own files. Links inside are followed, because Kubernetes mounts a ConfigMap as links to `..data`, which
is itself a link to a folder that is replaced at each change. Names that start with a dot are therefore skipped.

`include` names further files of watches. Patterns match folder by folder, as in a shell, and match names that start
with a dot only literally: a mounted ConfigMap has a second copy of each file in `..data`, and a repository has `.git`.
"""

from __future__ import annotations

import glob
import hashlib
import re
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.errors import Site
from ruleop.files import is_utf8, read_regular, resolve_inside, why_unreadable
from ruleop.language.rules.findings import Finding, Findings
from ruleop.language.templates import read_yaml
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.language.rules.keys.model import Project

WATCHES = "watches.yaml"


def is_inside(pattern: str) -> bool:
    return (
        not pattern.startswith("/") and "\\" not in pattern and "\0" not in pattern and ".." not in pattern.split("/")
    )


def normalise_pattern(pattern: str) -> str:
    """The pattern without empty parts and dots, so that each file has one path."""
    return "/".join(part for part in pattern.split("/") if part not in ("", "."))


def has_wildcards(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[")


def matches_name(pattern: str, name: str) -> bool:
    """Whether one part of a pattern matches this name."""
    return name == pattern or (has_wildcards(pattern) and not name.startswith(".") and fnmatchcase(name, pattern))


def matches(path: str, pattern: str) -> bool:
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(matches_name, patterns, parts))


def paths_of(pattern: str, names: Callable[[str, str], Iterable[str]]) -> Iterator[str]:
    """The paths that match a pattern, folder by folder. `names`: those in a folder that match one part of it; the path
    of the folder is empty or ends with a slash."""
    *outer, last = pattern.split("/")
    folders = [""]
    for part in outer:
        folders = [f"{folder}{name}/" for folder in folders for name in names(folder, part)]
    for folder in folders:
        yield from (folder + name for name in names(folder, last))


def patterns_in(text: str) -> tuple[str, ...]:
    """The valid patterns of a watches.yaml, parsed before everything else to find the files to read."""
    documents, _ = read_yaml(text, WATCHES)
    found = documents[0].member("include") if documents else None
    items = found.value if found is not None and isinstance(found.value, list) else []
    return tuple(
        normalise_pattern(item.value) for item in items if isinstance(item.value, str) and is_inside(item.value)
    )


MAX_BYTES = 1024 * 1024  # of a file; the limit of a ConfigMap
MAX_CRD_BYTES = 8 * 1024 * 1024  # generated CRDs are large: some of Prometheus have more than 1 MB
MAX_FILES = 5000
_TEMPLATE_NAME = re.compile(r"[A-Za-z0-9._/-]+", re.ASCII)


class _TooManyFilesError(Exception):
    pass


def read_files(root: Path, findings: Findings) -> dict[str, str]:
    """The texts of a project's files by their relative paths, with / between the parts."""
    if not root.is_dir():
        findings.mistake("unreadable", "no such folder", Site(str(root)))
        return {}
    return _Reader(root, findings).read()


class _Reader:
    def __init__(self, root: Path, findings: Findings) -> None:
        self.root = root
        self.findings = findings
        self.texts: dict[str, str] = {}

    def read(self) -> dict[str, str]:
        try:
            self._file(self.root / WATCHES, WATCHES, self.root)
            for pattern in patterns_in(self.texts.get(WATCHES, "")):
                for path in paths_of(pattern, self._matching_names):
                    self._file(self.root / path, path, self.root)
            templates = self.root / "templates"
            if (real := self._resolve(templates, "templates", templates)) is not None:
                self._folder(templates, "templates", templates, (real,))
            self._crds(self.root / "crds")
        except _TooManyFilesError:
            self._mistake(str(self.root), f"the project has more than {MAX_FILES} files")
        return self.texts

    def _matching_names(self, folder: str, pattern: str) -> Iterable[str]:
        """The names in a folder that match one part of a pattern."""
        if not has_wildcards(pattern):
            return (pattern,)
        return (
            name
            for name in self._names(self.root / folder, folder.removesuffix("/") or str(self.root))
            if matches_name(pattern, name)
        )

    def _folder(self, folder: Path, prefix: str, top: Path, parents: tuple[Path, ...]) -> None:
        for name in self._names(folder, prefix):
            entry, path = folder / name, f"{prefix}/{name}"
            real = self._resolve(entry, path, top)
            if real is None:
                continue
            if real.is_dir():
                if real in parents:
                    self._mistake(path, "this link points to one of its parent folders: remove it")
                    continue
                self._folder(entry, path, top, (*parents, real))
            elif not _TEMPLATE_NAME.fullmatch(name):
                self._mistake(path, "the name of a template may only contain letters, digits and . _ -: rename it")
            else:
                self._text(real, path)

    def _crds(self, folder: Path) -> None:
        if self._resolve(folder, "crds", folder) is None:
            return
        for name in self._names(folder, "crds"):
            if name.endswith((".yaml", ".yml", ".json")):
                self._file(folder / name, f"crds/{name}", folder)

    def _names(self, folder: Path, path: str) -> list[str]:
        """The names in a folder, without hidden files and backups of editors. Empty if the folder does not exist."""
        try:
            return sorted(
                entry.name
                for entry in folder.iterdir()
                if not entry.name.startswith(".") and not entry.name.endswith("~")
            )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._mistake(path, f"cannot be read: {error.strerror}")
            return []

    def _file(self, file: Path, path: str, top: Path) -> None:
        if (real := self._resolve(file, path, top)) is not None:
            self._text(real, path)

    def _resolve(self, entry: Path, path: str, top: Path) -> Path | None:
        """The real path of a file or folder, if it is below `top`."""
        try:
            return resolve_inside(entry, top)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._mistake(path, why_unreadable(error))
            return None

    def _text(self, real: Path, path: str) -> None:
        """Reads one regular file that is small enough."""
        if path in self.texts:
            return
        if len(self.texts) >= MAX_FILES:
            raise _TooManyFilesError
        if not is_utf8(path):
            self._mistake(path, "the name of the file is not valid UTF-8: rename it or its folder")
            return
        limit = MAX_CRD_BYTES if path.startswith("crds/") else MAX_BYTES
        try:
            data = read_regular(real, limit)
        except OSError as error:
            if path == WATCHES or not isinstance(error, IsADirectoryError):  # a pattern may match a folder
                self._mistake(path, why_unreadable(error))
            return
        try:
            self.texts[path] = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            self._mistake(path, "is not valid UTF-8", line)

    def _mistake(self, path: str, message: str, line: int = 0) -> None:
        """Records a mistake. The name of a file may be any bytes, but messages are text."""
        self.findings.mistake("unreadable", message, Site(path.encode("utf-8", "backslashreplace").decode(), line))


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """The files of a project, before anything is made of them."""

    root: str
    texts: Mapping[str, str]  # by their relative paths
    unreadable: tuple[Finding, ...] = ()

    @classmethod
    def read(cls, root: Path | str) -> RuleFiles:
        texts: dict[str, str] = {}
        findings = Findings(texts)
        texts.update(read_files(Path(root), findings))
        return cls(str(root), texts, findings.sorted())

    @classmethod
    def of(cls, project: Project) -> RuleFiles:
        return cls(project.root, project.files)

    def findings(self) -> Findings:
        """For more findings about them."""
        return Findings.of(self.texts, self.unreadable)

    @property
    def digest(self) -> str:
        """Also of what cannot be read; `Project.revision` if there is nothing of the kind. Detects that nothing has
        changed without loading."""
        return digest_of([*sorted(self.texts.items()), *(("", str(each)) for each in self.unreadable)])


def digest_of_files(files: Mapping[str, str]) -> str:
    return digest_of(sorted(files.items()))


def digest_of(parts: Iterable[tuple[str, str | None]]) -> str:
    """The digest of the parts with their lengths, so that different sequences differ."""
    found = hashlib.sha256()
    for name, text in parts:
        for part in (name, "" if text is None else f"={text}"):
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()


# -- watched paths -----------------------------------------------------------------------------------------------------
#
# The folder of a project may be a repository with thousands of files in `.git` and `.venv` that change all the time. So
# only watches.yaml, the files that it includes, templates/ and crds/ are watched. A file or folder may be behind links,
# as in a mounted ConfigMap (watches.yaml is a link to ..data/watches.yaml, and ..data a link to a folder named for the
# date); each link on the path is watched as well.

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
