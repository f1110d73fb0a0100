"""`ruleop rollout`: the waves in which an edit of the rules reaches the custom resources of a cluster."""

from __future__ import annotations

from typing import Final

import click

from ruleop.cli.program import CommandGroup

COMMANDS: Final = {
    "pause": "Release no further custom resources until `resume`.",
    "resume": "Continue a rollout that is paused or stopped.",
    "status": "Show how far the rollouts are.",
    "undo": "Go back to the revision before.",
}


@click.group(
    cls=CommandGroup,
    lines=COMMANDS,
    prefix="rollout.rollout_",
    example="ruleop rollout status --watch",
    no_args_is_help=True,
)
def command() -> None:
    """Show and steer the waves of an edit of the rules in a cluster.

    For watches with `rollout`. The commands change the record that the operator follows; they work without Git, without
    the rules, and while the operator is down.
    """
