"""A project's files as text, read from a folder. Everything else about loading is done in memory, on what this gives.

What a template can reach is what lies below the folder, whatever links say: a link that leads out would let whoever may add a file to a
project read the operator's own files. Links inside are followed, for Kubernetes mounts a ConfigMap as links to `..data`, itself a link to a
folder that is swapped at each change; names that begin with a dot are therefore not looked at by themselves.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import TYPE_CHECKING

from ruleop.errors import Site
from ruleop.rules.language.environment import is_text
from ruleop.rules.loading.includes import WATCHES, has_signs, means, patterns_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ruleop.rules.findings import Findings

MAX_BYTES = 1024 * 1024  # of a file; a ConfigMap cannot hold more
MAX_CRD_BYTES = 8 * 1024 * 1024  # generated ones are large: those of Prometheus have more than 1 MB
MAX_FILES = 5000
_TEMPLATE_NAME = re.compile(r"[A-Za-z0-9._/-]+", re.ASCII)


class _TooManyFilesError(Exception):
    pass


def read_files(root: Path, findings: Findings) -> dict[str, str]:
    """The files of a project by their path below its folder, with / between the parts."""
    if not root.is_dir():
        findings.mistake("unreadable", "there is no such folder", Site(str(root)))
        return {}
    return _Reader(root, findings).read()


def read_regular(file: Path, most: int) -> bytes:
    """A file, up to so many bytes. Nothing else is opened: a pipe would be waited for, and a device has no end."""
    mode = file.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # it may have become a pipe just now
        return stream.read(most)


class _Reader:
    def __init__(self, root: Path, findings: Findings) -> None:
        self.root = root
        self.findings = findings
        self.texts: dict[str, str] = {}

    def read(self) -> dict[str, str]:
        try:
            self._file(self.root / WATCHES, WATCHES, self.root)
            for pattern in patterns_in(self.texts.get(WATCHES, "")):
                for path in self._matching(pattern):
                    self._file(self.root / path, path, self.root)
            self._templates(self.root / "templates")
            self._crds(self.root / "crds")
        except _TooManyFilesError:
            self._mistake(str(self.root), f"the project has more than {MAX_FILES} files")
        return self.texts

    def _matching(self, pattern: str) -> Iterator[str]:
        *outer, last = pattern.split("/")
        folders = [""]
        for part in outer:
            folders = [f"{folder}{name}/" for folder in folders for name in self._meant(folder, part)]
        for folder in folders:
            for name in self._meant(folder, last):
                yield folder + name

    def _meant(self, folder: str, pattern: str) -> Iterable[str]:
        """The names in a folder that one part of a pattern means."""
        if not has_signs(pattern):
            return (pattern,)
        return (name for name in self._names(self.root / folder, folder.removesuffix("/") or str(self.root)) if means(pattern, name))

    def _templates(self, folder: Path) -> None:
        if (real := self._real(folder, "templates", folder)) is not None:
            self._folder(folder, "templates", folder, (real,))

    def _folder(self, folder: Path, prefix: str, top: Path, around: tuple[Path, ...]) -> None:
        for name in self._names(folder, prefix):
            entry, path = folder / name, f"{prefix}/{name}"
            real = self._real(entry, path, top)
            if real is None:
                continue
            if real.is_dir():
                if real in around:
                    self._mistake(path, "this link leads to a folder around it: remove it")
                    continue
                self._folder(entry, path, top, (*around, real))
            elif not _TEMPLATE_NAME.fullmatch(name):
                self._mistake(path, "a template's name has only letters, digits and . _ - in it: rename it")
            else:
                self._text(real, path)

    def _crds(self, folder: Path) -> None:
        if self._real(folder, "crds", folder) is None:
            return
        for name in self._names(folder, "crds"):
            if name.endswith((".yaml", ".yml", ".json")):
                self._file(folder / name, f"crds/{name}", folder)

    def _names(self, folder: Path, path: str) -> list[str]:
        """What is in a folder, without hidden files and what editors leave behind. Only one that is not there holds nothing."""
        try:
            return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(".") and not entry.name.endswith("~"))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._mistake(path, f"cannot be read: {error.strerror}")
            return []

    def _file(self, file: Path, path: str, top: Path) -> None:
        if (real := self._real(file, path, top)) is not None:
            self._text(real, path)

    def _real(self, entry: Path, path: str, top: Path) -> Path | None:
        """Where a file or folder is, behind all links, if that is below `top`."""
        try:
            real, inside = entry.resolve(strict=True), top.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError) or error.errno == errno.ELOOP:  # a circle of links; which of the two depends on Python
                self._mistake(path, "this link leads nowhere")
            elif not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                self._mistake(path, f"cannot be read: {error.strerror}")
            elif entry.is_symlink():
                self._mistake(path, "this link leads nowhere")
            return None
        if not real.is_relative_to(inside):
            self._mistake(path, "this link leads out of the project's folder: only what lies inside is read")
            return None
        return real

    def _text(self, real: Path, path: str) -> None:
        """Reads one file, if it is one and small enough."""
        if path in self.texts:
            return
        if len(self.texts) >= MAX_FILES:
            raise _TooManyFilesError
        if not is_text(path):
            self._mistake(path, "a file's name is no UTF-8 text: rename it, or the folder")
            return
        limit = MAX_CRD_BYTES if path.startswith("crds/") else MAX_BYTES
        try:
            data = read_regular(real, limit + 1)
        except OSError as error:
            if path == WATCHES or not isinstance(error, IsADirectoryError):  # a pattern may match a folder
                self._mistake(path, f"cannot be read: {error.strerror}")
            return
        if len(data) > limit:
            self._mistake(path, f"is larger than {limit // 1024} KiB")
            return
        try:
            self.texts[path] = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            self._mistake(path, "is no UTF-8 text", line)

    def _mistake(self, path: str, message: str, line: int = 0) -> None:
        """The name of a file may be any bytes; what is said of it is text."""
        self.findings.mistake("unreadable", message, Site(path.encode("utf-8", "backslashreplace").decode(), line))
