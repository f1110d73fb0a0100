"""The time, and the randomness of a pass. Tests replace both."""

from __future__ import annotations

import secrets
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """The clock of the API server, as its responses show it, so that replicas agree about the time. `moved` is called
    with the offset when it changes."""

    def __init__(self, moved: Callable[[float], None] = lambda _: None) -> None:
        self.offset = 0.0  # seconds by which the API server's clock is ahead of this machine's
        self._moved = moved
        self._date = ""
        self._second, self._now = -1, ""  # the second that was last formatted

    def server_time(self, date: str, elapsed: float) -> None:
        """Takes the header `Date` of a response that has just been read, and the seconds since its request was sent.

        The header has whole seconds, and was written somewhere in between. So it gives two bounds, and a good clock
        stays as it is."""
        if date == self._date:
            return
        try:
            stamp = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        self._date = date
        now = time.time()
        offset = min(max(self.offset, stamp - now), stamp + 1 - (now - elapsed))
        if offset != self.offset:
            self.offset = offset
            self._moved(offset)

    def now(self) -> str:
        """RFC 3339, as Kubernetes writes it."""
        second = int(time.time() + self.offset)
        if second != self._second:
            self._second, self._now = second, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        return self._now

    def monotonic(self) -> float:
        """Seconds of a clock that is never set back."""
        return time.monotonic()

    def seed(self) -> bytes:
        """A seed for the random values of a pass."""
        return secrets.token_bytes(32)
