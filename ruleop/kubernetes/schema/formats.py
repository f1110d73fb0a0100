"""The formats and patterns of strings in a schema that the API server checks.

A `pattern` is a regular expression in RE2 syntax, which the API server's engine (Go's) also has. The time of a match is
linear in the text, whatever the pattern.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import functools
import ipaddress
import re
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class InvalidPatternError(ValueError):
    """A regular expression that the API server would reject. The message is the reason."""


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Returns a function that tests whether a text contains a match. Raises InvalidPatternError."""
    search = _compiled(pattern).search

    def matches(text: str) -> bool:
        try:
            return search(text) is not None
        except UnicodeEncodeError:  # half of a surrogate pair, which the API server rejects as well
            return False

    return matches


def find_spans(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the matches begin and end, empty ones too. Raises InvalidPatternError."""
    return (match.span() for match in _compiled(pattern).finditer(text))


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidPatternError(_reason(error)) from error


def _reason(error: re2.error) -> str:
    reason = error.args[0] if error.args else b""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


# Python's own parser also takes 20260228 and 2026-W01-1.
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)\Z",
    re.ASCII,
)
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z", re.IGNORECASE | re.ASCII)


def _is_date(text: str) -> bool:
    try:
        return _DATE.match(text) is not None and bool(dt.date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    match = _DATE_TIME.match(text)
    return (
        match is not None
        and _is_date(text[:10])
        and match["hour"] <= "23"
        and match["minute"] <= "59"
        and match["second"] <= "59"
    )


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return False


def _is_parsed_by(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _parse_cidr(text: str) -> object:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_interface(text)


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "datetime": _is_date_time,
    "date": _is_date,
    "byte": _is_base64,
    "ipv4": _is_parsed_by(ipaddress.IPv4Address),
    "ipv6": _is_parsed_by(ipaddress.IPv6Address),
    "cidr": _is_parsed_by(_parse_cidr),
    "uuid": lambda text: _UUID.match(text) is not None,
}
"""The checks of formats by their names without dashes, as the server compares them. Other formats are not checked."""
