"""What all commands of `ruleop generate` have in common: the text goes to stdout or into files, or is compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ruleop.cli.program import DONE, NO, UsageError
from ruleop.cli.terminal import print_lines, print_text
from ruleop.files import read_regular, why_unreadable
from ruleop.report.plan_text import Span, Tone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.report.plan_text import Line

F = TypeVar("F", bound=Callable[..., Any])


def generated_options(command: F) -> F:
    command = click.option(
        "--check", is_flag=True, help="Write nothing: check whether the files of --out are current."
    )(command)
    return click.option(
        "--out", default="", metavar="DIR", help="Write files to this folder, instead of printing to stdout."
    )(command)


def print_or_write(files: Mapping[str, str], printed: str, *, out: str, check: bool, mark: str = "") -> int:
    """Prints a text, or writes all files, or with `check` compares them with what is on disk. A file that does not
    begin with the mark is not overwritten."""
    if check and not out:
        raise UsageError("--check compares with files: name their folder with --out")
    if not out:
        print_text(printed)
        return DONE
    folder = Path(out)
    existing = {name: _content(folder / name) for name in files}
    stale = {name: text for name, text in files.items() if existing[name] != text.encode()}
    if not check:
        for name in stale:
            if not (existing[name] or mark.encode()).startswith(mark.encode()):
                path = (folder / name).as_posix()
                raise UsageError(
                    f"{path} was not made by `ruleop generate`: nothing was written; --force overwrites it"
                )
        for name, text in stale.items():
            _write(folder / name, text)
    lines: list[Line] = []
    for name in files:
        state = Span("current") if name not in stale else Span("not current", Tone.BAD) if check else Span("written")
        lines.append((Span(f"{(folder / name).as_posix()}: "), state))
    print_lines(lines)
    return NO if check and stale else DONE


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: {why_unreadable(error)}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
