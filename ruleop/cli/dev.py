"""`ruleop dev`: the operator and an API server in memory, in one process, with hot reload."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ruleop.authoring.checking import check_project, errors_of_rules
from ruleop.authoring.checking.inferred_definitions import to_serve, with_definitions
from ruleop.authoring.dev import DevSession, DevSettings, read_here
from ruleop.authoring.report import Span, Tone
from ruleop.cli.inputs.cluster_options import new_file, operator_name, port_option
from ruleop.cli.inputs.input_files import read_documents
from ruleop.cli.inputs.loading import load_with_sources, project_variables
from ruleop.cli.inputs.project import Folder, is_unreadable, project_options
from ruleop.cli.inputs.signals import on_end_signal
from ruleop.cli.outputs import finding_formats as found
from ruleop.cli.outputs.dev_views import LiveView, PlainView
from ruleop.cli.outputs.terminal import has_colour, print_diagnostics
from ruleop.cli.program import DONE, NO, UNUSABLE, Command
from ruleop.cli.run import collect_garbage_seldom
from ruleop.errors import RuleopError
from ruleop.language.rules import ProjectErrors, parse_duration
from ruleop.operator.manager.parts import Options
from ruleop.operator.telemetry import logging as logs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.dev import SessionPage
    from ruleop.authoring.report import Line
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Finding


@click.command(cls=Command, example="ruleop dev --apply examples/")
@project_options
@click.option(
    "--apply", "files", multiple=True, metavar="FILE", help="Apply the objects of a file or folder. Repeatable."
)
@click.option("--once", is_flag=True, help="Stop when all custom resources are ready, and print the tree.")
@click.option(
    "--timeout",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="With --once: the time after which the exit status is 1.",
)
@click.option(
    "--kubeconfig",
    default="",
    metavar="FILE",
    callback=new_file,
    help="Write the kubeconfig to this file, which must not exist. Default: a temporary one. Removed at the end.",
)
@port_option
@click.option(
    "--page/--no-page", "with_page", default=True, show_default=True, help="Serve a web page; its URL is printed."
)
@click.option(
    "--page-port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the page. Default: a free one."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Lowest level that the operator logs.",
)
def command(
    folder: str,
    env_files: tuple[str, ...],
    files: tuple[str, ...],
    once: bool,
    timeout: str,
    kubeconfig: str,
    port: int,
    log_level: str,
    **page: Any,
) -> int:
    """Run the operator with a cluster in memory, and show a tree.

    Checks the project, starts an API server in memory with the controllers of a cluster, applies the CRDs of crds/ and
    of `schema`, and runs the operator with hot reload. Shows the custom resources with their children as a tree. The
    printed KUBECONFIG lets kubectl work with the cluster. Everything is gone when it stops. Exit status 0: stopped, and
    with --once all custom resources are ready. 1: the project has mistakes, or they are not ready within --timeout.
    """
    logs.set_up(log_level, None)
    where = Folder(folder)
    try:
        loaded = with_definitions(load_with_sources(where, env_files))
    except ProjectErrors as errors:
        print_diagnostics(found.lines(errors.findings, where))
        return UNUSABLE if is_unreadable(errors) else NO
    try:
        seconds = parse_duration(timeout)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--timeout") from None
    variables = project_variables(where, env_files)
    settings = DevSettings(
        samples=tuple(each.data for each in read_documents(files, folder=folder)),
        definitions=partial(_definitions, where, env_files),
        check=partial(_check, where, env_files),
        read_rules=partial(read_here, variables=variables),
        once=once,
        timeout=seconds,
        kubeconfig=kubeconfig,
        port=port,
        page=partial(_page, page["page_port"]) if page["with_page"] and not once else None,
    )
    options = Options(
        metrics_address="0",
        health_address="0",
        name=operator_name(folder, ""),
        operator_namespace="default",
        reload=not once,
        prune_after_reload=0.5,
        rollouts=False,
        environ=dict(os.environ),
        variables=variables,
        grace=5.0,
    )
    findings = check_project(loaded)
    if errors_of_rules(findings, loaded):
        print_diagnostics(found.lines(findings, where))
        return NO
    collect_garbage_seldom()
    view = LiveView() if has_colour(sys.stdout) and not once else PlainView()
    view.checked([*found.lines(findings, where)])
    return asyncio.run(_run(DevSession(loaded.project, Path(folder), options, settings, view)))


def _page(port: int) -> SessionPage:
    from ruleop.page.serving import DevPage  # noqa: PLC0415 - only a session with a page loads its server

    return DevPage(port)


def _check(folder: Folder, env_files: tuple[str, ...]) -> list[Line]:
    try:
        findings: Iterable[Finding] = check_project(load_with_sources(folder, env_files))
    except ProjectErrors as errors:
        findings = errors.findings
    return [*found.lines(findings, folder)]


def _definitions(folder: Folder, env_files: tuple[str, ...]) -> list[Object]:
    """The CRDs of crds/ and of `schema`. Raises RuleopError while the project has mistakes."""
    definitions = Path(folder.name, "crds")
    files = [str(definitions)] if definitions.is_dir() else []
    written = [each.data for each in read_documents(files, folder=folder.name)]
    return to_serve(written, with_definitions(load_with_sources(folder, env_files)).project)


async def _run(session: DevSession) -> int:
    try:
        with on_end_signal(session.stopping.set):
            ready = await session.run()
    except RuleopError as error:
        print(f"ruleop: {error}", file=sys.stderr)  # noqa: T201 - the reason, for the person who started it
        return UNUSABLE
    finally:
        session.view.ended(session)
    if ready or not session.settings.once:
        return DONE
    print_diagnostics(_unready_lines(session))
    return NO


def _unready_lines(session: DevSession) -> Iterator[Line]:
    why = ", and only an edit can change that" if session.is_stuck() else f" within {session.settings.timeout:g} s"
    yield (Span(f"not ready{why}:", Tone.BAD),)
    for view, problems in session.unready():
        message = f": {view.message}" if view.message else ""
        yield (Span(f"  {view.planned.title} is {view.state}{message}", Tone.WAIT),)
        yield from ((Span(f"    {title}: {problem}", Tone.PLAIN),) for problem, title in problems.items())
