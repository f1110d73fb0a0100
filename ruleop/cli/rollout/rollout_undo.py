"""`ruleop rollout undo`."""

from __future__ import annotations

from typing import Any

import click

from ruleop.cli.inputs.cluster_options import cluster_options
from ruleop.cli.inputs.project import project_options
from ruleop.cli.program import Command
from ruleop.cli.rollout.changed_rollout import change
from ruleop.core.rollout.rollout_record import reverted


@click.command(cls=Command, example="ruleop rollout undo App")
@click.argument("watch", required=False, default="", metavar="[KIND[/NAME]]")
@cluster_options
@project_options
def command(folder: str, watch: str, **flags: Any) -> int:
    """Go back to the revision before.

    Custom resources that are not ready go back at once, the others in waves. The rules on disk are not applied again
    until they change, or until `resume`.
    """
    return change(watch, reverted, folder, flags)
