"""Why a CR is looked at, for the log and for nothing else: no decision depends on it.

A cause is the identity of what changed, or a word. What a CR is looked at for is kept until the look begins, at most three things of it; a
look that was only planned (a retry, a resync) has its own cause, which counts where nothing else came before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.kinds import ObjectKey

if TYPE_CHECKING:
    from ruleop.engine.queue.request import Request

Cause: TypeAlias = ObjectKey | str

START = "start"
RESYNC = "resync"
MOST = 3


class Triggers:
    def __init__(self) -> None:
        self._came: dict[Request, tuple[Cause, ...]] = {}
        self._planned: dict[Request, tuple[Cause, ...]] = {}

    def came(self, request: Request, cause: Cause) -> None:
        known = self._came.get(request, ())
        if cause not in known and len(known) < MOST:
            self._came[request] = (*known, cause)

    def plan(self, request: Request, *causes: Cause) -> None:
        self._planned[request] = causes

    def take(self, request: Request) -> tuple[Cause, ...]:
        planned = self._planned.pop(request, ())
        return self._came.pop(request, ()) or planned


def told(causes: tuple[Cause, ...]) -> str:
    return ", ".join(cause if isinstance(cause, str) else f"{_named(cause)} changed" for cause in causes)


def _named(key: ObjectKey) -> str:
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"
