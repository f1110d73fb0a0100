"""Queues that decide which CR to reconcile next, and when.

A queue per watched kind, its workers, and what passes between them: a `Request` (which CR), a `Result` (how its
reconcile ended) and triggers (why, for the log). Knows nothing of rules, objects or the API server.
"""

from ruleop.operator.queue.work_queue import IMMEDIATELY, START, Cause, Request, Result, Urgency, WorkQueue
from ruleop.operator.queue.workers import Workers

__all__ = [
    "IMMEDIATELY",
    "START",
    "Cause",
    "Request",
    "Result",
    "Urgency",
    "WorkQueue",
    "Workers",
]
