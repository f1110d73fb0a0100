"""The reasons that a CR is reconciled: for the log only, no decision depends on them.

A trigger is the identity of the object that changed, or a word. The first three triggers of a CR are kept until its
reconcile starts. A retry or a resync has a trigger of its own, which is used if none came before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.core.kinds import ObjectKey

if TYPE_CHECKING:
    from ruleop.operator.engine.queue.request import Request

Cause: TypeAlias = ObjectKey | str

START = "start"
RESYNC = "resync"
MAX_TRIGGERS = 3


class Triggers:
    def __init__(self) -> None:
        self._added: dict[Request, tuple[Cause, ...]] = {}
        self._scheduled: dict[Request, tuple[Cause, ...]] = {}

    def add(self, request: Request, cause: Cause) -> None:
        known = self._added.get(request, ())
        if cause not in known and len(known) < MAX_TRIGGERS:
            self._added[request] = (*known, cause)

    def schedule(self, request: Request, *causes: Cause) -> None:
        self._scheduled[request] = causes

    def take(self, request: Request) -> tuple[Cause, ...]:
        scheduled = self._scheduled.pop(request, ())
        return self._added.pop(request, ()) or scheduled


def describe(causes: tuple[Cause, ...]) -> str:
    named = (each if isinstance(each, str) else f"{str(each).replace('/', ' ', 1)} changed" for each in causes)
    return ", ".join(named)
