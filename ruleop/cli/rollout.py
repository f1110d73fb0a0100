"""`ruleop rollout`: the waves in which an edit of the rules reaches the custom resources of a cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.live import change_rollout, missing_processes, read_revisions, read_rollouts
from ruleop.authoring.report import RolloutView, as_document, revision_lines, rollout_lines, rollout_views
from ruleop.cli.inputs.cluster_options import cluster_options
from ruleop.cli.inputs.live_cluster import on_cluster
from ruleop.cli.inputs.project import project_options
from ruleop.cli.outputs.terminal import print_lines, print_text
from ruleop.cli.program import DONE, NO, Command, CommandGroup, output_option
from ruleop.planning.rollout import paused, resumed, reverted
from ruleop.printable import json_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ruleop.authoring.live import LiveCluster
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
def command() -> None:
    """Show and steer the waves of an edit of the rules in a cluster.

    For watches with `rollout`. The commands change the record that the operator follows; they work without Git, without
    the rules, and while the operator is down.
    """


def _add_change(name: str, how: Callable[[RolloutRecord], RolloutRecord], *details: str) -> None:
    """Adds a command that changes the record of one rollout, and prints it."""
    text = f"{COMMANDS[name]}\n\n{' '.join(details)}"

    @command.command(name, cls=Command, example=f"ruleop rollout {name} App", help=text)
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


@command.command("undo", cls=Command, example="ruleop rollout undo App --to 91d7c02b77aa")
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
    print_lines(rollout_lines([RolloutView.of(changed, record)]))
    return DONE


@command.command("history", cls=Command, example="ruleop rollout history")
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
    if output == "json":
        print_text(json_document(as_document(revisions)))
    else:
        print_lines(revision_lines(revisions))
    return DONE


@command.command("status", cls=Command, example="ruleop rollout status App --watch")
@_watch_argument
@cluster_options
@project_options
@click.option("-w", "--watch", "follow", is_flag=True, help="Print it again when it changes, until nothing progresses.")
@output_option("text", "json")
def _status(folder: str, watch: str, output: str, follow: bool, **flags: Any) -> int:
    """Show how far the rollouts are.

    Exit status 1: a rollout is stopped.
    """
    views = on_cluster(folder, flags, lambda cluster: _show(cluster, watch, output, follow=follow))
    return NO if any(each.phase == "Stopped" for each in views) else DONE


async def _show(cluster: LiveCluster, watch: str, output: str, *, follow: bool) -> Sequence[RolloutView]:
    shown: Sequence[RolloutView] | None = None
    while True:
        records = await read_rollouts(cluster, watch)
        progresses = any(record.phase == "Progressing" for record in records.values())
        missing = await missing_processes(cluster.reader, cluster.operator) if progresses else []
        views = rollout_views(records, missing)
        if views != shown and output == "json":
            print_text(json_document(as_document(views)))
        elif views != shown:
            print_lines(rollout_lines(views))
        shown = views
        if not follow or not progresses:
            return views
        await asyncio.sleep(INTERVAL)
