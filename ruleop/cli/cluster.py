"""`ruleop cluster`: the API server in memory alone, for any client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ruleop.authoring.report import Span, Tone
from ruleop.cli.options import new_file, port_option
from ruleop.cli.program import DONE, Command, UsageError
from ruleop.cli.run import collect_garbage_seldom, on_end_signal
from ruleop.cli.terminal import print_lines
from ruleop.errors import RuleopError
from ruleop.files import read_named
from ruleop.language.templates.resource_reader import read_resources
from ruleop.localcluster import Fault, LocalCluster


@click.command(cls=Command, example="ruleop cluster & export KUBECONFIG=$PWD/ruleop-cluster.kubeconfig")
@port_option
@click.option(
    "--kubeconfig",
    default="ruleop-cluster.kubeconfig",
    show_default=True,
    metavar="FILE",
    callback=new_file,
    help="Where to write the kubeconfig. It is removed at the end.",
)
@click.option("--state", default="", metavar="FILE", help="Keep the contents in this file over restarts.")
@click.option("--faults", "faults_file", default="", metavar="FILE", help="Faults that happen to requests and watches.")
def command(port: int, kubeconfig: str, state: str, faults_file: str) -> int:
    """Run an API server in memory, for any client.

    It has the controllers of a cluster, and any client works with it: kubectl, Helm, client libraries. It listens on
    loopback only, and its address contains a random token. Everything is gone when it stops, at SIGINT or SIGTERM.
    """
    path = Path(kubeconfig)
    try:
        cluster = LocalCluster(port=port, state=Path(state) if state else None)
        if faults_file:
            cluster.faults.add(*_faults(Path(faults_file)))
        collect_garbage_seldom()
        asyncio.run(_run(cluster, path))
    except RuleopError as error:
        raise UsageError(str(error)) from None
    finally:
        path.unlink(missing_ok=True)
    return DONE


def _faults(path: Path) -> list[Fault]:
    try:
        documents, mistakes = read_resources(read_named(path).decode("utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if mistakes:
        raise UsageError(f"{mistakes[0].site} cannot be read: {mistakes[0].message}")
    found = [each.data() for each in documents]
    if len(found) != 1 or not isinstance(found[0], list):
        raise UsageError(f"{path} must be a list of faults")
    return [_fault(path, number, each) for number, each in enumerate(found[0], start=1)]


def _fault(path: Path, number: int, document: object) -> Fault:
    try:
        return Fault.parse(document)
    except RuleopError as error:
        raise UsageError(f"{path}: fault {number}: {error}") from None


async def _run(cluster: LocalCluster, path: Path) -> None:
    stopping = asyncio.Event()
    with on_end_signal(stopping.set):
        await cluster.serve()
        try:
            cluster.write_kubeconfig(path)
            print_lines([(Span(f"export KUBECONFIG={path.absolute()}", Tone.PLAIN),)])  # noqa: ASYNC240 - no file is read
            await stopping.wait()
        finally:
            await cluster.close()
