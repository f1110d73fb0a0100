"""What may be said of a write that the API server did not take.

Its messages quote the values that it refuses. A child that is a Secret, or holds data of one, may so carry a password into a condition that
everybody reads; of such a message only the request, the kind of failure and the path of the field are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.planning.differences import NOTHING, Difference, Value, differences, flow, shortened
from ruleop.planning.marks import APPLIED
from ruleop.planning.masking import masked_pair
from ruleop.planning.outcome import Failed, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kinds import Object
    from ruleop.rules import Child
    from ruleop.schema.shape import Shape

_REASONS = {
    Failure.FORBIDDEN: "Forbidden",
    Failure.EXISTS: "ErrResourceExists",
    Failure.INVALID: "ApplyFailed",
    Failure.IMMUTABLE: "ApplyFailed",
}
# The first complaint of an Invalid: what stands before it can hold names and no values.
_FIELD = re.compile(r"is invalid: \[?([A-Za-z][\w.\[\]\-/]{0,200}): (?:Invalid|Required|Unsupported|Duplicate|Forbidden|Too |Not )")
_FIELDS = re.compile(r"(?:is invalid: \[?|, )([A-Za-z][\w.\[\]\-/]{0,200}): (?:Invalid|Forbidden)")
_EXCEPT = re.compile(r"fields other than ((?:[^\n](?! are forbidden))*)")
_QUOTED = re.compile(r"'([A-Za-z]\w*)'")
_POSITION = re.compile(r"\[[^\]]*\]")
MOST_CHANGES, WIDEST = 4, 40  # in one message: the changes of a refused write, and the characters of a value


def reason_of(failure: Failure) -> str | None:
    """The reason that Ready gets; None where trying again is all there is to do."""
    return _REASONS.get(failure)


def told(child: Child, failed: Failed) -> str:
    """The message, as far as anybody may read it."""
    if not child.secret:
        return failed.message
    field = _FIELD.search(failed.message)
    what = f"{failed.request}: " if failed.request else ""
    return f"{what}rejected by the API server ({failed.failure.value}{f' at {field[1]}' if field else ''})"


def refused_changes(live: Object, merged: Object, shape: Shape, failed: Failed) -> tuple[Difference, ...]:
    """Which of the changes of a write the server meant when it called a field immutable: those below the fields that it names, as far as it
    names any, without those that it excepts. Values of a Secret are masked."""
    mark = f"metadata.annotations['{APPLIED}']"
    found = [each for each in differences(*masked_pair(live, merged), shape) if each.path != mark]
    named = [_POSITION.sub("", field) for field in _FIELDS.findall(failed.message)]
    allowed = {name for text in _EXCEPT.findall(failed.message) for name in _QUOTED.findall(text)}
    meant = [each for each in found if any(_is_below(each.path, field, allowed) for field in named)]
    return tuple(meant or [each for each in found if not each.path.startswith("metadata")] or found)


def _is_below(path: str, field: str, allowed: set[str]) -> bool:
    names = _POSITION.sub("", path).split(".")
    outer = field.split(".")
    return names[: len(outer)] == outer and not (len(names) > len(outer) and names[len(outer)] in allowed)


def changes_in_words(changes: Sequence[Difference], child: Child) -> str:
    """The changes as the end of a message; of a child that knows Secrets, their paths only."""
    if not changes:
        return ""
    said = [
        each.path if child.secret else f"{each.path}: {_value(each.before)} \N{RIGHTWARDS ARROW} {_value(each.after)}" for each in changes
    ]
    more = f" and {len(said) - MOST_CHANGES} more" if len(said) > MOST_CHANGES else ""
    return f"; rejected change: {', '.join(said[:MOST_CHANGES])}{more}"


def _value(value: Value) -> str:
    return "(absent)" if value is NOTHING else shortened(flow(value), WIDEST)
