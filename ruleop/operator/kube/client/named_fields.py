"""The fields that the API server names in the message of a response without causes: of an object that it cannot decode,
and of an apply that does not match the schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ruleop.core.errors import NAMED, Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_NAMED: Final = 16
_FORMS: Final = (
    re.compile(r'(?:unknown|duplicate) field "([^"\s]{1,253})"'),
    re.compile(r"Go struct field \w{1,100}\.([\w.]{1,253}) of type"),
    re.compile(r"(?:^|: )\s{0,8}(\.[A-Za-z][^\s:]{0,253}): ", re.MULTILINE),
)


def named_fields(message: str) -> tuple[Cause, ...]:
    return tuple(Cause(field, NAMED) for field in dict.fromkeys(_fields(message[:8192])))[:MAX_NAMED]


def _fields(message: str) -> Iterator[str]:
    for form in _FORMS:
        yield from form.findall(message)
