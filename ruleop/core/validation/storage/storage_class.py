"""Validation of StorageClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.schema.builtin.immutable_fields import immutable_changes
from ruleop.core.validation.field_errors import forbidden_value

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


def validate_storage_class(new: Object, old: Object | None) -> list[FieldError]:
    return [forbidden_value(name, f"updates to {name} are forbidden.") for name in immutable_changes(new, old)]
