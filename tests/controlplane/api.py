"""A client of the API server with the few requests that starting, probing and small tests need.

It is not ruleop's own client, because tests of that client must not depend on it.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


class ApiError(Exception):
    """The API server rejected a request."""

    def __init__(self, method: str, path: str, status: int, text: str) -> None:
        super().__init__(f"{method} {path}: {status}: {text.strip()}")
        self.status = status


class Api:
    """Requests as one user."""

    def __init__(self, server: str, authority: Path | None, token: str) -> None:
        self.server = server
        self._token = token
        # No proxies from the environment: the server is on loopback.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if authority is not None:
            context = ssl.create_default_context(cafile=str(authority))
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def text(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "*/*",
        timeout: float = 10.0,
    ) -> str:
        """Sends a request, with the body as JSON, and returns the answer's text."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, "User-Agent": "ruleop-controlplane"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        request = urllib.request.Request(self.server + path, data=data, headers=headers, method=method)  # noqa: S310 - a control plane on loopback
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                text: str = answer.read().decode()
                return text
        except urllib.error.HTTPError as error:
            with error:
                raise ApiError(method, path, error.code, error.read().decode(errors="replace")) from None
        except urllib.error.URLError as error:
            # The reason itself, such as TimeoutError or ConnectionRefusedError, whichever step of a request it came in.
            raise error.reason if isinstance(error.reason, OSError) else error from None

    def json(
        self, method: str, path: str, body: object = None, content_type: str = "application/json", timeout: float = 10.0
    ) -> Any:
        """The same for answers in JSON."""
        return json.loads(self.text(method, path, body, content_type, "application/json", timeout))

    def get(self, path: str) -> Any:
        """Reads an object or a list."""
        return self.json("GET", path)

    def post(self, path: str, body: object) -> Any:
        """Creates an object."""
        return self.json("POST", path, body)

    def merge(self, path: str, body: object) -> Any:
        """Changes an object with a JSON merge patch."""
        return self.json("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str, body: object = None) -> Any:
        """Deletes an object; the body may be DeleteOptions."""
        return self.json("DELETE", path, body)
