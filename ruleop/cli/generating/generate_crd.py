"""`ruleop generate crd`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ruleop.authoring.checking.inferred_definitions import sound_definitions
from ruleop.authoring.generate import MARK, breaking_changes, crd_files, installed_crds, yaml_stream
from ruleop.authoring.report import Span, Tone, counted
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.cluster_options import connection_options
from ruleop.cli.inputs.input_files import read_documents
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.outputs.terminal import print_diagnostics, print_lines
from ruleop.cli.program import DONE, NO, Command, UsageError
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.schema import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ruleop.authoring.offline import Document
    from ruleop.authoring.report import Line
    from ruleop.kubernetes.kinds import Object


# -- crd changes -------------------------------------------------------------------------------------------------------
#
# Breaking changes of generated CRDs, compared with those that are in use.


F = TypeVar("F", bound=Callable[..., Any])


def force_crds_option(command: F) -> F:
    """Of commands that write CRDs into what is installed."""
    text = "Overwrite files that `ruleop generate` did not make, and CRDs by those with breaking changes."
    return click.option("--force", is_flag=True, help=text)(command)


def compared(crds: Iterable[Object], in_use: Iterable[Object]) -> tuple[list[Line], bool]:
    """The breaking changes of each CRD against the one in use, as lines, and whether there are any."""
    known = {(each["spec"]["group"], each["spec"]["names"]["kind"]): each for each in in_use}
    lines: list[Line] = []
    is_breaking = False
    for crd in crds:
        spec = crd["spec"]
        old = known.get((spec["group"], spec["names"]["kind"]))
        changes = breaking_changes(old, crd) if old is not None else []
        is_breaking |= bool(changes)
        breaking = counted(len(changes), "breaking change") if changes else "no breaking change"
        verdict = Span("new" if old is None else breaking, Tone.BAD if changes else Tone.PLAIN)
        lines.append((Span(f"{crd['metadata']['name']}: ", Tone.TITLE), verdict))
        lines += [(Span("  "), Span(str(change))) for change in changes]
    return lines, is_breaking


def refuse_breaking_changes(crds: Sequence[Object], written: Iterable[Path]) -> None:
    """Ends the command if the files that it wrote earlier have CRDs for which these are breaking changes."""
    names = [str(each) for each in written if each.is_file()]
    lines, is_breaking = compared(crds, written_crds(read_documents(names, folder=".")) if names else ())
    if is_breaking:
        refusal = "nothing was written: clients and custom resources may depend on it; --force writes it"
        print_diagnostics([*lines, (Span(refusal, Tone.BAD),)])
        raise click.exceptions.Exit(NO)


def written_crds(documents: Iterable[Document]) -> list[Object]:
    """The CRDs among the documents of files."""
    found: list[Object] = []
    for document in documents:
        if document.data.get("kind") != "CustomResourceDefinition":
            continue
        try:
            parse_crd(document.data)
        except SchemaError as error:
            raise UsageError(f"{document.site(error.finding.path)}: {error.finding}") from None
        found.append(document.data)
    return found


# -- generate crd ------------------------------------------------------------------------------------------------------


@click.command(cls=Command, example="ruleop generate crd --out crds/")
@project_options
@generated_options
@force_option
@click.option(
    "--against",
    default="",
    metavar="FILE",
    help="Compare all CRDs of the project with those of a file or folder: name each change that breaks what works "
    "with them, and write nothing.",
)
@click.option("--live", is_flag=True, help="Like --against, with the CRDs of the cluster.")
@connection_options
def generate_crd(folder: str, env_files: tuple[str, ...], **flags: Any) -> int:
    """Print the CustomResourceDefinitions of the watches that have `schema`.

    The fields of the status are inferred from the rules. --out writes a file for each kind. Exit status 0: done. 1: the
    project has mistakes, --check found a file that is missing or not current, or --against or --live found a breaking
    change. 2: wrong usage, a file cannot be read or written, or the cluster cannot be used.
    """
    against, live, out, check = flags["against"], flags["live"], flags["out"], flags["check"]
    if (against or live) and (out or check):
        raise UsageError("--against and --live write nothing: use them without --out and --check")
    if against and live:
        raise UsageError("--against compares with files and --live with the cluster: use one of them")
    with reporting(Folder(folder)):
        loaded = load_with_sources(Folder(folder), env_files)
        if against or live:
            crds = installed_crds(loaded)
            in_use = _of_cluster(crds, flags) if live else written_crds(read_documents([against], folder=folder))
            lines, is_breaking = compared(crds, in_use)
            print_lines(lines)
            return NO if is_breaking else DONE
        definitions = sound_definitions(loaded)
    if not definitions:
        raise UsageError("no watch has `schema`: there is nothing to generate")
    files = crd_files(definitions)
    return print_or_write(files, yaml_stream(files), out=out, check=check, made=Made("" if flags["force"] else MARK))


def _of_cluster(crds: list[Object], flags: Mapping[str, Any]) -> list[Object]:
    # Imports the client, which only --live needs.
    from ruleop.authoring.live import definitions_in_use  # noqa: PLC0415
    from ruleop.cli.inputs.live_cluster import run_reading  # noqa: PLC0415
    from ruleop.operator.wire.client.server_errors import ApiError  # noqa: PLC0415

    try:
        return run_reading(definitions_in_use(crds, flags["kubeconfig"], flags["context"]))
    except ApiError as error:
        raise UsageError(f"the CRDs of the cluster cannot be read: {error}") from None
