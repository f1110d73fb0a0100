"""PodDisruptionBudgets, PriorityClasses, Leases, EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes
from ruleop.kubernetes.validation.addresses import validate_external_address
from ruleop.kubernetes.validation.field_errors import FieldError, forbidden_value, immutable_value, invalid_value
from ruleop.kubernetes.validation.rows import Rows, is_changed, sub_table
from ruleop.kubernetes.validation.rules import frozen, needed, on_update, placed, unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import At, Errors


def _bounds(spec: Any, at: At) -> Errors:
    words = "minAvailable and maxUnavailable cannot be both set"
    names = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
    shown = {f"{name[0].upper()}{name[1:]}": spec.get(name) for name in names}
    has_both = None not in (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return (invalid_value(at.field, shown, words),) if has_both else ()


BUDGET: Final[Rows] = {
    "spec": (
        _bounds,
        {
            "minAvailable maxUnavailable": "part",
            "selector": "selector",
            "unhealthyPodEvictionPolicy": "AlwaysAllow|IfHealthyBudget",
        },
    )
}
LEASE: Final[Rows] = {"spec": {"leaseDurationSeconds": "1..", "leaseTransitions": "0.."}}


def _fixed(new: Any, at: At) -> Iterator[FieldError]:
    for name in immutable_changes(new, at.old_root):
        if name == "value":
            yield forbidden_value("value", "may not be changed in an update.")
        else:
            yield immutable_value(name, new.get(name))


PRIORITY_CLASS: Final = on_update(_fixed)


def _addresses(addresses: Any, at: At) -> Iterator[FieldError]:
    """The addresses of an endpoint are of the type of their slice."""
    family = at.root.get("addressType")
    for index, each in enumerate(addresses if family in ("IPv4", "IPv6") else ()):
        errors = list(validate_external_address(f"{at.field}[{index}]", each))
        if (":" in each) != (family == "IPv6") and not any("must be a valid" in error.message for error in errors):
            yield invalid_value(at.field, each, f"must be an {family} address")
        yield from errors


ENDPOINT_SLICE: Final[Rows] = (
    frozen(),
    {
        "addressType": "needed |FQDN|IPv4|IPv6",
        "ports": unique("name", empty=True),
        "ports[]": {"name": "label", "protocol": "PROTOCOL", "appProtocol": "full-key"},
        "endpoints": sub_table(
            {
                "[].addresses": (needed("must contain at least 1 address"), placed(_addresses)),
                "[].hostname": "full-label",
            },
            when=is_changed,
        ),
    },
)
