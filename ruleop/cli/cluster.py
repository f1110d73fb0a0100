"""`ruleop cluster`: the API server in memory alone, for any client."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from ruleop.cli.program import DONE, Command
from ruleop.cli.terminal import print_lines
from ruleop.localcluster import LocalCluster
from ruleop.report.plan_text import Span, Tone


@click.command(cls=Command)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port. Default: a free one.")
@click.option(
    "--kubeconfig",
    default="ruleop-cluster.kubeconfig",
    show_default=True,
    metavar="FILE",
    help="Where to write the kubeconfig. It is removed at the end.",
)
def command(port: int, kubeconfig: str) -> int:
    """Run an API server in memory, with the controllers of a cluster.

    Any client works with it: kubectl, Helm, client libraries. It listens on loopback only, and its address contains a
    random token. Everything is gone when it stops, at SIGINT or SIGTERM.

    Example: ruleop cluster & export KUBECONFIG=$PWD/ruleop-cluster.kubeconfig
    """
    path = Path(kubeconfig)
    if path.exists():
        raise click.BadParameter(f"{kubeconfig} exists; name a file that does not", param_hint="--kubeconfig")
    try:
        asyncio.run(_run(port, path))
    finally:
        path.unlink(missing_ok=True)
    return DONE


async def _run(port: int, path: Path) -> None:
    cluster, stopping = LocalCluster(port=port), asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopping.set)
    await cluster.serve()
    try:
        cluster.write_kubeconfig(path)
        print_lines([(Span(f"export KUBECONFIG={path.absolute()}", Tone.PLAIN),)])  # noqa: ASYNC240 - no file is read
        await stopping.wait()
    finally:
        await cluster.close()
