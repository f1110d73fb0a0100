"""The time that a client waits for the response to a request: `timeout=5s`, a duration as Go writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ruleop.kubernetes.go_durations import duration_parts
from ruleop.localcluster.http.message import Response
from ruleop.localcluster.status_errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST: Final = 60.0  # seconds: the server's own limit, which no request may exceed
TIMED_OUT: Final = Response(
    504,
    orjson.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": "Timeout: request did not complete within the allotted timeout",
            "reason": "Timeout",
            "details": {},
            "code": 504,
        }
    ),
    "text/plain; charset=utf-8",
)
"""The real server's response, which has no kind."""


def parse_timeout(query: Mapping[str, str]) -> float:
    """The seconds within which a request, other than a watch, is answered. Raises Rejected."""
    given = query.get("timeout")
    if not given:
        return LONGEST
    try:
        seconds = float(sum(duration_parts(given))) / 1e9
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(seconds, LONGEST) if seconds > 0 else LONGEST
