"""The time, and the randomness of a pass. Tests replace both."""

from __future__ import annotations

import secrets
import time


class Clock:
    def now(self) -> str:
        """RFC 3339, as Kubernetes writes it."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def seed(self) -> bytes:
        """Of what a pass draws at random."""
        return secrets.token_bytes(32)
