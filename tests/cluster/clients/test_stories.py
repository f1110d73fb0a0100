"""kubectl and Helm say the same of both servers, command by command (stories/*.txt)."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.cluster.clients.sides import STORIES, Sides, Step, commands_of

pytestmark = pytest.mark.real_server(
    "kubectl and Helm are built from Go modules, and both servers' answers are compared"
)


@pytest.mark.timeout(900)  # what differs is repeated for a while, command by command
@pytest.mark.parametrize("story", sorted(STORIES.glob("*.txt")), ids=lambda story: story.stem)
def test_kubectl_and_helm_print_the_same_for_both_servers(sides: Sides, story: Path, subtests: pytest.Subtests) -> None:
    for step in sides.tell(commands_of(story), story.stem.replace("_", "-")):
        with subtests.test(step.command):
            assert step.is_equal, difference(step)


def difference(step: Step) -> str:
    real, local = (output.splitlines() for output in step.outputs)
    return "\n".join([step.command, *difflib.unified_diff(real, local, "the real server", "in memory", lineterm="")])
