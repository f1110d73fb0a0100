"""The messages about values that may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ruleop.authoring.checking.typing.types import Undefined

NO_SPEC: Final = (
    "the CRD does not require `spec`, so a custom resource without it fails: add `required: [spec]` to its schema"
)


def last_name(path: str) -> str:
    """The last field of a path."""
    return path.rpartition(".")[2].partition("[")[0]


def missing_message(undefined: Undefined, text: str, *, certain: bool) -> str:
    """`text`: the expression as written. `certain`: it never has a value."""
    path, reason = undefined.path, undefined.reason
    if reason == "omit":
        return "an `if` without `else` (or `omit`) can leave no value here, where one is needed: add an `else`"
    if reason == "empty":
        what = f"{path} may be empty" if path else "this list may be empty"
        return f"{what}, and {undefined.hint or 'this'} of an empty list has no value: add `default(...)`"
    if reason == "live":
        return f"{path} may not exist yet, and `live` does not wait: add `default(...)`"
    if reason == "undesired":
        return f"{path} has no value while `when` of the child is false: test it with `is defined`"
    if reason == "unserved":
        return f"{path} has no value where its kind is not served (it is optional): test it with `is defined`"
    base = path or text
    used = f", and {text} needs it" if text and path and text != path and text.startswith(path) else ""
    if certain:
        return f"{base or 'this value'} is not set here{used}"
    hint = f" ({undefined.hint})" if undefined.hint else " (it is optional in the CRD)"
    return f"{base or 'this value'} may be missing{hint}{used}: use `default(...)`, or test it with `is defined`"
