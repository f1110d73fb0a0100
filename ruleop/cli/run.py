"""`ruleop run`: the operator, against the cluster of the kubeconfig, or of the pod that it runs in."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ruleop.cli.program import DONE, UNUSABLE
from ruleop.cli.project import Folder, load, project_options
from ruleop.engine import logs
from ruleop.engine.manager import Manager
from ruleop.engine.options import Options
from ruleop.errors import RuleopError
from ruleop.rules import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.rules import Project

F = TypeVar("F", bound="Callable[..., Any]")


def _flag(name: str, **settings: Any) -> Callable[[F], F]:
    """An option that is also read from RULEOP_<NAME>."""
    variable = "RULEOP_" + name.split("/", maxsplit=1)[0].lstrip("-").upper().replace("-", "_")
    return click.option(name, envvar=variable, show_envvar=True, **settings)


@click.command()
@project_options
@_flag("--kubeconfig", default="", metavar="FILE", help="The kubeconfig. Default: $KUBECONFIG, the pod's service account, ~/.kube/config.")
@_flag("--context", default="", help="The kubeconfig's context. Default: its current one.")
@_flag("--namespaces", default="", metavar="A,B", help="Look at these namespaces only. Also WATCH_NAMESPACE. Default: all.")
@_flag("--name", default="ruleop", show_default=True, help="Of the inventory, the lease and the finalizer.")
@_flag("--operator-namespace", default="", help="Where they live. Default: the pod's, else the context's.")
@_flag("--leader-elect", is_flag=True, help="Work only while holding the Lease of this name; others stand by.")
@_flag("--metrics-bind-address", default=":8080", show_default=True, metavar="ADDRESS", help="Where /metrics is served; 0 is off.")
@_flag(
    "--health-probe-bind-address", default=":8081", show_default=True, metavar="ADDRESS", help="Where /healthz and /readyz are; 0 is off."
)
@_flag("--max-concurrent-reconciles", type=int, default=None, help="CRs of one kind at once. Default: what the rules say, else 16.")
@_flag("--reload/--no-reload", default=True, show_default=True, help="Follow changes of the project's files.")
@_flag("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True)
@_flag("--log-format", type=click.Choice(["text", "json"]), default=None, help="Default: text on a terminal, else json.")
@_flag("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@_flag("--kube-api-qps", type=float, default=None, help="At most so many requests a second. Default: no limit.")
@_flag("--graceful-shutdown-timeout", default="30s", show_default=True, help="How long running reconciles are waited for.")
def command(folder: str, env_files: tuple[str, ...], **flags: object) -> int:
    """Run the operator against a cluster."""
    logs.set_up(str(flags["log_level"]), flags["log_format"])  # type: ignore[arg-type]
    project = load(Folder(folder), env_files)
    namespaces = str(flags["namespaces"]) or os.environ.get("WATCH_NAMESPACE", "")
    options = Options(
        kubeconfig=str(flags["kubeconfig"]),
        context=str(flags["context"]),
        namespaces=tuple(name.strip() for name in namespaces.split(",") if name.strip()),
        name=str(flags["name"]),
        operator_namespace=str(flags["operator_namespace"]),
        metrics_address=str(flags["metrics_bind_address"]),
        health_address=str(flags["health_probe_bind_address"]),
        leader_elect=bool(flags["leader_elect"]),
        max_concurrent=flags["max_concurrent_reconciles"],  # type: ignore[arg-type]
        reload=bool(flags["reload"]),
        dry_run=bool(flags["dry_run"]),
        qps=flags["kube_api_qps"],  # type: ignore[arg-type]
        grace=_seconds(str(flags["graceful_shutdown_timeout"])),
        environ=dict(os.environ),
    )
    return asyncio.run(_run(project, Path(folder), options))


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--graceful-shutdown-timeout") from None


async def _run(project: Project, root: Path, options: Options) -> int:
    manager = Manager(project, root, options)
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, manager.stopping.set)
    try:
        await manager.run()
    except RuleopError as error:
        print(f"ruleop: {error}", file=sys.stderr)  # noqa: T201 - why there is no operator, for whoever started it
        return UNUSABLE
    return DONE
