"""`ruleop rollout status`: how far the rollouts are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.live.live_rollouts import read_rollouts
from ruleop.authoring.live.reading.open_cluster import open_cluster
from ruleop.authoring.report.rollout_table import rollout_lines, rollouts_json
from ruleop.cli.inputs.cluster_options import cluster_options
from ruleop.cli.inputs.live_cluster import read_access, run_on_cluster
from ruleop.cli.inputs.project import project_options
from ruleop.cli.outputs.terminal import json_document, print_lines, print_text
from ruleop.cli.program import DONE, NO, Command, output_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.rollout.rollout_record import Record
    from ruleop.operator.kube.cluster_flags import Access

INTERVAL: Final = 1.0  # seconds between two reads with --watch


@click.command(cls=Command, example="ruleop rollout status App --watch")
@click.argument("watch", required=False, default="", metavar="[KIND[/NAME]]")
@cluster_options
@project_options
@click.option("-w", "--watch", "follow", is_flag=True, help="Print it again when it changes, until nothing progresses.")
@output_option("text", "json")
def command(folder: str, watch: str, output: str, follow: bool, **flags: Any) -> int:
    """Show how far the rollouts are.

    Exit status 1: a rollout is stopped.
    """
    records = run_on_cluster(_show(read_access(folder, flags), watch, output, follow=follow))
    return NO if any(record.phase == "Stopped" for record in records.values()) else DONE


async def _show(access: Access, watch: str, output: str, *, follow: bool) -> Mapping[str, Record]:
    shown: Mapping[str, Record] | None = None
    async with open_cluster(access) as cluster:
        while True:
            records = await read_rollouts(cluster, watch)
            if records != shown:
                _print(records, output)
            shown = records
            if not follow or all(record.phase != "Progressing" for record in records.values()):
                return records
            await asyncio.sleep(INTERVAL)


def _print(records: Mapping[str, Record], output: str) -> None:
    if output == "json":
        print_text(json_document(rollouts_json(records)))
    else:
        print_lines(rollout_lines(records))
