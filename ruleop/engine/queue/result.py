"""How a reconcile ended, which decides when its CR is reconciled next."""

from __future__ import annotations

from dataclasses import dataclass

from ruleop.engine.queue.triggers import RESYNC

AT_ONCE = 0.001


@dataclass(frozen=True, slots=True)
class Result:
    """Three cases: it failed and is retried with backoff; it is reconciled again after a time; it is done."""

    failed: bool = False
    again: float | None = None
    why: str = ""  # it is reconciled again; empty: for the reason of this reconcile

    @property
    def result(self) -> str:
        """As controller-runtime counts it, whose resync comes from its informers: a CR that waits for nothing else is a success."""
        if self.failed:
            return "error"
        if self.again is None or self.why == RESYNC:
            return "success"
        return "requeue" if self.again <= AT_ONCE else "requeue_after"
