"""The options that several commands have, and the project that they name: its folder, its environment, and the errors
when it cannot be used. A command with the options of a cluster works without one too, so this imports no client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.cli.program import DEBUG, F, UsageError
from ruleop.errors import Site
from ruleop.files import read_named, read_regular, why_unreadable
from ruleop.language.rules import MAX_CRD_BYTES, RuleFiles
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ruleop.language.rules import ProjectErrors

KUBECONFIG: Final = "Path of the kubeconfig. Default: $KUBECONFIG, the pod's service account, ~/.kube/config."
CONTEXT: Final = "Context of the kubeconfig. Default: the current one."
DEFAULT_NAME: Final = "Default: that of ruleop.yaml, or ruleop."


def flag(name: str, **settings: Any) -> Callable[[F], F]:
    """An option that is also read from RULEOP_<NAME>."""
    variable = "RULEOP_" + name.split("/", maxsplit=1)[0].lstrip("-").upper().replace("-", "_")
    return click.option(name, envvar=variable, show_envvar=True, **settings)


def connection_options(command: F) -> F:
    """The options that name a cluster."""
    command = flag("--context", default="", metavar="NAME", help=CONTEXT)(command)
    return flag("--kubeconfig", default="", metavar="FILE", help=KUBECONFIG)(command)


def operator_options(command: F) -> F:
    """The options that name an operator."""
    command = flag(
        "--operator-namespace",
        default="",
        metavar="NAMESPACE",
        help="Namespace of the operator's inventory. Default: it is searched in all namespaces.",
    )(command)
    help_ = f"Name of the operator, as in `ruleop run --name`. {DEFAULT_NAME}"
    return flag("--name", default="", metavar="NAME", help=help_)(command)


def cluster_options(command: F) -> F:
    """The options that name a cluster, a namespace in it, and its operator."""
    command = connection_options(operator_options(command))
    return click.option("-n", "--namespace", default="", metavar="NS", help="Namespace. Default: the context's.")(
        command
    )


port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the API server. Default: a free one."
)


def new_file(_context: click.Context, parameter: click.Parameter, path: str) -> str:
    """The callback of an option that names a file to write."""
    if path and Path(path).exists():
        raise click.BadParameter(f"{path} exists; name a file that does not", param_hint=parameter.opts[0])
    return path


def operator_name(folder: str, given: str) -> str:
    """That of `--name`, else that of `ruleop.yaml`. Raises ProjectErrors."""
    if given:
        return given
    # An operator in a cluster has no such file: the manifests that are generated from it give the name.
    from ruleop.language.rules.operator_choices import read_choices  # noqa: PLC0415

    return read_choices(Path(folder)).name


# -- project -----------------------------------------------------------------------------------------------------------

WATCHES = "watches.yaml"


def debug_option(command: F) -> F:
    help_ = f"Show a traceback on internal errors. Also {DEBUG}=1."
    return click.option("--debug", is_flag=True, expose_value=False, help=help_)(command)


def folder_option(command: F) -> F:
    return click.option(
        "-C",
        "folder",
        default=".",
        metavar="DIR",
        help="Folder of the project, the one with watches.yaml. Default: the current folder.",
    )(command)


def project_options(command: F) -> F:
    """The options of every command on a project."""
    command = click.option(
        "--env-file",
        "env_files",
        multiple=True,
        metavar="FILE",
        help="File of NAME=value lines: environment variables that watches.yaml reads. Repeatable.",
    )(debug_option(command))
    return folder_option(command)


@dataclass(frozen=True, slots=True)
class Folder:
    """A project's folder, as it was named on the command line."""

    name: str

    def place(self, site: Site) -> str:
        """A place in the project, relative to the current folder, so that an editor finds it."""
        return str(Site(self.path(site.path), site.line, site.column))

    def text(self, site: Site) -> str:
        """The file at a place, if it was loaded; empty if it cannot be read. Without a line it is not read: it may be a
        device."""
        if not site.line:
            return ""
        try:
            return read_regular(Path(self.path(site.path)), MAX_CRD_BYTES).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return ""

    def source(self, site: Site) -> str:
        """The line of the file at a place, without its indentation; empty if it is not known."""
        lines = self.text(site).split("\n")
        return lines[site.line - 1].strip() if 0 < site.line <= len(lines) else ""

    def path(self, path: str) -> str:
        return path if Path(self.name) == Path() or Path(path).is_absolute() else (Path(self.name) / path).as_posix()


def variables(env_files: Iterable[str]) -> Mapping[str, str]:
    """The variables that the operator can read. Those of the files override the environment."""
    return {**os.environ, **_read(env_files)}


def read_rule_files(folder: Folder) -> RuleFiles:
    """Raises UsageError if the folder holds no project."""
    root = Path(folder.name)
    try:
        _require_project(root)
        return RuleFiles.read(root)
    except OSError as error:
        raise UsageError(f"{error.filename or root}: cannot be read: {error.strerror}") from None


def is_unreadable(errors: ProjectErrors) -> bool:
    """Whether some files could not be read, so that the check is incomplete."""
    return any(finding.code == "unreadable" for finding in errors.findings)


def _require_project(root: Path) -> None:
    if not root.is_dir():
        found = "is a file: name the project's folder" if root.exists() else "no such folder"
        raise UsageError(f"{root}: {found}")
    if not (root / WATCHES).exists() and not (root / WATCHES).is_symlink():
        above = next((parent for parent in root.resolve().parents if (parent / WATCHES).is_file()), None)
        hint = f" (its parent folder {above} has one)" if above else " (use -C DIR for another folder)"
        folder = "this folder" if root == Path() else str(root)
        raise UsageError(f"not a ruleop project: no {WATCHES} in {folder}{hint}")


def _read(files: Iterable[str]) -> Mapping[str, str]:
    """The variables of the files. A value is taken literally, without the quotes around it."""
    found: dict[str, str] = {}
    for name in files:
        try:
            text = read_named(Path(name)).decode()
        except OSError as error:
            raise UsageError(f"{name}: {why_unreadable(error)}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{name}: not valid UTF-8") from None
        for number, line in enumerate(text.splitlines(), 1):
            entry = line.strip()
            if not entry or entry.startswith("#"):
                continue
            variable, equals, value = entry.removeprefix("export ").partition("=")
            if not equals or not variable.strip().isidentifier():
                raise UsageError(f"{name}:{number}: expected NAME=value, a comment (#) or an empty line")
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            found[variable.strip()] = value[1:-1] if quoted else value
    return found
