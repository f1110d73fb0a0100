"""The time, and the randomness of a pass. Tests replace both."""

from __future__ import annotations

import secrets
import time


class Clock:
    def now(self) -> str:
        """RFC 3339, as Kubernetes writes it."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def monotonic(self) -> float:
        """Seconds of a clock that is never set back."""
        return time.monotonic()

    def seed(self) -> bytes:
        """A seed for the random values of a pass."""
        return secrets.token_bytes(32)
