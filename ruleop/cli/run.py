"""`ruleop run`: the operator, against the cluster of the kubeconfig, or of the pod that it runs in."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ruleop.cli.program import DONE, NO, UNUSABLE, Command
from ruleop.cli.project import Folder, is_unreadable, load, project_options, variables
from ruleop.engine.manager.manager import Manager
from ruleop.engine.manager.options import Options
from ruleop.engine.telemetry import logging as logs
from ruleop.errors import RuleopError
from ruleop.kube.leader.lease import Timing
from ruleop.names import is_label
from ruleop.rules import ProjectErrors, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.rules import Project

F = TypeVar("F", bound="Callable[..., Any]")


def _flag(name: str, **settings: Any) -> Callable[[F], F]:
    """An option that is also read from RULEOP_<NAME>."""
    variable = "RULEOP_" + name.split("/", maxsplit=1)[0].lstrip("-").upper().replace("-", "_")
    return click.option(name, envvar=variable, show_envvar=True, **settings)


@click.command(cls=Command)
@project_options
@_flag(
    "--kubeconfig",
    default="",
    metavar="FILE",
    help="Path of the kubeconfig. Default: $KUBECONFIG, the pod's service account, ~/.kube/config.",
)
@_flag("--context", default="", help="Context of the kubeconfig. Default: the current one.")
@_flag("--namespaces", default="", metavar="A,B", help="Namespaces to watch. Also WATCH_NAMESPACE. Default: all.")
@_flag("--name", default="ruleop", show_default=True, help="Name used for the inventory ConfigMap, the Lease and the finalizer.")
@_flag(
    "--operator-namespace", default="", help="Namespace of the inventory ConfigMap and the Lease. Default: the pod's, else the context's."
)
@_flag("--leader-elect", is_flag=True, help="Elect a leader by a Lease; other processes stand by.")
@_flag("--leader-elect-lease-duration", default="15s", show_default=True, help="How long standbys wait after the leader's last renewal.")
@_flag("--leader-elect-renew-deadline", default="10s", show_default=True, help="How long the leader tries to renew before it exits.")
@_flag("--leader-elect-retry-period", default="2s", show_default=True, help="Pause between two attempts to acquire or renew the Lease.")
@_flag("--metrics-bind-address", default=":8080", show_default=True, metavar="ADDRESS", help="Address of /metrics; 0 turns it off.")
@_flag(
    "--health-probe-bind-address",
    default=":8081",
    show_default=True,
    metavar="ADDRESS",
    help="Address of /healthz and /readyz; 0 turns them off.",
)
@_flag(
    "--max-concurrent-reconciles",
    type=click.IntRange(min=1),
    default=None,
    help="Concurrent reconciles of each kind. Default: as the rules say, else 16.",
)
@_flag("--reload/--no-reload", default=True, show_default=True, help="Reload the rules when the project's files change.")
@_flag("--prune-after-reload", default="30s", hidden=True)  # for tests, which cannot wait so long
@_flag("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True)
@_flag("--log-format", type=click.Choice(["text", "json"]), default=None, help="Format of the log. Default: text on a terminal, else json.")
@_flag("--record", default="", metavar="DIR", help="Record each plan as a file in DIR, without Secrets, for `ruleop plan --replay`.")
@_flag("--dry-run", is_flag=True, help="Log the writes that would be made, and write nothing.")
@_flag(
    "--kube-api-qps", type=click.FloatRange(min=0), default=None, help="Maximum requests per second to the API server. Default: no limit."
)
@_flag("--graceful-shutdown-timeout", default="30s", show_default=True, help="How long to wait for running reconciles when stopping.")
def command(folder: str, env_files: tuple[str, ...], **flags: object) -> int:
    """Run the operator against a cluster."""
    logs.set_up(str(flags["log_level"]), flags["log_format"])  # type: ignore[arg-type]
    try:
        project = load(Folder(folder), env_files)
    except ProjectErrors as errors:
        click.echo(str(errors), err=True)
        return UNUSABLE if is_unreadable(errors) else NO
    options = Options(
        kubeconfig=str(flags["kubeconfig"]),
        context=str(flags["context"]),
        namespaces=_namespaces(str(flags["namespaces"])),
        name=_name(str(flags["name"])),
        operator_namespace=_namespace(str(flags["operator_namespace"]), "--operator-namespace") if flags["operator_namespace"] else "",
        metrics_address=str(flags["metrics_bind_address"]),
        health_address=str(flags["health_probe_bind_address"]),
        leader_elect=bool(flags["leader_elect"]),
        lease=_timing(flags),
        max_concurrent=flags["max_concurrent_reconciles"],  # type: ignore[arg-type]
        reload=bool(flags["reload"]),
        prune_after_reload=_seconds(flags, "--prune-after-reload"),
        dry_run=bool(flags["dry_run"]),
        qps=flags["kube_api_qps"],  # type: ignore[arg-type]
        grace=_seconds(flags, "--graceful-shutdown-timeout"),
        record=Path(str(flags["record"])) if flags["record"] else None,
        environ=dict(os.environ),
        variables=variables(env_files),
    )
    return asyncio.run(_run(project, Path(folder), options))


def _name(text: str) -> str:
    if not is_label(text, most=40):  # the finalizer has room for 63
        raise click.BadParameter(f'"{text}" cannot name objects: up to 40 lowercase letters, digits and "-"', param_hint="--name")
    return text


def _namespaces(text: str) -> tuple[str, ...]:
    names, origin = (text, "--namespaces") if text else (os.environ.get("WATCH_NAMESPACE", ""), "WATCH_NAMESPACE")
    return tuple(dict.fromkeys(_namespace(name.strip(), origin) for name in names.split(",") if name.strip()))


def _namespace(name: str, origin: str) -> str:
    if not is_label(name):
        message = f'"{name}" is not the name of a namespace: up to 63 lowercase letters, digits and "-"'
        raise click.BadParameter(message, param_hint=origin)
    return name


def _seconds(flags: Mapping[str, object], flag: str) -> float:
    try:
        return parse_duration(str(flags[flag.removeprefix("--").replace("-", "_")]))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=flag) from None


def _timing(flags: Mapping[str, object]) -> Timing:
    duration, deadline, period = (
        _seconds(flags, f"--leader-elect-{each}") for each in ("lease-duration", "renew-deadline", "retry-period")
    )
    if duration < 1 or duration != int(duration):
        raise click.BadParameter("a lease lasts whole seconds", param_hint="--leader-elect-lease-duration")
    if not duration > deadline > 1.2 * period > 0:
        raise click.BadParameter(
            "the lease lasts longer than the deadline, and the deadline longer than 1.2 periods: else a leader loses its lease in peace",
            param_hint="--leader-elect-renew-deadline",
        )
    return Timing(duration, deadline, period)


async def _run(project: Project, root: Path, options: Options) -> int:
    manager = Manager(project, root, options)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if manager.stopping.is_set():
            manager.log.warning("asked to end a second time: it ends at once")
            os._exit(NO)  # whatever it is that does not end
        manager.stopping.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop)
    try:
        in_order = await manager.run()
    except RuleopError as error:
        print(f"ruleop: {error}", file=sys.stderr)  # noqa: T201 - why there is no operator, for whoever started it
        return UNUSABLE
    return DONE if in_order else NO
