"""`ruleop check`: finds the mistakes of a project without a cluster."""

from __future__ import annotations

import contextlib
import gc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ruleop.authoring.checking import check_project, explanation, unchecked_kinds
from ruleop.authoring.checking.missing_permissions import Grants, Roles
from ruleop.authoring.report import Span, Tone, counted
from ruleop.cli import finding_formats as found
from ruleop.cli.loading import load_with_sources, read_documents
from ruleop.cli.options import Folder, is_unreadable, project_options
from ruleop.cli.program import DONE, NO, UNUSABLE, Command, UsageError, output_option
from ruleop.cli.terminal import print_lines, print_text
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.check_ids import BY_ID, CHECKS
from ruleop.language.rules.operator_choices import FILE, Choices, misspelt_variables, read_choices
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Finding, Project

_DOCUMENTS = {"sarif": found.as_sarif, "github": found.as_github}


def _explain(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    if not name or context.resilient_parsing:
        return
    check = BY_ID.get(name.upper()) or next((each for each in CHECKS if each.code == name), None)
    if check is None:
        known = [*BY_ID, *(each.code for each in CHECKS)]
        raise UsageError(f"--explain: unknown check {name!r}{did_you_mean(name, known)}; docs/checks.md lists all")
    print_text(explanation(check.id))
    context.exit()


@click.command(cls=Command, example="ruleop check -C examples/wordpress -o sarif > findings.sarif")
@project_options
@click.option(
    "--rbac",
    multiple=True,
    metavar="PATH",
    help="File or folder of the operator's Roles and ClusterRoles: do they grant what the rules need? Repeatable.",
)
@click.option("--namespaces", default="", metavar="A,B", help="With --rbac: as for `run`.")
@click.option("--name", default="", metavar="NAME", help="With --rbac: as for `run`.")
@click.option("--operator-namespace", default="", metavar="NAMESPACE", help="With --rbac: as for `run`. Default: any.")
@click.option("--leader-elect", is_flag=True, help="With --rbac: as for `run`, which needs a Lease then.")
@click.option(
    "--selector", default="", metavar="LABELS", help="With --rbac: as for `run`, whose Lease has another name."
)
@click.option("--shards", type=click.Choice(["auto"]), help="With --rbac: as for `run`, which reads all Leases then.")
@click.option("--metrics-auth", is_flag=True, help="With --rbac: as for `run`, which reviews tokens then.")
@click.option(
    "--explain",
    metavar="ID",
    is_eager=True,
    expose_value=False,
    callback=_explain,
    help="Print what a check finds, with a wrong and a right example, and exit.",
)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@output_option("text", "json", *_DOCUMENTS)
def command(
    folder: str, env_files: tuple[str, ...], rbac: tuple[str, ...], strict: bool, output: str, **flags: Any
) -> int:
    """Check a project for mistakes, without a cluster.

    Reports all mistakes at once, each with its file, line and column. Exit status 0: no mistakes (warnings are
    allowed without --strict). 1: mistakes. 2: the project is missing or cannot be read.
    """
    where = Folder(folder)
    project: Project | None = None
    unchecked: tuple[Kind, ...] = ()
    if not rbac and (unused := [name for name, value in flags.items() if value]):
        raise UsageError(f"--{unused[0].replace('_', '-')} needs --rbac")
    try:
        roles = _roles(rbac, folder, flags) if rbac else None
        with _uncollected():
            loaded = load_with_sources(where, env_files)
            findings = check_project(loaded, roles=roles) + misspelt_variables(loaded, read_choices(Path(folder)))
        if strict:
            findings = tuple(replace(each, severity="error") for each in findings)
        project, unchecked = loaded.project, unchecked_kinds(loaded)
        status = NO if found.count(findings)[0] else DONE
    except ProjectErrors as errors:
        findings, status = errors.findings, UNUSABLE if is_unreadable(errors) else NO
    if output == "text":
        print_lines(found.lines(findings, where))
        print_lines(found.notes(project) if project is not None else ())
        print_lines(found.not_checked(unchecked))
        print_lines([(_verdict(project, findings),)])
    elif output == "json":
        print_text(found.as_json(findings, where, unchecked))
    else:
        print_text(_DOCUMENTS[output](findings, where))
    return status


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which finds nothing in the trees of templates and takes a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _roles(rbac: tuple[str, ...], folder: str, flags: dict[str, Any]) -> Roles:
    """The roles of the files, for an operator with these flags; those that are not given are as ruleop.yaml has them,
    by which `ruleop generate rbac` makes roles. Raises ProjectErrors with its mistakes."""
    grants = Grants.of(" ".join(rbac), [document.data for document in read_documents(rbac, folder=folder)])
    namespaces = tuple(dict.fromkeys(name.strip() for name in flags["namespaces"].split(",") if name.strip()))
    choices = read_choices(Path(folder)) if Path(folder, FILE).exists() else Choices(leader_elect=False)
    choices = replace(
        choices,
        name=flags["name"] or choices.name,
        namespaces=namespaces or choices.namespaces,
        leader_elect=flags["leader_elect"] or choices.leader_elect,
        metrics_auth=flags["metrics_auth"] or choices.metrics_auth,
        selector=flags["selector"] or choices.selector,
        shards=choices.shards or int(flags["shards"] is not None),
    )
    return Roles(grants, choices, flags["operator_namespace"])


def _verdict(project: Project | None, findings: tuple[Finding, ...]) -> Span:
    errors, warnings = found.count(findings)
    warned = f", {counted(warnings, 'warning')}" if warnings else ""
    if project is None or errors:
        return Span(f"{counted(errors, 'error')}{warned}.", Tone.BAD)
    children = sum(len(rule.children) + len(rule.finalize) for rule in project.rules)
    parts = (
        ("rule", len(project.rules)),
        ("child", children),
        ("template", len(project.templates)),
        ("CRD", len(project.crds)),
    )
    what = ", ".join(counted(number, word) for word, number in parts).replace("childs", "children")
    return Span(f"No errors{warned} in {what}.", Tone.WAIT if warnings else Tone.GOOD)
