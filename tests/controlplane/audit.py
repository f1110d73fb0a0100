"""The API server's audit log: who asked for what, when, and what came of it.

The log is the proof of what an operator did to the cluster and, as important, of what it left alone.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

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


class AuditLog:
    """Reads the log while the API server writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        """The log's present end, to give to events() as its start: much cheaper than reading a long log again."""
        return self.path.stat().st_size if self.path.exists() else 0

    def events(
        self,
        *,
        mark: int = 0,
        user: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        stage: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> list[Event]:
        """The events, oldest first, that fit everything given.

        since and until are seconds since the epoch and are compared with the time when the request arrived. A request's
        line is written after its answer was sent, so what was answered a moment ago may need a second look.
        """
        wanted = {"user": user, "verb": verb, "resource": resource, "namespace": namespace, "stage": stage}
        return [
            event
            for event in self._read(mark)
            if all(value is None or _field(event, name) == value for name, value in wanted.items())
            and (since is None or moment(event["requestReceivedTimestamp"]) >= since)
            and (until is None or moment(event["requestReceivedTimestamp"]) <= until)
        ]

    def _read(self, mark: int) -> Iterator[Event]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(mark)
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
