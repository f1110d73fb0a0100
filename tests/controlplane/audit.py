"""The API server's audit log: who asked for what, when, and what came of it.

The log is the proof of what an operator did to the cluster and, as important, of what it left alone.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Metadata only: bodies would fill the disk, and Secrets are among them. RequestReceived would tell everything twice; a watch
# is told when it starts and when it ends, everything else once, when it is complete.
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
    """A moment, and where the log ended then."""

    position: int = 0
    moment: float = 0.0


BEGINNING = Mark()


class AuditLog:
    """Reads the log while the API server writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> Mark:
        """To give to events(): only what is asked from now on counts, and a long log need not be read again."""
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

        since and until are seconds since the epoch and are, like the mark, compared with the time when the request arrived: its line
        is written after its answer was sent, so what was asked before the mark may stand behind it, and what was answered a moment ago
        may need a second look.
        """
        since = max(mark.moment, since or 0.0)
        wanted = {"user": user, "verb": verb, "resource": resource, "namespace": namespace, "stage": stage}
        return [
            event
            for event in self._read(mark.position)
            if all(value is None or _field(event, name) == value for name, value in wanted.items())
            and moment(event["requestReceivedTimestamp"]) >= since
            and (until is None or moment(event["requestReceivedTimestamp"]) <= until)
        ]

    def _read(self, position: int) -> Iterator[Event]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(position)
            for line in file:
                if not line.endswith(b"\n"):  # being written just now, or cut off by a SIGKILL
                    return
                try:
                    yield json.loads(line)
                except ValueError:
                    # A killed API server leaves half a line, and the next one writes on behind it.
                    continue


def _field(event: Event, name: str) -> object:
    match name:
        case "user":
            return event["user"].get("username")  # nobody, where a token was refused
        case "resource" | "namespace":
            return event.get("objectRef", {}).get(name)
        case _:
            return event.get(name)
