"""Breaking changes of generated CRDs, compared with those that are in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ruleop.authoring.generate.crd.breaking_changes import breaking_changes
from ruleop.authoring.report.spans import Span, Tone, counted
from ruleop.cli.inputs.input_files import read_documents
from ruleop.cli.outputs.terminal import print_diagnostics
from ruleop.cli.program import NO, UsageError
from ruleop.kubernetes.crd.crds import parse_crd
from ruleop.kubernetes.schema.schema_findings import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ruleop.authoring.offline.documents import Document
    from ruleop.authoring.report.spans import Line
    from ruleop.kubernetes.kinds import Object

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
