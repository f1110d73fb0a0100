"""Reads files, never more than a limit of bytes.

Files that were found (in a project, in a folder of credentials) are regular files: a pipe would block, and a device may
be endless. Of a project, only files inside its folder are read: a link to the outside would show the author of a
project files of the user who checks it. A file that the user names may be a pipe, such as `<(command)`.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE: Final = 64 * 1024 * 1024
MAX_CREDENTIAL: Final = 1024 * 1024  # a token, a certificate, or the output of a plugin


class RefusedFileError(OSError):
    """A file that is not read, whatever it contains. `strerror` is a sentence about the file."""


def read_regular(file: Path, limit: int = MAX_FILE) -> bytes:
    """The bytes of a regular file. Raises OSError."""
    mode = file.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(file))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(file))
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # it may have been replaced by a pipe
        return read_stream(stream, limit, str(file))


def read_named(file: Path, limit: int = MAX_FILE) -> bytes:
    """The bytes of a file or pipe. Raises OSError."""
    with file.open("rb") as stream:
        return read_stream(stream, limit, str(file))


def read_stream(stream: IO[bytes], limit: int = MAX_FILE, name: str = "") -> bytes:
    """All bytes of a stream. Raises OSError if there are more than the limit."""
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise RefusedFileError(errno.EFBIG, f"is larger than {limit // 1024} KiB", name)
    return data


def read_inside(file: Path, root: Path, limit: int = MAX_FILE) -> bytes:
    """The bytes of a regular file inside a folder. Raises OSError."""
    return read_regular(resolve_inside(file, root), limit)


def resolve_inside(entry: Path, root: Path) -> Path:
    """The real path of a file or folder, which is inside another folder. Raises OSError."""
    try:
        real, top = entry.resolve(strict=True), root.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # a cycle of links; the error depends on the version of Python
        cyclic = isinstance(error, RuntimeError) or error.errno == errno.ELOOP
        if cyclic or (isinstance(error, (FileNotFoundError, NotADirectoryError)) and entry.is_symlink()):
            raise RefusedFileError(errno.ELOOP, "this link is broken", str(entry)) from None
        raise
    if not real.is_relative_to(top):
        why = "this link points outside of the project folder: only files inside are read"
        raise RefusedFileError(errno.EXDEV, why, str(entry))
    return real


def why_unreadable(error: OSError) -> str:
    """The text of a message about a file, after the file's name."""
    return str(error.strerror) if isinstance(error, RefusedFileError) else f"cannot be read: {error.strerror}"


def is_utf8(value: str) -> bool:
    """Whether a variable or the name of a file is valid UTF-8. Python represents other bytes as unpaired surrogates."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
