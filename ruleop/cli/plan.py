"""`ruleop plan`: what one reconcile of a custom resource would do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from ruleop.cli.passes import Passes, make_passes, pass_options
from ruleop.cli.program import DONE, NO, Command, UsageError, output_option
from ruleop.cli.project import project_options
from ruleop.cli.replay import replay_pass
from ruleop.cli.terminal import json_document, print_lines, print_text
from ruleop.offline.cluster import EPOCH
from ruleop.report.plan_text import Line, as_json, show

if TYPE_CHECKING:
    from ruleop.kinds import ObjectKey


@click.command(cls=Command)
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
        print_text(_document(passes))
    else:
        lines: list[Line] = []
        for planned in passes.planned:
            lines += [(), *show(planned.plan, planned.resource, passes.kinds, place=passes.folder.place)]
        print_lines(lines[1:])
    return NO if passes.refused or passes.unruled or any(planned.plan.problems for planned in passes.planned) else DONE


def _document(passes: Passes) -> str:
    document = {
        "plans": [as_json(planned.plan, planned.resource) for planned in passes.planned],
        "refused": [
            {
                **_named(key),
                "findings": [{"field": finding.location, "message": finding.message} for finding in findings],
            }
            for key, findings in passes.refused
        ],
        "unmatched": [_named(key) for key in passes.unruled],
    }
    return json_document(document)


def _named(key: ObjectKey) -> dict[str, str]:
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}
