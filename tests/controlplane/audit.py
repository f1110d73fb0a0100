"""The API server's audit log: the user, the time and the result of each request.

The log proves which objects an operator has changed and, as important, that it has changed no others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

# Metadata only: bodies would fill the disk, and Secrets are among them. With RequestReceived, all requests would be in
# it twice. A watch has an entry at its start and at its end, every other request one, at its end.
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
rules:
- level: Metadata
"""

Event = dict[str, Any]


def moment(text: str) -> float:
    """A timestamp of the log as seconds since the epoch, to compare with time.time()."""
    return datetime.fromisoformat(text).timestamp()


class Mark(NamedTuple):
    """A time, and the end of the log at that time."""

    position: int = 0
    moment: float = 0.0


BEGINNING = Mark()


class AuditLog:
    """Reads the log while the API server writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> Mark:
        """For events(): selects the requests from now on, without reading the earlier part of the log again."""
        return Mark(self.path.stat().st_size if self.path.exists() else 0, time.time())

    def events(
        self,
        *,
        mark: Mark = BEGINNING,
        user: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        stage: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> list[Event]:
        """The events, oldest first, that fit everything given.

        since and until are seconds since the epoch and are, like the mark, compared with the time when the request
        arrived: its line is written after its answer was sent. So the line of an earlier request may come after the
        mark, and that of a recent one may be missing at first.
        """
        since = max(mark.moment, since or 0.0)
        wanted = {"user": user, "verb": verb, "resource": resource, "namespace": namespace, "stage": stage}
        return [
            event
            for event, _ in self.lines(mark.position)
            if all(value is None or _field(event, name) == value for name, value in wanted.items())
            and moment(event["requestReceivedTimestamp"]) >= since
            and (until is None or moment(event["requestReceivedTimestamp"]) <= until)
        ]

    def follow(self, mark: Mark, user: str) -> Followed:
        """The events of a user since the mark, for a test that asks for them often."""
        return Followed(self, mark, user)

    def lines(self, position: int) -> Iterator[tuple[Event, int]]:
        """The events behind this position of the file, each with the position of its end."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(position)
            for line in file:
                if not line.endswith(b"\n"):  # being written just now, or cut off by a SIGKILL
                    return
                position += len(line)
                try:
                    yield json.loads(line), position
                except ValueError:
                    # A killed API server leaves half a line, and the next one writes on behind it.
                    continue


class Followed:
    """Each line of the log is read once, however often the events are asked for."""

    def __init__(self, log: AuditLog, mark: Mark, user: str) -> None:
        self._log, self._user = log, user
        self._position, self._moment = mark
        self._events: list[Event] = []

    def events(self) -> list[Event]:
        for event, end in self._log.lines(self._position):
            self._position = end
            if _field(event, "user") == self._user and moment(event["requestReceivedTimestamp"]) >= self._moment:
                self._events.append(event)
        return [*self._events]


def _field(event: Event, name: str) -> object:
    match name:
        case "user":
            return event["user"].get("username")  # none, if a token was rejected
        case "resource" | "namespace":
            return event.get("objectRef", {}).get(name)
        case _:
            return event.get(name)
