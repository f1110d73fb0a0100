"""Validation of PriorityClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.schema.builtin.immutable_fields import immutable_changes
from ruleop.core.validation.field_errors import forbidden_value, immutable_value

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


def validate_priority_class(new: Object, old: Object | None) -> list[FieldError]:
    fixed = forbidden_value("value", "may not be changed in an update.")
    changes = immutable_changes(new, old)
    return [fixed if name == "value" else immutable_value(name, new.get(name)) for name in changes]
