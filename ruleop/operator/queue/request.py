"""An item of the queue: which CR to reconcile, the reasons, and the result, which decides when it is reconciled next.

No decision depends on the reasons; they are for the log only. A trigger is the identity of the object that changed, or
a word. The first three triggers of a CR are kept until its reconcile starts. A retry or a resync has a trigger of its
own, which is used if none came before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ruleop.kubernetes.kinds import ObjectKey

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object

Cause: TypeAlias = ObjectKey | str

START = "start"
RESYNC = "resync"
MAX_TRIGGERS = 3
IMMEDIATELY = 0.001


class Request(NamedTuple):
    """The namespace and name of a CR."""

    namespace: str
    name: str

    @classmethod
    def of(cls, resource: Object) -> Request:
        return cls(resource["metadata"].get("namespace") or "", resource["metadata"]["name"])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


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


@dataclass(frozen=True, slots=True)
class Result:
    """Three cases: it failed, and is retried with backoff; it is requeued after a time; it is done."""

    failed: bool = False
    requeue_after: float | None = None  # seconds until it is requeued; of a failure, at the latest
    retry_after: float | None = None  # seconds that the server asked to wait after a failure
    reason: str = ""  # for the log; empty: the triggers of this reconcile

    @property
    def result(self) -> str:
        """The result that controller-runtime would count. Its resync comes from its informers, so a CR that is requeued
        only for that is a success."""
        if self.failed:
            return "error"
        if self.requeue_after is None or self.reason == RESYNC:
            return "success"
        return "requeue" if self.requeue_after <= IMMEDIATELY else "requeue_after"
