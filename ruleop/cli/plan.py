"""`ruleop plan`: what one reconcile of a custom resource would do."""

from __future__ import annotations

from functools import partial

import click

from ruleop.cli.passes import make_passes, pass_options
from ruleop.cli.program import DONE, NO, Command, UsageError, output_option
from ruleop.cli.project import project_options
from ruleop.cli.replay import replay_pass
from ruleop.cli.terminal import json_document, print_lines, print_text
from ruleop.offline.cluster import EPOCH
from ruleop.report.plan_text import Line, as_json, show


@click.command(cls=Command, example="kubectl get deploy,svc -o yaml | ruleop plan -f examples/app.yaml --with -")
@partial(pass_options, required=False)
@project_options
@click.option("--replay", default="", metavar="FILE", help="Plan a pass of `ruleop run --record`, instead of -f.")
@output_option("text", "json")
def command(
    folder: str,
    env_files: tuple[str, ...],
    files: tuple[str, ...],
    existing: tuple[str, ...],
    replay: str,
    output: str,
) -> int:
    """Show what one reconcile of a custom resource would do.

    Shows what would be created, patched and deleted, which children wait and for what, the status and the conditions.
    The operator runs the same code. Values of Secrets are masked. Exit status 0: the plan has no errors. 1: the plan
    has errors. 2: wrong usage, or the project has mistakes.
    """
    if bool(files) == bool(replay) or (replay and existing):
        raise UsageError("name either custom resources with -f, or a recorded pass with --replay")
    if replay:
        passes = replay_pass(folder, env_files, replay)
    else:
        passes = make_passes(folder, env_files, files, existing, seed=b"", now=EPOCH)
    if output == "json":
        plans = [as_json(planned.plan, planned.resource) for planned in passes.planned]
        print_text(json_document({"plans": plans, **passes.unplanned()}))
    else:
        lines: list[Line] = []
        for planned in passes.planned:
            lines += [(), *show(planned.plan, planned.resource, passes.kinds, place=passes.folder.place)]
        print_lines(lines[1:])
    return NO if passes.failed else DONE
