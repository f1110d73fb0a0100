"""`ruleop run`: runs the operator against the cluster of the kubeconfig, or of its own pod."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import socket
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import structlog

from ruleop.cli.options import (
    CONTEXT,
    DEFAULT_NAME,
    KUBECONFIG,
    Folder,
    flag,
    is_unreadable,
    operator_name,
    project_options,
    read_rule_files,
    variables,
)
from ruleop.cli.program import DONE, NO, UNUSABLE, Command, F
from ruleop.errors import RuleopError
from ruleop.kubernetes.buckets import Pod
from ruleop.kubernetes.labels import label_requirements
from ruleop.kubernetes.names import LABEL, MOST_OF_NAME, is_label
from ruleop.language.rules import ProjectErrors, parse_duration
from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.operator.rules.process import read_by_process
from ruleop.operator.telemetry import is_loopback, is_on
from ruleop.operator.telemetry import logging as logs
from ruleop.operator.wire.leader.lease import Timing
from ruleop.printable import printable_lines

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Iterator, Mapping

    from ruleop.language.rules import RuleFiles


def _duration(name: str, default: str, text: str) -> Callable[[F], F]:
    return flag(name, default=default, show_default=True, metavar="DURATION", help=text)


@click.command(cls=Command, example="ruleop run --namespaces blog,shop --leader-elect")
@project_options
@flag("--kubeconfig", default="", metavar="FILE", help=KUBECONFIG)
@flag("--context", default="", metavar="NAME", help=CONTEXT)
@flag("--namespaces", default="", metavar="A,B", help="Namespaces to watch. Also WATCH_NAMESPACE. Default: all.")
@flag(
    "--name",
    default="",
    metavar="NAME",
    help=f"Name used for the inventory ConfigMap, the Lease and the finalizer. {DEFAULT_NAME}",
)
@flag(
    "--operator-namespace",
    default="",
    metavar="NAMESPACE",
    help="Namespace of the inventory ConfigMap and the Lease. Default: the pod's, else the context's.",
)
@flag(
    "--selector",
    default="",
    metavar="LABELS",
    help="Reconcile only custom resources with these labels, such as team=a or '!team'; other processes have the rest.",
)
@flag(
    "--shards",
    type=click.Choice(["auto"]),
    default=None,
    help="Be one of the pods of a StatefulSet that divide the custom resources among them. Implies --leader-elect.",
)
@flag("--leader-elect", is_flag=True, help="Use a Lease for leader election; the other processes stand by.")
@_duration("--leader-elect-lease-duration", "15s", "Time that standbys wait after the leader's last renewal.")
@_duration("--leader-elect-renew-deadline", "10s", "Time that the leader tries to renew the Lease before it exits.")
@_duration("--leader-elect-retry-period", "2s", "Pause between two attempts to acquire or renew the Lease.")
@flag(
    "--metrics-bind-address",
    default=":8080",
    show_default=True,
    metavar="ADDRESS",
    help="Address of /metrics; 0 disables it.",
)
@flag("--metrics-cert", default="", metavar="FILE", help="Certificate of /metrics (PEM), read again when it changes.")
@flag("--metrics-key", default="", metavar="FILE", help="Key of that certificate (PEM).")
@flag(
    "--metrics-auth",
    is_flag=True,
    help="Require a bearer token that is authorized to get /metrics. Needs --metrics-cert.",
)
@flag(
    "--page-bind-address",
    default="0",
    show_default=True,
    metavar="ADDRESS",
    help="Address of the web page, with the certificate and authorization of /metrics; 0 disables it.",
)
@flag(
    "--health-probe-bind-address",
    default=":8081",
    show_default=True,
    metavar="ADDRESS",
    help="Address of /healthz and /readyz; 0 disables them.",
)
@flag(
    "--max-concurrent-reconciles",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Maximum concurrent reconciles of each kind. Default: maxConcurrentReconciles of the rules, else 16.",
)
@flag("--reload/--no-reload", default=True, show_default=True, help="Reload the rules when their files change.")
@flag("--prune-after-reload", default="30s", hidden=True)  # for tests
@flag(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Lowest level that is logged.",
)
@flag(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default=None,
    help="Format of the log. Default: text on a terminal, else json.",
)
@flag("--record", default="", metavar="DIR", help="Write each plan to a file in DIR, without values of Secrets.")
@flag("--dry-run", is_flag=True, help="Log the writes that would be made, without making them.")
@flag(
    "--kube-api-qps",
    type=click.FloatRange(min=0),
    default=None,
    metavar="N",
    help="Maximum requests per second to the API server. Default: no limit.",
)
@_duration("--graceful-shutdown-timeout", "30s", "Time to wait for running reconciles when the operator stops.")
def command(folder: str, env_files: tuple[str, ...], **flags: object) -> int:
    """Run the operator against a cluster.

    Creates and updates the children of custom resources and writes their status, until SIGTERM or SIGINT. Exit status
    0: stopped in order. 1: the project has mistakes, the Lease was lost, or stopping took too long. 2: wrong usage, or
    the project, the credentials or an address cannot be used.
    """
    logs.set_up(str(flags["log_level"]), flags["log_format"])  # type: ignore[arg-type]
    files = read_rule_files(Folder(folder))
    try:
        name = _name(operator_name(folder, str(flags["name"])))
    except ProjectErrors as errors:  # of ruleop.yaml
        click.echo(printable_lines(str(errors)), err=True)
        return UNUSABLE if is_unreadable(errors) else NO
    options = Options(
        kubeconfig=str(flags["kubeconfig"]),
        context=str(flags["context"]),
        namespaces=_namespaces(str(flags["namespaces"])),
        name=name,
        operator_namespace=_operator_namespace(str(flags["operator_namespace"])),
        metrics_address=str(flags["metrics_bind_address"]),
        metrics_certificate=_certificate(flags),
        metrics_auth=_metrics_auth(flags),
        page_address=_page_address(flags),
        health_address=str(flags["health_probe_bind_address"]),
        leader_elect=bool(flags["leader_elect"]) or flags["shards"] is not None,
        selector=_selector(flags),
        pod=_pod() if flags["shards"] is not None else None,
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
    return asyncio.run(_run(files, options))


def collect_garbage_seldom() -> None:
    """Freezes the objects that are loaded by now, so that they are not scanned again. A pass makes some thousand
    objects that go without the collector, and a tenth of the operator's CPU went into looking for cycles among them."""
    gc.freeze()
    gc.set_threshold(5000, 5, 80)


def _name(text: str) -> str:
    if not is_label(text, most=MOST_OF_NAME):
        message = f'"{text}" is not a valid name: up to {MOST_OF_NAME} lowercase letters, digits and "-"'
        raise click.BadParameter(message, param_hint="--name")
    return text


def _namespaces(text: str) -> tuple[str, ...]:
    names, origin = (text, "--namespaces") if text else (os.environ.get("WATCH_NAMESPACE", ""), "WATCH_NAMESPACE")
    return tuple(dict.fromkeys(_namespace(name.strip(), origin) for name in names.split(",") if name.strip()))


def _namespace(name: str, origin: str) -> str:
    if not is_label(name):
        message = f'"{name}" is not a valid namespace: up to 63 lowercase letters, digits and "-"'
        raise click.BadParameter(message, param_hint=origin)
    return name


def _operator_namespace(text: str) -> str:
    return _namespace(text, "--operator-namespace") if text else ""


def _selector(flags: Mapping[str, object]) -> str:
    text = str(flags["selector"])
    if text and flags["shards"] is not None:
        raise click.BadParameter(
            "not together with --shards: each has all resources among them", param_hint="--selector"
        )
    try:
        label_requirements(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{error}: expected labels such as team=a or '!team'", param_hint="--selector"
        ) from None
    return text


def _pod() -> Pod:
    """By the downward API, or by the name of the host, which is that of the pod."""
    name = os.environ.get("POD_NAME") or socket.gethostname()
    if re.fullmatch(rf"{LABEL}-[0-9]{{1,5}}", name) is None:
        message = f'"{name}" is not the name of a pod of a StatefulSet, such as ruleop-0: set POD_NAME'
        raise click.BadParameter(message, param_hint="--shards")
    return Pod(
        _namespace(os.environ["POD_NAMESPACE"], "POD_NAMESPACE") if os.environ.get("POD_NAMESPACE") else "", name
    )


def _certificate(flags: Mapping[str, object]) -> tuple[Path, Path] | None:
    certificate, key = str(flags["metrics_cert"]), str(flags["metrics_key"])
    if bool(certificate) != bool(key):
        message = "a certificate and its key are both needed"
        raise click.BadParameter(message, param_hint="--metrics-key" if certificate else "--metrics-cert")
    return (Path(certificate), Path(key)) if certificate else None


def _metrics_auth(flags: Mapping[str, object]) -> bool:
    if flags["metrics_auth"] and not flags["metrics_cert"]:
        message = "needs --metrics-cert and --metrics-key: without TLS, anybody on the way could read the tokens"
        raise click.BadParameter(message, param_hint="--metrics-auth")
    return bool(flags["metrics_auth"])


def _page_address(flags: Mapping[str, object]) -> str:
    """The page shows more than metrics do: beyond this machine it needs TLS and tokens. Without them, it is reached on
    a loopback address by `kubectl port-forward`."""
    address = str(flags["page_bind_address"])
    if not is_on(address):
        return ""
    if not is_loopback(address) and not flags["metrics_auth"]:
        message = "needs --metrics-cert, --metrics-key and --metrics-auth, or a loopback address such as 127.0.0.1:8082"
        raise click.BadParameter(message, param_hint="--page-bind-address")
    return address


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
        message = "must be a whole number of seconds, at least 1"
        raise click.BadParameter(message, param_hint="--leader-elect-lease-duration")
    if not duration > deadline > 1.2 * period > 0:
        raise click.BadParameter(
            "must be shorter than --leader-elect-lease-duration and longer than 1.2 times --leader-elect-retry-period",
            param_hint="--leader-elect-renew-deadline",
        )
    return Timing(duration, deadline, period)


def _page(address: str) -> Callable[[Manager], contextlib.AbstractAsyncContextManager[object]]:
    from ruleop.page.serving import operator_page  # noqa: PLC0415 - an operator without the page does not load it

    return partial(operator_page, address)


async def _run(files: RuleFiles, options: Options) -> int:
    stopping = asyncio.Event()
    try:
        with on_end_signal(partial(_stop, stopping)):
            in_order = await _until_stopped(files, options, stopping)
    except ProjectErrors as errors:
        print(printable_lines(str(errors)), file=sys.stderr)  # noqa: T201 - as those of `check`
        return UNUSABLE if is_unreadable(errors) else NO
    except RuleopError as error:
        print(printable_lines(f"ruleop: {error}"), file=sys.stderr)  # noqa: T201 - the reason, for the person who started it
        return UNUSABLE
    return DONE if in_order else NO


async def _until_stopped(files: RuleFiles, options: Options, stopping: asyncio.Event) -> bool:
    """Whether it stopped in order. Raises ProjectErrors and RuleopError."""
    read_rules = partial(read_by_process, variables=options.variables)
    reading = asyncio.create_task(read_rules(files), name="rules")
    stopped = asyncio.create_task(stopping.wait(), name="stopped")
    await asyncio.wait({reading, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not reading.done():
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)  # its process has ended
        return True
    read = reading.result()
    collect_garbage_seldom()
    manager = Manager(
        read.project,
        Path(files.root),
        options,
        errors=read.errors,
        read_rules=read_rules,
        page=_page(options.page_address) if options.page_address else None,
        stopping=stopping,
    )
    return await manager.run()


def _stop(stopping: asyncio.Event) -> None:
    if stopping.is_set():
        structlog.get_logger().warning("second signal: exiting immediately")
        os._exit(NO)
    stopping.set()


@contextmanager
def on_end_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block, SIGTERM and SIGINT call `stop` in the event loop. After it they are ignored."""
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop)
    try:
        yield
    finally:
        # The loop closes the pipe to which signals are reported before it stops reporting them.
        signal.set_wakeup_fd(-1)
