"""The result of a reconcile, which decides when its CR is reconciled next."""

from __future__ import annotations

from dataclasses import dataclass

from ruleop.operator.engine.queue.triggers import RESYNC

IMMEDIATELY = 0.001


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
