"""The project that a command works on: which folder, which environment, and what is said when it cannot be used."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ruleop.cli.program import DEBUG, UsageError
from ruleop.errors import Site
from ruleop.rules import ProjectErrors, load_project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.rules import Project

WATCHES = "watches.yaml"
F = TypeVar("F", bound=Callable[..., Any])


def project_options(command: F) -> F:
    """What every command on a project takes."""
    command = click.option("--debug", is_flag=True, expose_value=False, help=f"Show a traceback on internal errors. Also {DEBUG}=1.")(
        command
    )
    command = click.option(
        "--env-file",
        "env_files",
        multiple=True,
        metavar="FILE",
        help="NAME=value lines for the variables that watches.yaml reads. Repeatable.",
    )(command)
    return click.option("-C", "folder", default=".", metavar="DIR", help="The project's folder. Default: here.")(command)


@dataclass(frozen=True, slots=True)
class Folder:
    """A project's folder, as it was named on the command line."""

    name: str

    def place(self, site: Site) -> str:
        """A place in the project as seen from where the command was called, so that an editor finds it."""
        return str(Site(self.path(site.path), site.line, site.column))

    def path(self, path: str) -> str:
        return path if Path(self.name) == Path() or Path(path).is_absolute() else (Path(self.name) / path).as_posix()


def load(folder: Folder, env_files: Iterable[str]) -> Project:
    """Raises UsageError where there is no project to read, and ProjectErrors where there is one with mistakes."""
    root = Path(folder.name)
    environ = variables(env_files)
    try:
        _look(root)
        return load_project(root, environ=environ)
    except OSError as error:
        raise UsageError(f"{error.filename or root}: cannot be read: {error.strerror}") from None


def variables(env_files: Iterable[str]) -> Mapping[str, str]:
    """What watches.yaml can read: what the files say, over what the environment says."""
    return {**os.environ, **_read(env_files)}


def is_unreadable(errors: ProjectErrors) -> bool:
    """Whether files could not even be read, so that nothing is known about the rest."""
    return any(finding.code == "unreadable" for finding in errors.findings)


def _look(root: Path) -> None:
    if not root.is_dir():
        found = "is a file: name the project's folder" if root.exists() else "no such folder"
        raise UsageError(f"{root}: {found}")
    if not (root / WATCHES).exists() and not (root / WATCHES).is_symlink():
        above = next((parent for parent in root.resolve().parents if (parent / WATCHES).is_file()), None)
        hint = f"; the folder {above} above it is one" if above else "; -C DIR names another folder"
        raise UsageError(f"{'this folder' if root == Path() else root} is no project: it has no {WATCHES}{hint}")


def _read(files: Iterable[str]) -> Mapping[str, str]:
    """A value is taken as it stands, without the quotes around it."""
    found: dict[str, str] = {}
    for name in files:
        try:
            text = Path(name).read_text("utf-8")
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{name}: is not valid UTF-8") from None
        for number, line in enumerate(text.splitlines(), 1):
            said = line.strip()
            if not said or said.startswith("#"):
                continue
            variable, equals, value = said.removeprefix("export ").partition("=")
            if not equals or not variable.strip().isidentifier():
                raise UsageError(f"{name}:{number}: a line is NAME=value, a comment after #, or empty")
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            found[variable.strip()] = value[1:-1] if quoted else value
    return found
