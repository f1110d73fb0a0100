"""The project as its authors load it, for which `ruleop.yaml` gives values to variables that the rules read; and the
objects in the files of `-f` and `--with`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.authoring.offline import SUFFIXES, documents_in
from ruleop.authoring.report import excerpt, mistake
from ruleop.cli.options import read_rule_files, variables
from ruleop.cli.program import UsageError
from ruleop.cli.terminal import print_diagnostics
from ruleop.errors import Site
from ruleop.files import read_named, read_stream, why_unreadable
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.checking import checked
from ruleop.language.rules.operator_choices import read_choices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.authoring.offline import Document
    from ruleop.cli.options import Folder
    from ruleop.language.rules import Finding
    from ruleop.language.rules.loading import Loaded


# -- the project -------------------------------------------------------------------------------------------------------
# The project as its authors load it: `ruleop.yaml` gives values to variables that the rules read.


def load_with_sources(folder: Folder, env_files: Iterable[str]) -> Loaded:
    """The project for its author, with what the rules were made from. Raises the same, also for ruleop.yaml."""
    try:
        environ = project_variables(folder, env_files)
    except ProjectErrors as errors:
        raise ProjectErrors({*errors.findings, *_other_mistakes(folder, env_files)}) from None
    return checked(read_rule_files(folder), environ=environ)


def project_variables(folder: Folder, env_files: Iterable[str]) -> Mapping[str, str]:
    """The variables that watches.yaml can read, with those that ruleop.yaml gives. Raises ProjectErrors."""
    return {**read_choices(Path(folder.name)).env, **variables(env_files)}


def _other_mistakes(folder: Folder, env_files: Iterable[str]) -> Iterable[Finding]:
    """Those of the rules, except variables: ruleop.yaml may give them."""
    try:
        return checked(read_rule_files(folder), environ=variables(env_files)).project.findings
    except ProjectErrors as errors:
        return [each for each in errors.findings if each.code != "environment"]


# -- files of objects --------------------------------------------------------------------------------------------------

STDIN = "-"


def read_documents(files: Iterable[str], *, folder: str, quoting: bool = True) -> list[Document]:
    """All objects of the files and folders; a `kind: List` is split into its items. Prints mistakes, then fails.

    `quoting`: whether lines of the files may be printed. False for objects of a cluster, because some are Secrets.
    """
    found: list[Document] = []
    unusable = []
    for file in _expanded(files):
        name, text = "stdin" if file == STDIN else file, _text(file, folder)
        documents, mistakes = documents_in(text, name)
        found += documents
        for each in mistakes:
            print_diagnostics([*mistake(str(each.site), each.message), *(excerpt(text, each.site) if quoting else ())])
        unusable += [name] if mistakes else []
    if unusable:
        raise UsageError(f"{', '.join(unusable)} cannot be used")
    return found


def _expanded(files: Iterable[str]) -> Iterator[str]:
    """The files, with each folder replaced by its YAML and JSON files in order, without subfolders, as kubectl does."""
    for file in files:
        if file == STDIN or not Path(file).is_dir():
            yield file
            continue
        try:
            entries = sorted(Path(file).iterdir())
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
        found = [entry.as_posix() for entry in entries if _is_object_file(entry)]
        if not found:
            raise UsageError(f"{file}: no .yaml, .yml or .json file in this folder")
        yield from found


def _is_object_file(path: Path) -> bool:
    return path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _text(file: str, folder: str) -> str:
    try:
        data = read_stream(sys.stdin.buffer) if file == STDIN else read_named(Path(file))
    except FileNotFoundError:
        inside = Path(folder) / file
        meant = f" (paths are relative to the current folder; did you mean {inside.as_posix()}?)"
        raise UsageError(f"{file}: no such file{meant if inside.exists() else ''}") from None
    except OSError as error:
        raise UsageError(f"{'stdin' if file == STDIN else file}: {why_unreadable(error)}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{Site(file, line)}: not valid UTF-8") from None
