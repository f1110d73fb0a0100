"""`'%05d' % n`: the filter `format` and the operator `%` on text, bounded because a width may be any number."""

from __future__ import annotations

import re
from typing import Any

from ruleop.core.templating.values.cost import MAX_INDENT, METER, width
from ruleop.core.templating.values.data import json_number, scalar_text
from ruleop.core.templating.values.faults import Fault

# Possessive, because backtracking on a hostile text could take hours. A name in brackets cannot contain brackets.
_DIRECTIVE = re.compile(
    r"%(?:(?:\((?P<name>[^()]*+)\))?[-+ #0]*+(?P<width>[0-9]*+)(?:\.(?P<precision>[0-9]*+))?(?P<kind>[a-zA-Z%]))?+"
)


def printf(pattern: str, *args: Any, **named: Any) -> str:
    arguments = [_argument(value) for value in args]
    named_arguments = {key: _argument(value) for key, value in named.items()}
    if re.search(r"%[^a-zA-Z%*]*+\*", pattern):
        raise Fault("format: the width * is not allowed")
    length = len(pattern) + sum(len(value) for value in arguments if isinstance(value, str))
    for found in _DIRECTIVE.finditer(pattern):
        METER.spend(1)
        if found["kind"] is None:
            raise Fault("format: the values do not match the directives in the text")
        for number in (found["width"], found["precision"]):
            width((number or "0")[:6], "a width or precision")
        value = named_arguments.get(found["name"] or "")
        length += len(value) if isinstance(value, str) else 2 * MAX_INDENT
    METER.text(length)
    try:
        return pattern % (named_arguments or tuple(arguments))
    except (TypeError, ValueError, KeyError, OverflowError):
        raise Fault("format: the values do not match the directives in the text") from None


def _argument(value: Any) -> Any:
    if hasattr(value, "as_json"):
        value = value.as_json()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return json_number(value)
    return scalar_text(value)
