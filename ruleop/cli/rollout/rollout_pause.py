"""`ruleop rollout pause`."""

from __future__ import annotations

from typing import Any

import click

from ruleop.cli.inputs.cluster_options import cluster_options
from ruleop.cli.inputs.project import project_options
from ruleop.cli.program import Command
from ruleop.cli.rollout.changed_rollout import change
from ruleop.core.rollout.rollout_record import paused


@click.command(cls=Command, example="ruleop rollout pause App")
@click.argument("watch", required=False, default="", metavar="[KIND[/NAME]]")
@cluster_options
@project_options
def command(folder: str, watch: str, **flags: Any) -> int:
    """Release no further custom resources until `resume`.

    Those that were released already continue.
    """
    return change(watch, paused, folder, flags)
