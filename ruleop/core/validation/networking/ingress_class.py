"""Validation of IngressClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.schema.builtin.immutable_fields import immutable_changes
from ruleop.core.validation.field_errors import immutable_value, invalid_value, invalid_values, required, too_long
from ruleop.core.validation.fields.field_names import subdomain_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_LONGEST_CONTROLLER: Final = 250


def validate_ingress_class(new: Object, old: Object | None) -> list[FieldError]:
    """Validates an IngressClass."""
    controller = (new.get("spec") or {}).get("controller", "")
    if immutable_changes(new, old):
        return [immutable_value("spec.controller", controller)]
    return list(_validate_controller("spec.controller", controller))


def _validate_controller(field: str, controller: str) -> Iterator[FieldError]:
    if not controller:
        yield required(field)
        return
    if len(controller) > _LONGEST_CONTROLLER:
        yield too_long(field, _LONGEST_CONTROLLER)
    domain, _, path = controller.partition("/")
    if domain and path:
        yield from invalid_values(field, domain, subdomain_problems(domain))
    else:
        yield invalid_value(field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')
