"""`ruleop rollout resume`."""

from __future__ import annotations

from typing import Any

import click

from ruleop.cli.inputs.cluster_options import cluster_options
from ruleop.cli.inputs.project import project_options
from ruleop.cli.program import Command
from ruleop.cli.rollout.changed_rollout import change
from ruleop.core.rollout.rollout_record import resumed


@click.command(cls=Command, example="ruleop rollout resume App")
@click.argument("watch", required=False, default="", metavar="[KIND[/NAME]]")
@cluster_options
@project_options
def command(folder: str, watch: str, **flags: Any) -> int:
    """Continue a rollout that is paused or stopped.

    After a stop, the failures so far no longer count, and as many again may fail. After `undo`, the rules on disk are
    rolled out again.
    """
    return change(watch, resumed, folder, flags)
