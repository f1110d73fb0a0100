"""The commands that change what a cluster keeps of an operator: `ruleop rollout` steers the waves in which an edit of
the rules reaches the custom resources, `ruleop recover` signs the owner annotations of children again whose proofs are
by a key that was lost, and `ruleop rename` gives the operator another name or namespace."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.live import (
    Processes,
    Renaming,
    change_rollout,
    find_operator,
    find_unproven,
    read_revisions,
    read_rollouts,
    revision_lines,
    rollout_documents,
    rollout_lines,
    sign,
)
from ruleop.authoring.report import Span, Tone, counted
from ruleop.cli import finding_formats as found
from ruleop.cli.live_cluster import on_cluster
from ruleop.cli.loading import load_with_sources
from ruleop.cli.options import (
    Folder,
    cluster_options,
    connection_options,
    operator_options,
    project_options,
)
from ruleop.cli.program import DONE, NO, Command, CommandGroup, UsageError, output_option
from ruleop.cli.terminal import print_lines, print_result
from ruleop.language.rules import ProjectErrors
from ruleop.planning.rollout import paused, resumed, reverted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.live import LiveCluster, Unproven
    from ruleop.authoring.report import Line
    from ruleop.language.rules import Project, Rule
    from ruleop.planning.rollout import RolloutRecord

INTERVAL: Final = 1.0  # seconds between two reads with --watch
COMMANDS: Final = {
    "history": "List the revisions of the rules, and how many custom resources have each.",
    "pause": "Release no further custom resources until `resume`.",
    "resume": "Continue a rollout that is paused or stopped.",
    "status": "Show how far the rollouts are.",
    "undo": "Go back to the revision before, or to an earlier one.",
}
_watch_argument = click.argument("watch", required=False, default="", metavar="[KIND[/NAME]]")


@click.group(cls=CommandGroup, lines=COMMANDS, example="ruleop rollout status --watch", no_args_is_help=True)
def rollout_command() -> None:
    """Show and steer the waves of an edit of the rules in a cluster.

    For watches with `rollout`. The commands change the record that the operator follows; they work without Git, without
    the rules, and while the operator is down.
    """


def _add_change(name: str, how: Callable[[RolloutRecord], RolloutRecord], *details: str) -> None:
    """Adds a command that changes the record of one rollout, and prints it."""
    text = f"{COMMANDS[name]}\n\n{' '.join(details)}"

    @rollout_command.command(name, cls=Command, example=f"ruleop rollout {name} App", help=text)
    @_watch_argument
    @cluster_options
    @project_options
    def change(folder: str, watch: str, **flags: Any) -> int:
        return _change(folder, watch, flags, how)


_add_change("pause", paused, "Those that were released already continue.")
_add_change(
    "resume",
    resumed,
    "After a stop, the failures so far no longer count, and as many again may fail.",
    "After `undo`, the rules on disk are rolled out again.",
)


@rollout_command.command("undo", cls=Command, example="ruleop rollout undo App --to 91d7c02b77aa")
@_watch_argument
@cluster_options
@project_options
@click.option("--to", default="", metavar="REVISION", help="Revision of `rollout history`, or how its number begins.")
def _undo(folder: str, watch: str, to: str, **flags: Any) -> int:
    """Go back to the revision before, or to an earlier one.

    Custom resources that are not ready go back at once, the others in waves. The rules on disk are not applied again
    until they change, or until `resume`.
    """
    return _change(folder, watch, flags, reverted, to)


def _change(
    folder: str, watch: str, flags: Mapping[str, Any], how: Callable[[RolloutRecord], RolloutRecord], to: str = ""
) -> int:
    changed, record = on_cluster(folder, flags, lambda cluster: change_rollout(cluster, watch, how, to=to))
    print_lines(rollout_lines({changed: record}))
    return DONE


@rollout_command.command("history", cls=Command, example="ruleop rollout history")
@_watch_argument
@cluster_options
@project_options
@output_option("text", "json")
def _history(folder: str, watch: str, output: str, **flags: Any) -> int:
    """List the revisions of the rules, and how many custom resources have each.

    The newest first, with the files that were edited for it. Of a watch without `rollout`, all custom resources have
    the newest one. A revision can be rolled out again with `undo --to` while its files are kept.
    """
    revisions = on_cluster(folder, flags, lambda cluster: read_revisions(cluster, watch))
    print_result(output, lambda: revisions, revision_lines(revisions))
    return DONE


@rollout_command.command("status", cls=Command, example="ruleop rollout status App --watch")
@_watch_argument
@cluster_options
@project_options
@click.option("-w", "--watch", "follow", is_flag=True, help="Print it again when it changes, until nothing progresses.")
@output_option("text", "json")
def _status(folder: str, watch: str, output: str, follow: bool, **flags: Any) -> int:
    """Show how far the rollouts are.

    Exit status 1: a rollout is stopped.
    """
    records = on_cluster(folder, flags, lambda cluster: _show(cluster, watch, output, follow=follow))
    return NO if any(each.phase == "Stopped" for each in records) else DONE


async def _show(cluster: LiveCluster, watch: str, output: str, *, follow: bool) -> Iterable[RolloutRecord]:
    shown: Sequence[object] | None = None
    while True:
        records = await read_rollouts(cluster, watch)
        progresses = any(record.phase == "Progressing" for record in records.values())
        missing = (await Processes.of(cluster.reader, cluster.operator)).missing() if progresses else []
        documents = rollout_documents(records, missing)
        if documents != shown:
            print_result(output, partial(rollout_documents, records, missing), rollout_lines(records, missing))
        shown = documents
        if not follow or not progresses:
            return records.values()
        await asyncio.sleep(INTERVAL)


# -- recover -----------------------------------------------------------------------------------------------------------
# `ruleop recover`: signs the owner annotations of children again whose proofs are by a key that was lost.


@click.command(cls=Command, example="ruleop recover --operator-namespace blog-system")
@cluster_options
@project_options
@click.option("--yes", is_flag=True, help="Sign the annotations and field managers of the listed objects.")
def recover_command(folder: str, env_files: tuple[str, ...], yes: bool, **flags: Any) -> int:
    """Recover children after the operator's key was lost.

    Lists the objects that name a custom resource as their owner without a valid proof, or as the manager of some of
    their fields, and with --yes signs them with the operator's present key, so that the operator owns these again. Exit
    status 0: none is left. 1: some are. 2: wrong usage, or the cluster or the project cannot be used.
    """
    where = Folder(folder)
    try:
        project = load_with_sources(where, env_files).project
    except ProjectErrors as errors:
        return found.refusal(errors, where)
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


# -- rename ------------------------------------------------------------------------------------------------------------


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
def rename_command(folder: str, env_files: tuple[str, ...], old: str, old_namespace: str, **flags: Any) -> int:
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
    objects, resources = await Renaming(cluster, before, after, rules).run()
    return [
        *((Span(f"written: {each}"),) for each in objects),
        (Span(f"finalizers replaced: {resources}"),),
        (Span(f'The operator "{old}" is "{after.name}" in namespace {after.namespace} now. Start it.', Tone.GOOD),),
    ]
