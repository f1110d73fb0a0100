"""A prepared request to an API server: everything that a connection sends, and the names for messages."""

from __future__ import annotations

from dataclasses import dataclass

JSON_TYPE = "application/json"
# A webhook may take 30 s. A shorter timeout would save nothing and leave the outcome unknown.
TIMEOUT = 35.0


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    verb: str  # as in RBAC
    resource: str  # "deployments.apps prod/web", for messages
    query: str = ""
    body: bytes | None = None
    content_type: str = ""
    accept: str = JSON_TYPE
    timeout: float = TIMEOUT
    etag: str = ""
    as_user: str = ""  # whom it impersonates; empty: nobody but whom the credentials say
