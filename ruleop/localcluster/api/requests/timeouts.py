"""The time that a client waits for the response to a request: `timeout=5s`, a duration as Go writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.localcluster.http.message import Response
from ruleop.localcluster.status_errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST: Final = 60.0  # seconds: the server's own limit, which no request may exceed
LONGEST_DURATION: Final = 2**63 / 1e9  # a duration is a number of nanoseconds in 64 bits

_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)([^\d.]*)")
_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # the micro sign
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}

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
        seconds = _seconds(given)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(seconds, LONGEST) if seconds > 0 else LONGEST


def _seconds(text: str) -> float:
    """Raises ValueError with the message of Go's `time.ParseDuration`."""
    shown = orjson.dumps(text).decode()
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, position = 0.0, 0
    while position < len(rest) or not rest:
        part = _PART.match(rest, position)
        if part is None:
            raise ValueError(f"time: invalid duration {shown}")
        number, unit = part.groups()
        if not unit:
            raise ValueError(f"time: missing unit in duration {shown}")
        if unit not in _SECONDS:
            raise ValueError(f"time: unknown unit {orjson.dumps(unit).decode()} in duration {shown}")
        total += float(number) * _SECONDS[unit]
        if total >= LONGEST_DURATION:
            raise ValueError(f"time: invalid duration {shown}")
        position = part.end()
    return sign * total
