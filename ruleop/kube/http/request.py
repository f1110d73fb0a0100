"""One request to an API server, prepared: everything that a connection has to send, and what messages call it."""

from __future__ import annotations

from dataclasses import dataclass

JSON_TYPE = "application/json"
# A webhook may take 30 s by its definition. Giving up sooner would spare nothing, and leave the outcome unknown.
TIMEOUT = 35.0


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    verb: str  # as RBAC and people call it
    resource: str  # "deployments.apps prod/web", for messages
    query: str = ""
    body: bytes | None = None
    content_type: str = ""
    accept: str = JSON_TYPE
    timeout: float = TIMEOUT
    etag: str = ""
