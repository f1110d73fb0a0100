"""`ruleop explain`: why a custom resource of a cluster is as it is; `ruleop history`: what changed on it, and when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.live import Explainer, Historian
from ruleop.authoring.report import explanation_lines, history_document, history_lines, view_document, view_graph
from ruleop.cli import finding_formats as found
from ruleop.cli.live_cluster import on_cluster, read_target
from ruleop.cli.loading import load_with_sources
from ruleop.cli.options import WATCHES, Folder, cluster_options, debug_option, folder_option, project_options
from ruleop.cli.program import DONE, Command, output_option
from ruleop.cli.terminal import print_diagnostics, print_result, print_text
from ruleop.language.rules import ProjectErrors
from ruleop.printable import printable_lines

if TYPE_CHECKING:
    from ruleop.language.rules import Project

WITHOUT_RULES = "not shown: which expression each child waits for, and what the next reconcile would do"


@click.command(cls=Command, example="ruleop explain App/app-sample -n default")
@click.argument("names", nargs=-1, metavar="KIND/NAME")
@cluster_options
@project_options
@click.option("--fields", "every_field", is_flag=True, help="List every field that ruleop sets, with its managers.")
@output_option("text", "json", "dot")
def command(folder: str, env_files: tuple[str, ...], names: tuple[str, ...], output: str, **flags: Any) -> int:
    """Explain why a custom resource of a cluster is as it is.

    Shows its children as a tree, what each waits for and the current values of the expression, errors, Events, who
    changed which field, and what the next reconcile would do. Reads only; values of Secrets are masked. The kind is
    named as for kubectl. The rules are those of the current folder or of -C; without any, only what the cluster says
    is shown. Exit status 0: explained, whether it is ready or not. 1: it does not exist, or cannot be read. 2: wrong
    usage, or the cluster cannot be used.
    """
    kind, name = read_target(names, "name the custom resource to explain: KIND/NAME")
    project, notes = _project(folder, env_files)
    view = on_cluster(folder, flags, lambda cluster: Explainer(cluster, project, notes).explain(kind, name))
    if output == "dot":
        print_text(printable_lines(view_graph(view)))
        return DONE
    where = Folder(folder)
    lines = explanation_lines(view, place=where.place, source=where.source, every_field=flags["every_field"])
    print_result(output, lambda: view_document(view), lines)
    return DONE


def _project(folder: str, env_files: tuple[str, ...]) -> tuple[Project | None, list[str]]:
    """The rules, if there are any that can be used, and otherwise a note."""
    if not env_files and folder == "." and not Path(WATCHES).exists():
        return None, [f"no {WATCHES} in this folder (use -C DIR for the rules); {WITHOUT_RULES}"]
    where = Folder(folder)
    try:
        return with_definitions(load_with_sources(where, env_files)).project, []
    except ProjectErrors as errors:
        print_diagnostics(found.lines(errors.findings, where))
        return None, [f"the rules of {folder} have mistakes; {WITHOUT_RULES}"]


# -- history -----------------------------------------------------------------------------------------------------------
# `ruleop history`: what changed on a custom resource of a cluster, and when.


@click.command(cls=Command, example="ruleop history App/app-sample -n default")
@click.argument("names", nargs=-1, metavar="KIND/NAME")
@cluster_options
@folder_option
@debug_option
@output_option("text", "json")
def history_command(folder: str, names: tuple[str, ...], output: str, **flags: Any) -> int:
    """Show what changed on a custom resource of a cluster, and when.

    Lists in the order of time: the revisions of the rules, edits of the custom resource, what was written to its
    children and by whom, and Events. Reads only, from what the cluster keeps. Fields are named, their values are not
    shown. The kind is named as for kubectl. Exit status 0: shown. 1: it does not exist, or cannot be read. 2: wrong
    usage, or the cluster cannot be used.
    """
    kind, name = read_target(names, "name the custom resource: KIND/NAME")
    view = on_cluster(folder, flags, lambda cluster: Historian(cluster).history(kind, name))
    print_result(output, lambda: history_document(view), history_lines(view))
    return DONE
