"""Numbers in the specs of many kinds: those that may not be negative, ports, and percentages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.validation.field_errors import invalid_value, invalid_values
from ruleop.core.validation.fields.field_names import port_name_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_PERCENT: Final = re.compile(r"[0-9]+%")
_NOT_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_BELOW_ZERO: Final = "must be greater than or equal to 0"


def validate_nonnegative(spec: Object, *names: str, field: str = "spec") -> Iterator[FieldError]:
    for name in names:
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid_value(f"{field}.{name}", value, _BELOW_ZERO)


def validate_port(port: Any, field: str) -> Iterator[FieldError]:
    if isinstance(port, int) and not 1 <= port <= 65535:
        yield invalid_value(field, port, "must be between 1 and 65535, inclusive")


def validate_port_or_name(port: str | int, field: str) -> Iterator[FieldError]:
    """Validates the number of a port, or the name of a container's port."""
    if isinstance(port, str):
        yield from invalid_values(field, port, port_name_problems(port))
    else:
        yield from validate_port(port, field)


def validate_int_or_percent(value: Any, field: str, *, at_most_all: bool = False) -> Iterator[FieldError]:
    """Validates a number or a percentage, such as `maxSurge`."""
    if isinstance(value, int) and value < 0:
        yield invalid_value(field, value, _BELOW_ZERO)
    elif isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield invalid_value(field, value, _NOT_PERCENT)
    elif at_most_all:
        yield from validate_at_most_all(value, field)


def validate_at_most_all(value: Any, field: str) -> Iterator[FieldError]:
    """Validates a percentage of a whole."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield invalid_value(field, value, "must not be greater than 100%")
