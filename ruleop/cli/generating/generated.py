"""The output that all commands of `ruleop generate` share: the text goes to stdout or into files, or is compared."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ruleop.authoring.report import Span, Tone
from ruleop.cli.inputs.project import is_unreadable
from ruleop.cli.outputs import finding_formats as found
from ruleop.cli.outputs.terminal import print_diagnostics, print_lines, print_text
from ruleop.cli.program import DONE, NO, UNUSABLE, UsageError
from ruleop.files import read_regular, why_unreadable
from ruleop.language.rules import ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.authoring.report import Line
    from ruleop.cli.inputs.project import Folder

F = TypeVar("F", bound=Callable[..., Any])


def generated_options(command: F) -> F:
    command = click.option(
        "--check", is_flag=True, help="Write nothing: check whether the files of --out are current."
    )(command)
    return click.option(
        "--out", default="", metavar="DIR", help="Write files to this folder, instead of printing to stdout."
    )(command)


def force_option(command: F) -> F:
    text = "Overwrite files that `ruleop generate` did not make."
    return click.option("--force", is_flag=True, help=text)(command)


@contextmanager
def reporting(where: Folder) -> Iterator[None]:
    """Prints the mistakes of a project, and ends the command."""
    try:
        yield
    except ProjectErrors as errors:
        print_diagnostics(found.lines(errors.findings, where))
        raise click.exceptions.Exit(UNUSABLE if is_unreadable(errors) else NO) from None


@dataclass(frozen=True, slots=True)
class Made:
    """Identifies files on disk that `ruleop generate` made and may therefore replace."""

    mark: str = ""  # how such a file begins; empty if all are
    first: str = ""  # the file whose beginning speaks for all, where the others cannot have the mark
    folder: str = ""  # where every other file is one of an earlier run, and is removed


def print_or_write(files: Mapping[str, str], printed: str, *, out: str, check: bool, made: Made = Made()) -> int:
    """Prints a text, or writes all files, or with `check` compares them with what is on disk. A file that was not made
    by `ruleop generate` is not overwritten."""
    if check and not out:
        raise UsageError("--check compares with files: name their folder with --out")
    if not out:
        print_text(printed)
        return DONE
    folder = Path(out)
    surplus = [name for name in _names_below(folder, made.folder) if name not in files]
    existing = {name: _content(folder / name) for name in (*files, *surplus)}
    stale = {name: text for name, text in files.items() if existing[name] != text.encode()}
    if not check:
        for name in (*(name for name in stale if existing[name] is not None), *surplus):
            if not _is_made(existing.get(made.first or name), made):
                raise UsageError(
                    f"{(folder / name).as_posix()} was not made by `ruleop generate`: nothing was written;"
                    " --force overwrites it"
                )
        _replace({folder / name: text for name, text in stale.items()}, [folder / name for name in surplus])
    lines: list[Line] = []
    for name in (*files, *surplus):
        done = "removed" if name in surplus else "written"
        changed = name in stale or name in surplus
        state = Span("current") if not changed else Span("not current", Tone.BAD) if check else Span(done)
        lines.append((Span(f"{(folder / name).as_posix()}: "), state))
    print_lines(lines)
    return NO if check and (stale or surplus) else DONE


def _is_made(content: bytes | None, made: Made) -> bool:
    return not made.mark or (content is not None and content.startswith(made.mark.encode()))


def _names_below(folder: Path, inside: str) -> list[str]:
    """All files there. A link could lead to a folder whose files nobody made: it is an error."""
    found: list[str] = []
    entries = [folder / inside] if inside else []
    for entry in entries:
        if entry.is_symlink():
            raise UsageError(f"{entry} is a link: nothing was written; remove it, or name another folder with --out")
        if entry.is_dir():
            entries += sorted(entry.iterdir())
        elif entry.exists():
            found.append(entry.relative_to(folder).as_posix())
    return sorted(found)


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: {why_unreadable(error)}") from None


def _replace(texts: Mapping[Path, str], surplus: Sequence[Path]) -> None:
    """Writes all files beside their places first, so that a full disk or a folder without permission leaves everything
    as it was."""
    made: list[Path] = []
    written: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            for folder in reversed([each for each in path.parents if not each.is_dir()]):
                folder.mkdir(exist_ok=True)  # it exists by now if its path has ".."
                made.append(folder)
            written[path] = path.parent / f".{os.getpid()}-{len(written)}.ruleop"
            written[path].write_bytes(text.encode())
        for path in surplus:
            if not os.access(path.parent, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        for path, other in written.items():
            other.replace(path)
        for path in surplus:
            path.unlink()
    except OSError as error:
        for each in written.values():
            with contextlib.suppress(OSError):
                each.unlink()
        for each in reversed(made):
            with contextlib.suppress(OSError):
                each.rmdir()
        raise UsageError(f"{path}: cannot be written: {error.strerror}; nothing was written") from None
