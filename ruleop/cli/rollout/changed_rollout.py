"""Changes the record of one rollout, and prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.authoring.live.live_rollouts import change_rollout
from ruleop.authoring.live.reading.open_cluster import open_cluster
from ruleop.authoring.report.rollout_table import rollout_lines
from ruleop.cli.inputs.live_cluster import read_access, run_on_cluster
from ruleop.cli.outputs.terminal import print_lines
from ruleop.cli.program import DONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.core.rollout.rollout_record import Record
    from ruleop.operator.kube.cluster_flags import Access


def change(watch: str, how: Callable[[Record], Record], folder: str, flags: Mapping[str, Any]) -> int:
    name, record = run_on_cluster(_change(read_access(folder, flags), watch, how))
    print_lines(rollout_lines({name: record}))
    return DONE


async def _change(access: Access, watch: str, how: Callable[[Record], Record]) -> tuple[str, Record]:
    async with open_cluster(access) as cluster:
        return await change_rollout(cluster, watch, how)
