"""Validation of Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.validation.field_errors import invalid_value
from ruleop.core.validation.fields.numbers import validate_nonnegative

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


def validate_lease(new: Object, _old: Object | None) -> list[FieldError]:
    spec = new.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    below = list(validate_nonnegative(spec, "leaseTransitions"))
    if seconds is None or seconds > 0:
        return below
    return [invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0"), *below]
