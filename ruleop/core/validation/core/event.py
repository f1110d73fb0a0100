"""Validation of Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.validation.field_errors import invalid_value

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


def validate_event(new: Object, _old: Object | None) -> list[FieldError]:
    namespace = new["metadata"].get("namespace", "")
    concerned = (new.get("involvedObject") or new.get("regarding") or {}).get("namespace", "")
    if concerned == namespace or (not concerned and namespace == "default"):
        return []
    return [invalid_value("involvedObject.namespace", concerned, "does not match event.namespace")]
