"""The display of a session: a live tree on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from ruleop.authoring.dev import DevView
from ruleop.authoring.report import Span, Tone, tree_lines, view_row
from ruleop.cli.outputs.terminal import Picture, print_diagnostics, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.dev import DevSession
    from ruleop.authoring.report import Line
    from ruleop.kubernetes.kinds import Object

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
