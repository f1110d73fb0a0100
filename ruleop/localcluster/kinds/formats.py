"""Formats of texts and numbers in fields. Each function returns the problems of a value; no problem: it is valid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.api.metadata_checks import (
    NOT_SUBDOMAIN,
    key_problems,
    label_causes,
    label_value_causes,
    path_segment_problems,
)
from ruleop.localcluster.errors import NOT_LABEL
from ruleop.localcluster.kinds.field_causes import forbidden_field, invalid_value, invalid_values, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PERCENT: Final = re.compile(r"[0-9]+%")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_NOT_WILDCARD: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NOT_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_NOT_CONFIG_KEY: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def subdomain_problems(text: str) -> Iterator[str]:
    if len(text) > 253:
        yield "must be no more than 253 characters"
    if not _SUBDOMAIN.fullmatch(text):
        yield NOT_SUBDOMAIN


def wildcard_problems(text: str) -> Iterator[str]:
    if len(text) > 253:
        yield "must be no more than 253 characters"
    if not (text.startswith("*.") and _SUBDOMAIN.fullmatch(text[2:])):
        yield _NOT_WILDCARD


def label_problems(text: str) -> Iterator[str]:
    if len(text) > 63:
        yield "must be no more than 63 characters"
    if not _LABEL.fullmatch(text):
        yield "must not contain dots" if _SUBDOMAIN.fullmatch(text) else NOT_LABEL


def port_name_problems(text: str) -> Iterator[str]:
    if len(text) > 15:
        yield "must be no more than 15 characters"
    if not _PORT_NAME.fullmatch(text):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", text):
        yield "must contain at least one letter (a-z)"
    if "--" in text:
        yield "must not contain consecutive hyphens"
    if text.startswith("-") or text.endswith("-"):
        yield "must not begin or end with a hyphen"


def port_problems(port: str | int) -> Iterator[str]:
    """Of the number or the name of a port."""
    if isinstance(port, str):
        yield from port_name_problems(port)
    elif not 1 <= port <= 65535:
        yield "must be between 1 and 65535, inclusive"


def config_key_problems(key: str) -> Iterator[str]:
    if len(key) > 253:
        yield "must be no more than 253 characters"
    if not _CONFIG_KEY.fullmatch(key):
        yield _NOT_CONFIG_KEY
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def number_or_percent_causes(field: str, value: str | int) -> Iterator[Cause]:
    if isinstance(value, int):
        if value < 0:
            yield invalid_value(field, value, "must be greater than or equal to 0")
    elif not _PERCENT.fullmatch(value):
        yield invalid_value(field, value, _NOT_PERCENT)
    elif int(value[:-1]) > 100:
        yield invalid_value(field, value, "must not be greater than 100%")


def qualified_name_causes(field: str, name: str) -> Iterator[Cause]:
    return invalid_values(field, name, key_problems(name))


def path_segment_causes(field: str, name: str) -> Iterator[Cause]:
    """Of a name that is required and becomes part of a path."""
    if not name:
        yield required(field)
    yield from invalid_values(field, name, path_segment_problems(name))


def selector_causes(field: str, selector: Object | None) -> Iterator[Cause]:
    """Of a label selector."""
    if selector is None:
        return
    yield from label_causes(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement_causes(f"{field}.matchExpressions[{index}]", each)


def _requirement_causes(field: str, requirement: Object) -> Iterator[Cause]:
    operator: Any = requirement.get("operator", "")
    values = requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{field}.values", detail)
    else:
        yield invalid_value(f"{field}.operator", operator, "not a valid selector operator")
    yield from qualified_name_causes(f"{field}.key", requirement.get("key", ""))
    for index, value in enumerate(values):
        yield from label_value_causes(value, f"{field}.values[{index}]")
