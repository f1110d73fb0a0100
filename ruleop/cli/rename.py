"""`ruleop rename`: another name or namespace for an operator of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ruleop.authoring.live import Renaming, find_operator
from ruleop.authoring.report import Span, Tone
from ruleop.cli.inputs.cluster_options import connection_options, operator_options
from ruleop.cli.inputs.live_cluster import on_cluster
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.outputs.terminal import print_lines
from ruleop.cli.program import DONE, Command, UsageError
from ruleop.language.rules import ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.live import LiveCluster
    from ruleop.authoring.report import Line
    from ruleop.language.rules import Rule


@click.command(cls=Command, example="ruleop rename preview --name previews")
@click.argument("old", metavar="OLD")
@click.option(
    "--from",
    "old_namespace",
    default="",
    metavar="NAMESPACE",
    help="Namespace of the operator OLD. Default: it is searched in all namespaces.",
)
@connection_options
@operator_options
@project_options
def command(folder: str, env_files: tuple[str, ...], old: str, old_namespace: str, **flags: Any) -> int:
    """Give an operator of a cluster another name.

    The operator OLD gets the name of ruleop.yaml, while neither of the two runs: the finalizers of its custom
    resources, its inventory, owner key, revisions and rollouts become those of the other name, and its Leases are
    deleted. Without --operator-namespace, they move to where the new operator has run, or stay in their namespace.
    After a failure, repeat the command. Exit status 1: it cannot be renamed now.
    """
    rules = _rules(folder, env_files)
    flags = {**flags, "namespace": ""}
    print_lines(on_cluster(folder, flags, lambda cluster: _rename(cluster, old, old_namespace, rules)))
    return DONE


def _rules(folder: str, env_files: Iterable[str]) -> Sequence[Rule]:
    """The rules of the project, or an empty tuple without a project."""
    try:
        return load_with_sources(Folder(folder), env_files).project.rules
    except (ProjectErrors, UsageError):
        return ()


async def _rename(cluster: LiveCluster, old: str, namespace: str, rules: Sequence[Rule]) -> list[Line]:
    before, after = await find_operator(cluster.reader, old, namespace), cluster.operator
    if not after.namespace:
        after = replace(after, namespace=before.namespace)
    renamed = await Renaming(cluster, before, after, rules).run()
    return [*_lines(old, f'"{after.name}" in namespace {after.namespace}', renamed.objects, renamed.resources)]


def _lines(old: str, new: str, objects: Iterable[str], resources: int) -> Iterator[Line]:
    yield from ((Span(f"written: {each}"),) for each in objects)
    yield (Span(f"finalizers replaced: {resources}"),)
    yield (Span(f'The operator "{old}" is {new} now. Start it.', Tone.GOOD),)
