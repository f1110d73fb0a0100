"""Errors of new objects of built-in kinds, beyond those that their schemas state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.builtin.completion import as_stored, complete
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation.validators import find_validator

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.field_errors import FieldError

_UID: Final = "00000000-0000-0000-0000-000000000000"  # a Job's labels have its uid


def creation_errors(obj: Object) -> list[FieldError]:
    """The errors of an object whose fields have the right types, which schemas do not state for its name; none of a
    kind that is not known."""
    kind = Kind.of(obj)
    shape = typed_shape(kind)
    if shape is None or kind.kind == "Event":  # an Event has the namespace of another object
        return []
    if not isinstance(obj["metadata"].get("name"), str):
        return []
    validator = find_validator(kind.group, kind.kind)
    metadata = {"namespace": "default", "uid": _UID, **obj["metadata"]}
    new = as_stored(validator.default(complete({**obj, "metadata": metadata}, shape)), shape)
    return list(validator.validate(validator.prepare(new), None))
