"""`ruleop plan`: what one reconcile of a custom resource would do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ruleop.authoring.report import ChangeSummary, plan_document, plan_lines, sections
from ruleop.cli.options import Folder, cluster_options, project_options
from ruleop.cli.passes import Passes, make_passes, pass_options, replay_pass
from ruleop.cli.program import DONE, NO, Command, UsageError, output_option
from ruleop.cli.terminal import print_result

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command(cls=Command, example="ruleop plan --live --all")
@click.argument("names", nargs=-1, metavar="[KIND[/NAME]]")
@partial(pass_options, required=False)
@project_options
@click.option(
    "--until-quiet",
    is_flag=True,
    help="With -f: plan pass after pass, until nothing is left to do.",
)
@click.option("--replay", default="", metavar="FILE", help="Plan a pass of `ruleop run --record`, instead of -f.")
@click.option("--live", is_flag=True, help="Read the objects from the cluster.")
@click.option(
    "--server-dry-run", is_flag=True, help="With --live: ask the API server what it would answer to each write."
)
@click.option("--all", "everything", is_flag=True, help="With --live: plan all custom resources, and summarise.")
@cluster_options
@output_option("text", "json")
def command(folder: str, env_files: tuple[str, ...], output: str, **flags: Any) -> int:
    """Show what one reconcile of a custom resource would do.

    Shows what would be created, patched and deleted, which children wait and for what, the status and the conditions.
    The operator runs the same code. Values of Secrets are masked. Writes nothing. With --until-quiet, shows all passes
    in a cluster that is otherwise empty, whose controllers make each child ready, as `ruleop test` makes them.

    With --live, the objects are read from the cluster: for KIND/NAME, for the resources of -f as they would be once
    applied, for all of a KIND, or for --all, which summarises how many would change and what. With --server-dry-run,
    each write is sent as a dry run, which stores nothing: the API server answers with its defaults, webhooks, quotas
    and immutable fields. Exit status 0: the plan has no errors. 1: the plan has errors; or a write that the server
    would refuse, or cannot be asked about. 2: wrong usage, the project has mistakes, or the cluster cannot be used.
    """
    found = _planned(folder, env_files, flags)
    return _print_summary(found, folder, output) if isinstance(found, ChangeSummary) else _print_passes(found, output)


def _planned(folder: str, env_files: tuple[str, ...], flags: Mapping[str, Any]) -> Passes | ChangeSummary:
    files, existing, replay = flags["files"], flags["existing"], flags["replay"]
    names, everything = flags["names"], flags["everything"]
    if flags["time"] and (flags["live"] or replay):
        raise UsageError("--at is for custom resources of -f: a cluster and a recorded pass have a time of their own")
    if flags["live"]:
        # Imports the client, which the offline plan does not need: it would take twice as long.
        from ruleop.cli.live_plan import plan_live  # noqa: PLC0415

        if flags["until_quiet"]:
            raise UsageError("--until-quiet is for custom resources of -f: a cluster is not written")
        if replay or existing:
            raise UsageError("--live reads the cluster: it cannot be combined with --replay or --with")
        return plan_live(folder, env_files, flags)
    if flags["server_dry_run"]:
        raise UsageError("--server-dry-run asks the API server of a cluster: add --live")
    if names or everything:
        raise UsageError("to plan custom resources of a cluster, add --live")
    if bool(files) == bool(replay) or (replay and existing):
        raise UsageError("name either custom resources with -f, or a recorded pass with --replay")
    if replay and flags["until_quiet"]:
        raise UsageError("--until-quiet is for custom resources of -f: a recorded pass is one")
    if replay:
        return replay_pass(folder, env_files, replay)
    return make_passes(
        folder, env_files, files, existing, time=flags["time"], seed=b"", dated=False, until_quiet=flags["until_quiet"]
    )


def _print_summary(summary: ChangeSummary, folder: str, output: str) -> int:
    print_result(output, summary.as_json, summary.lines(Folder(folder).place))
    return NO if summary.failed else DONE


def _print_passes(passes: Passes, output: str) -> int:
    def document() -> dict[str, Any]:
        return {"plans": [*map(plan_document, passes.planned)], **passes.unplanned()}

    folder = passes.folder
    texts = (plan_lines(each, place=folder.place, source=folder.source) for each in passes.planned)
    print_result(output, document, sections(("", text) for text in texts))
    return NO if passes.failed else DONE
