"""`ruleop generate crd`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ruleop.checking.definitions import whole_definitions
from ruleop.cli import findings as found
from ruleop.cli.documents import read_documents
from ruleop.cli.generated import generated_options, print_or_write
from ruleop.cli.program import DONE, NO, UNUSABLE, Command, UsageError
from ruleop.cli.project import Folder, is_unreadable, load_with_sources, project_options
from ruleop.cli.terminal import print_diagnostics, print_lines
from ruleop.generate.breaking_changes import breaking_changes
from ruleop.generate.crds import MARK, crd_files, yaml_stream
from ruleop.report.plan_text import Span, Tone
from ruleop.rules import Findings, ProjectErrors
from ruleop.schema.crds import parse_crd
from ruleop.schema.schema_findings import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kinds import Object
    from ruleop.offline.documents import Document
    from ruleop.report.plan_text import Line
    from ruleop.rules.language.definitions import Definition


@click.command(cls=Command, example="ruleop generate crd --out crds/")
@project_options
@generated_options
@click.option("--force", is_flag=True, help="Overwrite files that `ruleop generate` did not make.")
@click.option(
    "--against",
    default="",
    metavar="FILE",
    help="File or folder of the CRDs in use: name each change that breaks what works with them, and write nothing.",
)
def command(folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool, against: str) -> int:
    """Print the CustomResourceDefinitions of the watches that have `schema`.

    The fields of the status are inferred from the rules. --out writes a file for each kind. Exit status 0: done. 1: the
    project has mistakes, --check found a file that is missing or not current, or --against found a breaking change. 2:
    wrong usage, or a file cannot be read or written.
    """
    if against and (out or check):
        raise UsageError("--against writes nothing: use it without --out and --check")
    where = Folder(folder)
    try:
        loaded = load_with_sources(where, env_files)
    except ProjectErrors as errors:
        print_diagnostics(found.lines(errors.findings, where))
        return UNUSABLE if is_unreadable(errors) else NO
    findings = Findings(loaded.files)
    definitions = whole_definitions(loaded, findings)
    if findings.failed:
        print_diagnostics(found.lines(findings.sorted(), where))
        return NO
    if not definitions:
        raise UsageError("no watch has `schema`: there is nothing to generate")
    if against:
        return _compare(definitions, read_documents([against], folder=folder))
    files = crd_files(definitions)
    return print_or_write(files, yaml_stream(files), out=out, check=check, mark="" if force else MARK)


def _compare(definitions: Iterable[Definition], documents: Iterable[Document]) -> int:
    """Prints what each definition breaks for the definitions in use."""
    in_use: dict[tuple[str, str], Object] = {}
    for document in documents:
        if document.data.get("kind") != "CustomResourceDefinition":
            continue
        try:
            crd = parse_crd(document.data)
        except SchemaError as error:
            raise UsageError(f"{document.site(error.finding.path)}: {error.finding}") from None
        in_use[crd.group, crd.kind] = document.data
    lines: list[Line] = []
    status = DONE
    for each in definitions:
        old = in_use.get((each.crd.group, each.crd.kind))
        changes = breaking_changes(old, each.document) if old is not None else []
        status = NO if changes else status
        verdict = (
            "new"
            if old is None
            else "no breaking change"
            if not changes
            else found.counted(len(changes), "breaking change")
        )
        lines.append((Span(f"{each.crd.name}: ", Tone.TITLE), Span(verdict, Tone.BAD if changes else Tone.PLAIN)))
        lines += [(Span("  "), Span(str(change))) for change in changes]
    print_lines(lines)
    return status
