"""What may be said of a write that the API server did not take.

Its messages quote the values that it refuses. A child that is a Secret, or holds data of one, may so carry a password into a condition that
everybody reads; of such a message only the request, the kind of failure and the path of the field are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.planning.observed import Failed, Failure

if TYPE_CHECKING:
    from ruleop.rules import Child

_REASONS = {
    Failure.FORBIDDEN: "Forbidden",
    Failure.EXISTS: "ErrResourceExists",
    Failure.INVALID: "ApplyFailed",
    Failure.IMMUTABLE: "ApplyFailed",
}
# The first complaint of an Invalid: what stands before it can hold names and no values.
_FIELD = re.compile(r"is invalid: \[?([A-Za-z][\w.\[\]\-/]{0,200}): (?:Invalid|Required|Unsupported|Duplicate|Forbidden|Too |Not )")


def reason_of(failure: Failure) -> str | None:
    """The reason that Ready gets; None where trying again is all there is to do."""
    return _REASONS.get(failure)


def told(child: Child, failed: Failed) -> str:
    """The message, as far as anybody may read it."""
    if not child.secret:
        return failed.message
    field = _FIELD.search(failed.message)
    what = f"{failed.request}: " if failed.request else ""
    return f"{what}the API server refuses it ({failed.failure.value}{f' at {field[1]}' if field else ''})"
