"""Writes the files of a new project. Nothing is overwritten: if a file of the rules exists, none is written.

There is no `--force`: a project is made once, and the files that exist are somebody's work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.errors import RuleopError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path


class ExistsError(RuleopError):
    """Files of the new project exist, or their folder cannot be used."""


def write_files(root: Path, files: Mapping[str, str], optional: Collection[str] = ()) -> list[str]:
    """Writes all files, or none. Of the `optional` ones, those that exist are left as they are, and returned."""
    if root.exists() and not root.is_dir():
        raise ExistsError(f"{root} is a file: name a folder")
    present = [path for path in files if (root / path).exists() or (root / path).is_symlink()]
    existing = [path for path in present if path not in optional]
    if existing:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise ExistsError(
            f"{(root / existing[0]).as_posix()} exists{more}: nothing was written; move it away, or name another folder"
        )
    try:
        for path, text in files.items():
            if path in present:
                continue
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except OSError as error:
        raise ExistsError(f"{error.filename}: cannot be written: {error.strerror}") from None
    return present
