"""The options and the output of the commands of `ruleop generate`: the choices for an operator, which override
`ruleop.yaml`; and files, which go to stdout or into a folder, or are compared."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from ruleop.authoring.generate import MARK
from ruleop.authoring.report import Span, Tone
from ruleop.cli import finding_formats as found
from ruleop.cli.options import Folder
from ruleop.cli.program import DONE, NO, F, UsageError
from ruleop.cli.terminal import print_lines, print_text
from ruleop.files import read_regular, why_unreadable
from ruleop.language.rules import ProjectErrors, operator_choices
from ruleop.language.rules.operator_choices import Choices, Rules, read_choices
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ruleop.authoring.report import Line
    from ruleop.language.rules.keys.value_types import TextValue


# -- choices -----------------------------------------------------------------------------------------------------------
# The choices for an operator in a cluster: those of `ruleop.yaml`, or of options, which override them.

_OPTIONS: Final[dict[str, tuple[TextValue, str, str]]] = {
    "name": (
        operator_choices.NAME,
        "NAME",
        "The name of the operator: of its account, roles, Lease, inventory and release.",
    ),
    "namespace": (operator_choices.NAMESPACE, "NAMESPACE", "The namespace in which the operator runs."),
    "namespaces": (operator_choices.NAMESPACE, "A,B", "The namespaces that it watches. Default: all."),
    "image": (operator_choices.IMAGE, "IMAGE", f"The image that runs. Default: {operator_choices.GENERIC_IMAGE}."),
    "rules-image": (
        operator_choices.RULES_IMAGE,
        "IMAGE",
        "An image of the rules alone, with its digest, mounted in place of a ConfigMap. Needs Kubernetes 1.35.",
    ),
    "version": (operator_choices.VERSION, "VERSION", "The version of the operator that these rules make."),
}


def choice_options(*names: str) -> Callable[[F], F]:
    """Options for these choices. All default to `ruleop.yaml`."""

    def decorate(command: F) -> F:
        for name in reversed(names):
            if name == "rules":
                text = "Mount the rules on the generic image, or use an image that holds them."
                command = click.option("--rules", type=click.Choice(get_args(Rules)), help=text)(command)
            else:
                _, metavar, text = _OPTIONS[name]
                command = click.option(f"--{name}", default="", metavar=metavar, help=text)(command)
        return command

    return decorate


def chosen(folder: str, flags: Mapping[str, Any]) -> Choices:
    """Raises ProjectErrors with the mistakes of `ruleop.yaml`, and UsageError for an option."""
    found = read_choices(Path(folder))
    given: dict[str, Any] = {}
    for name, value in flags.items():
        if not value:
            continue
        if name == "namespaces":
            names = [each.strip() for each in value.split(",") if each.strip()]
            given[name] = tuple(dict.fromkeys(valid(name, each, operator_choices.NAMESPACE) for each in names))
        elif name in _OPTIONS:
            given[name] = valid(name, value, _OPTIONS[name][0])
        elif name == "rules":
            given |= {"rules": value, "rules_image": ""}
        elif name == "rules_image":
            given |= {"rules": "configmap", name: valid("rules-image", value, operator_choices.RULES_IMAGE)}
    if flags.get("rules") and flags.get("rules_image"):
        raise UsageError("--rules-image mounts an image of rules, and --rules chooses another way: use one of them")
    return replace(found, **given)


def valid(option: str, value: str, form: TextValue) -> str:
    """The value, if it has this form. Raises UsageError."""
    if not form.fits(value):
        raise UsageError(f'--{option} must be {form.form}, not "{value}"')
    return value


# -- output ------------------------------------------------------------------------------------------------------------


FORCE: Final = "Overwrite files that `ruleop generate` did not make."


def generated_options(force: str = FORCE) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The options of the output, which the command gets as `to`. Mistakes of the project end the command. `force`: the
    help of the option `--force`; empty: the command has none."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run(*, out: str, check: bool, **flags: Any) -> int:
            to = Output(out, check=check, force=flags.pop("force", True))
            try:
                return command(to=to, **flags)
            except ProjectErrors as errors:
                return found.refusal(errors, Folder(flags["folder"]))

        if force:
            run = click.option("--force", is_flag=True, help=force)(run)
        text = "Write nothing: check whether the files of --out are current."
        run = click.option("--check", is_flag=True, help=text)(run)
        text = "Write files to this folder, instead of printing to stdout."
        return click.option("--out", default="", metavar="DIR", help=text)(run)

    return decorate


@dataclass(frozen=True, slots=True)
class Output:
    """Where the files go: to stdout, or into the folder `out`, or nowhere with `check`. Without `force`, no file is
    overwritten that `ruleop generate` did not make."""

    out: str
    check: bool
    force: bool

    @property
    def replaces(self) -> bool:
        """Whether files that are there are replaced, if they were made by `ruleop generate`."""
        return bool(self.out) and not (self.check or self.force)

    def write(
        self, files: Mapping[str, str], printed: str, *, mark: str = MARK, first: str = "", folder: str = ""
    ) -> int:
        """Prints a text, or writes all files, or compares them with what is on disk. `mark`: how a file begins that was
        made by `ruleop generate`. `first`: the file whose beginning speaks for all, where the others cannot have the
        mark. `folder`: where every other file is one of an earlier run, and is removed."""
        if self.check and not self.out:
            raise UsageError("--check compares with files: name their folder with --out")
        if not self.out:
            print_text(printed)
            return DONE
        root = Path(self.out)
        surplus = [name for name in _names_below(root, folder) if name not in files]
        existing = {name: _content(root / name) for name in (*files, *surplus)}
        stale = {name: text for name, text in files.items() if existing[name] != text.encode()}
        if not self.check:
            for name in (*(name for name in stale if existing[name] is not None), *surplus):
                if not self.force and not (existing.get(first or name) or b"").startswith(mark.encode()):
                    raise UsageError(
                        f"{(root / name).as_posix()} was not made by `ruleop generate`: nothing was written;"
                        " --force overwrites it"
                    )
            _replace({root / name: text for name, text in stale.items()}, [root / name for name in surplus])
        lines: list[Line] = []
        for name in (*files, *surplus):
            done = "removed" if name in surplus else "written"
            changed = name in stale or name in surplus
            state = Span("current") if not changed else Span("not current", Tone.BAD) if self.check else Span(done)
            lines.append((Span(f"{(root / name).as_posix()}: "), state))
        print_lines(lines)
        return NO if self.check and (stale or surplus) else DONE


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
