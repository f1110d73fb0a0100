"""Single requests to a server in memory."""

from __future__ import annotations

import http.client
from typing import Any

import orjson

from ruleop.localcluster import LocalCluster
from tests.waiting import PATIENCE


def send(cluster: LocalCluster, method: str, path: str, body: bytes, content_type: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=PATIENCE)
    try:
        connection.request(method, f"/{cluster.token}{path}", body, {"Content-Type": content_type})
        answer = connection.getresponse()
        return answer.status, orjson.loads(answer.read())
    finally:
        connection.close()
