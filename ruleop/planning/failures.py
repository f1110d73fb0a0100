"""What may be said of a write that the API server did not take.

Its messages quote the values that it refuses. A child that is a Secret, or reads one, may so carry a password into a condition that
everybody reads; of such a message only the request, the kind of failure and the path of the field are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.planning.observed import Failed, Failure

if TYPE_CHECKING:
    from ruleop.rules import Child, Rule

_REASONS = {
    Failure.FORBIDDEN: "Forbidden",
    Failure.EXISTS: "ErrResourceExists",
    Failure.INVALID: "ApplyFailed",
    Failure.IMMUTABLE: "ApplyFailed",
}
# The first complaint of an Invalid: what stands before it can hold names and no values.
_FIELD = re.compile(r"is invalid: \[?([A-Za-z][\w.\[\]\-/]{0,200}): (?:Invalid|Required|Unsupported|Duplicate|Forbidden|Too |Not )")
_SECRET = ("", "Secret")


def reason_of(failure: Failure) -> str | None:
    """The reason that Ready gets; None where trying again is all there is to do."""
    return _REASONS.get(failure)


def told(rule: Rule, child: Child, failed: Failed) -> str:
    """The message, as far as anybody may read it."""
    if not _knows_secrets(rule, child, set()):
        return failed.message
    field = _FIELD.search(failed.message)
    what = f"{failed.request}: " if failed.request else ""
    return f"{what}the API server refuses it ({failed.failure.value}{f' at {field[1]}' if field else ''})"


def _knows_secrets(rule: Rule, child: Child, seen: set[str]) -> bool:
    """Whether the child is a Secret, reads one, or reads what reads one."""
    if child.id in seen:
        return False
    seen.add(child.id)
    children = {**rule.children, **rule.finalize}
    if any(kind.versionless == _SECRET for kind in child.kinds):
        return True
    if any(rule.observe[id_].kind.versionless == _SECRET for id_ in child.reads if id_ in rule.observe):
        return True
    return any(_knows_secrets(rule, children[id_], seen) for id_ in sorted(child.reads) if id_ in children)
