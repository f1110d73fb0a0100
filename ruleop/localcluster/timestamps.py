"""The time as Kubernetes writes it."""

from __future__ import annotations

import time
from datetime import datetime


def now() -> str:
    return timestamp(time.time())


def timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def as_duration(seconds: int) -> float:
    """The seconds as a duration of Go: nanoseconds of 64 bits, which overflow after 292 years."""
    return ((seconds * 10**9 + (1 << 63)) % (1 << 64) - (1 << 63)) / 1e9


def seconds_of(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
