"""How a reconcile ended, which decides when its CR is reconciled next."""

from __future__ import annotations

from dataclasses import dataclass

from ruleop.engine.queue.triggers import RESYNC

AT_ONCE = 0.001


@dataclass(frozen=True, slots=True)
class Result:
    """Three cases: it failed, and is retried with backoff; it is requeued after a time; it is done."""

    failed: bool = False
    again: float | None = None  # seconds until it is requeued
    why: str = ""  # it is requeued, for the log; empty: for the same reason as this reconcile

    @property
    def result(self) -> str:
        """The result that controller-runtime would count. Its resync comes from its informers, so a CR that is requeued
        only for that is a success."""
        if self.failed:
            return "error"
        if self.again is None or self.why == RESYNC:
            return "success"
        return "requeue" if self.again <= AT_ONCE else "requeue_after"
