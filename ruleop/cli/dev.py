"""`ruleop dev`: the operator and an API server in memory, in one process, with hot reload."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.checking import check_project, errors_of_rules
from ruleop.authoring.checking.inferred_definitions import to_serve, with_definitions
from ruleop.authoring.dev import DevSession, DevSettings, DevView, read_here
from ruleop.authoring.report import Span, Tone, tree_lines, view_row
from ruleop.cli import finding_formats as found
from ruleop.cli.loading import load_with_sources, project_variables, read_documents
from ruleop.cli.options import Folder, new_file, operator_name, port_option, project_options
from ruleop.cli.program import DONE, NO, UNUSABLE, Command
from ruleop.cli.run import collect_garbage_seldom, on_end_signal
from ruleop.cli.terminal import Picture, has_colour, print_diagnostics, print_lines
from ruleop.errors import RuleopError
from ruleop.language.rules import ProjectErrors, parse_duration
from ruleop.operator.manager.parts import Options
from ruleop.operator.telemetry import logging as logs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.dev import SessionPage
    from ruleop.authoring.report import Line
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Finding


# -- display -----------------------------------------------------------------------------------------------------------
# The display of a session: a live tree on a terminal, plain lines elsewhere.

LAST_EVENTS: Final = 8
MAX_FINDINGS: Final = 15  # lines above the tree
PERIOD: Final = 0.1  # seconds between two pictures
_EMPTY: Final = (Span("", Tone.PLAIN),)


class PlainView(DevView):
    """Lines for a pipe: what happens, and with `--once` the tree at the end."""

    def checked(self, findings: Sequence[Line]) -> None:
        print_diagnostics(findings)

    def started(self, session: DevSession) -> None:
        print_diagnostics(_head(session))

    def warning(self, obj: Object, text: str) -> None:
        print_diagnostics([_warning_line(obj, text)])

    def event(self, obj: Object) -> None:
        print_diagnostics([_event_line(obj)])

    def ended(self, session: DevSession) -> None:
        print_lines(_tree(session))


class LiveView(DevView):
    """The tree of a terminal, painted again after each change."""

    def __init__(self) -> None:
        self.events: deque[Object] = deque(maxlen=LAST_EVENTS)
        self.findings: list[Line] = []
        self.picture = Picture(sys.stdout)
        self._painted = 0.0
        self._waiting = False

    def checked(self, findings: Sequence[Line]) -> None:
        self.findings = list(findings[:MAX_FINDINGS])
        if len(findings) > MAX_FINDINGS:
            self.findings.append((Span("... more: ruleop check", Tone.FAINT),))

    def started(self, session: DevSession) -> None:
        print_lines(_head(session))
        self._paint(session)

    def changed(self, session: DevSession) -> None:
        if not self._waiting:
            self._waiting = True
            delay = max(0.0, self._painted + PERIOD - time.monotonic())
            asyncio.get_running_loop().call_later(delay, self._paint, session)

    def warning(self, obj: Object, text: str) -> None:
        self.picture.print_above([_warning_line(obj, text)])

    def event(self, obj: Object) -> None:
        self.events.append(obj)

    def ended(self, session: DevSession) -> None:
        self._paint(session)

    def _paint(self, session: DevSession) -> None:
        self._waiting, self._painted = False, time.monotonic()
        lines = [*_tree(session)] or [(Span("no custom resources yet: kubectl apply one", Tone.FAINT),)]
        parts = [self.findings, lines, [_event_line(each) for each in self.events]]
        shown = [line for part in parts if part for line in (*part, _EMPTY)][:-1]
        self.picture.paint(shown)


def _tree(session: DevSession) -> Iterator[Line]:
    return tree_lines([view_row(each) for each in session.tree()])


def _head(session: DevSession) -> list[Line]:
    return [
        (Span("API server in memory: ", Tone.FAINT), Span(f"http://127.0.0.1:{session.cluster.port}", Tone.PLAIN)),
        (Span("export KUBECONFIG=", Tone.PLAIN), Span(str(session.kubeconfig), Tone.TITLE)),
        *([(Span("page: ", Tone.FAINT), Span(session.page_url, Tone.TITLE))] if session.page_url else []),
        (Span("", Tone.PLAIN),),
    ]


def _event_line(obj: Object) -> Line:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    tone = Tone.BAD if obj.get("type") == "Warning" else Tone.FAINT
    return (
        Span(f"{about.get('kind', '')} {about.get('name', '')}", Tone.PLAIN),
        Span(f"  {obj.get('reason', '')}", tone),
        Span(f"  {obj.get('message') or obj.get('note') or ''}", Tone.FAINT),
    )


def _warning_line(obj: Object, text: str) -> Line:
    return (
        Span("Warning: ", Tone.CHANGE),
        Span(f"{obj['kind']} {obj['metadata']['name']}", Tone.PLAIN),
        Span(f"  {text}", Tone.FAINT),
    )


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
        return found.refusal(errors, where)
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
        yield (Span(f"  {view.title} is {view.state}{message}", Tone.WAIT),)
        yield from ((Span(f"    {title}: {problem}", Tone.PLAIN),) for problem, title in problems.items())
