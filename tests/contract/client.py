"""A plain HTTP client of an API server: it sends what it is given, and returns what the server answered."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.waiting import PATIENCE

JSON, MERGE, JSON_PATCH = "application/json", "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Reply:
    """An answer. Its body is None if it is not JSON."""

    status: int
    body: Any
    text: str
    headers: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    def ok(self) -> Any:
        assert self.status < 300, self.text
        return self.body

    def ok_text(self) -> str:
        assert self.status < 300, self.text
        return self.text

    def refused(self, code: int, reason: str = "") -> Any:
        """The Status of a request that was not carried out."""
        assert self.status == code, self.text
        assert self.body["reason"] == reason, self.text
        return self.body


class Server:
    """An API server. Each thread has a connection of its own."""

    def __init__(self, url: str, headers: Mapping[str, str], context: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        self.host, self.prefix = parts.netloc, parts.path
        self._headers, self._context = dict(headers), context
        self._local = threading.local()
        self.compact: Callable[[], None] = lambda: None  # one that has run for a while has done so by itself

    @classmethod
    def of(cls, kubeconfig: Mapping[str, Any]) -> Server:
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        authority = cluster.get("certificate-authority-data")
        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode()) if authority else None
        return cls(cluster["server"], {"Authorization": f"Bearer {user['token']}"}, context)

    def connect(self, timeout: float = PATIENCE) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self.host, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(self.host, timeout=timeout)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        """Sends one request. A body that is text or bytes is sent as it is."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.connect()
        data = body.encode() if isinstance(body, str) else body
        if data is not None and not isinstance(data, bytes):
            data = json.dumps(body).encode()
        sent = {**self._headers, "Accept": accept, "User-Agent": "contract/1", **(headers or {})}
        if data is not None and media:
            sent["Content-Type"] = media
        try:
            connection.request(method, self._target(path, query), data, sent)
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        if response.will_close:
            connection.close()
        is_json = text and response.headers.get("Content-Type", "").startswith(JSON)
        found = json.loads(text) if is_json else None
        warnings = tuple(_WARNING.findall(", ".join(response.headers.get_all("Warning") or ())))
        return Reply(response.status, found, text, dict(response.headers), warnings)

    def close(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _target(self, path: str, query: Mapping[str, Any]) -> str:
        given = {name: value for name, value in query.items() if value is not None}
        if not given:
            return self.prefix + path
        return f"{self.prefix}{path}{'&' if '?' in path else '?'}{urlencode(given)}"

    # -- the verbs, of which each returns the object -------------------------------------------------------------------

    def get(self, path: str, **query: Any) -> Any:
        """Reads, and again after the time that a busy server asks for: one whose CRD has just changed does so."""
        deadline = time.monotonic() + PATIENCE
        while (reply := self.send("GET", path, **query)).status == 429 and time.monotonic() < deadline:
            time.sleep(reply.body["details"]["retryAfterSeconds"])
        return reply.ok()

    def create(self, path: str, obj: Any, **query: Any) -> Any:
        return self.send("POST", path, obj, **query).ok()

    def replace(self, path: str, obj: Any, **query: Any) -> Any:
        return self.send("PUT", path, obj, **query).ok()

    def merge(self, path: str, patch: Any, **query: Any) -> Any:
        return self.send("PATCH", path, patch, media=MERGE, **query).ok()

    def delete(self, path: str, options: Any = None, **query: Any) -> Any:
        return self.send("DELETE", path, options, **query).ok()

    def exists(self, path: str) -> bool:
        return self.send("GET", path).status == 200

    @contextlib.contextmanager
    def watch(self, path: str, *, accept: str = JSON, **query: Any) -> Iterator[Watch]:
        connection = self.connect()
        try:
            target = self._target(path, {"watch": "true", **query})
            connection.request("GET", target, headers={**self._headers, "Accept": accept})
            yield Watch(connection.getresponse())
        finally:
            connection.close()


class Watch:
    """The events of a watch, as they come."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status

    def header(self, name: str) -> str | None:
        return self._response.headers.get(name)

    def next(self) -> tuple[str, Any]:
        line = self._response.readline()
        assert line, "the watch has ended"
        event = json.loads(line)
        return event["type"], event["object"]

    def named(self, count: int) -> list[tuple[str, str]]:
        """The next events, by type and name."""
        return [(type_, obj["metadata"]["name"]) for type_, obj in (self.next() for _ in range(count))]

    def rest(self) -> list[tuple[str, Any]]:
        """The events until the server ends the watch."""
        lines = self._response.read().splitlines()
        return [(event["type"], event["object"]) for event in map(json.loads, lines)]
