"""Validation of ReplicaSets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.validation.apps.workloads import validate_fixed_selector, validate_selector_and_template
from ruleop.core.validation.fields.numbers import validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError


def validate_replica_set(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new["spec"]
    yield from validate_nonnegative(spec, "replicas", "minReadySeconds")
    yield from validate_selector_and_template(spec, old)
    yield from validate_fixed_selector(new, old)
