"""The time as Kubernetes writes it."""

from __future__ import annotations

import time
from datetime import datetime


def now() -> str:
    return timestamp(time.time())


def timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def seconds_of(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
