"""Validation of ConfigMaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.validation.core.secret import MAX_DATA, decoded_size, validate_immutable_data
from ruleop.core.validation.field_errors import invalid_value, invalid_values, too_long
from ruleop.core.validation.fields.field_names import config_key_problems

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


def validate_config_map(new: Object, old: Object | None) -> list[FieldError]:
    texts, binaries = new.get("data") or {}, new.get("binaryData") or {}
    errors = validate_immutable_data(new, old)
    for key in texts:
        errors += invalid_values(f"data[{key}]", key, config_key_problems(key))
        if key in binaries:
            errors.append(invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in binaries:
        errors += invalid_values(f"binaryData[{key}]", key, config_key_problems(key))
    size = sum(len(value.encode()) for value in texts.values()) + sum(map(decoded_size, binaries.values()))
    return [*errors, too_long("[]", MAX_DATA)] if size > MAX_DATA else errors
