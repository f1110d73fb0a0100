"""`ruleop recover`: signs the owner annotations of children again whose proofs are by a key that was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ruleop.authoring.live import find_unproven, sign
from ruleop.authoring.report import Span, Tone, counted
from ruleop.cli.inputs.cluster_options import cluster_options
from ruleop.cli.inputs.live_cluster import on_cluster
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, is_unreadable, project_options
from ruleop.cli.outputs import finding_formats as found
from ruleop.cli.outputs.terminal import print_diagnostics, print_lines
from ruleop.cli.program import DONE, NO, UNUSABLE, Command
from ruleop.language.rules import ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.live import LiveCluster, Unproven
    from ruleop.authoring.report import Line
    from ruleop.language.rules import Project


@click.command(cls=Command, example="ruleop recover --operator-namespace blog-system")
@cluster_options
@project_options
@click.option("--yes", is_flag=True, help="Sign the annotations and field managers of the listed objects.")
def command(folder: str, env_files: tuple[str, ...], yes: bool, **flags: Any) -> int:
    """Recover children after the operator's key was lost.

    Lists the objects that name a custom resource as their owner without a valid proof, or as the manager of some of
    their fields, and with --yes signs them with the operator's present key, so that the operator owns these again. Exit
    status 0: none is left. 1: some are. 2: wrong usage, or the cluster or the project cannot be used.
    """
    where = Folder(folder)
    try:
        project = load_with_sources(where, env_files).project
    except ProjectErrors as errors:
        print_diagnostics(found.lines(errors.findings, where))
        return UNUSABLE if is_unreadable(errors) else NO
    return on_cluster(folder, flags, lambda cluster: _recover(cluster, project, yes=yes))


async def _recover(cluster: LiveCluster, project: Project, *, yes: bool) -> int:
    unproven = await find_unproven(cluster, project)
    if not unproven:
        print_lines([(Span("No object has an owner annotation or a field manager without a valid proof.", Tone.GOOD),)])
        return DONE
    if not yes:
        print_lines(_listed(unproven))
        return NO
    async for each in sign(cluster, unproven):
        print_lines([(Span(f"signed {_title(each)}"),)])
    return DONE


def _listed(unproven: list[Unproven]) -> Iterator[Line]:
    yield from ((Span(_title(each)),) for each in unproven)
    yield (Span(""),)
    what = counted(len(unproven), "object")
    yield (
        Span(f"{what} would be believed. ", Tone.WAIT),
        Span(
            "Remove the annotation ruleop.dev/owner from any that ruleop did not make, and from metadata.managedFields "
            "the managers ruleop:... of fields that it did not set; then run this with --yes."
            if any(each.managers for each in unproven)
            else "Remove the annotation ruleop.dev/owner from any that ruleop did not make, then run this with --yes."
        ),
    )


def _title(each: Unproven) -> str:
    return f"fields of {each.key} by {each.owner}" if each.managers else f"{each.key} of {each.owner}"
