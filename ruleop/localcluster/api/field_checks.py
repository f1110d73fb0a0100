"""Holds an object to the schema of its kind: unknown fields go, with a warning or an error; defaults come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.errors import Cause, bad_request, invalid
from ruleop.merge.normalise import with_integers
from ruleop.schema.schema_findings import format_path
from ruleop.schema.structural import default, prune, unknown_fields
from ruleop.schema.validation import validate

if TYPE_CHECKING:
    from ruleop.localcluster.kinds.served import Served


def checked(served: Served, obj: dict[str, Any], field_validation: str) -> tuple[dict[str, Any], list[str]]:
    """The object as it is stored, and warnings. Raises Rejected."""
    if served.is_custom:
        return _checked_custom(served, obj, field_validation)
    return obj, []


def _checked_custom(served: Served, obj: dict[str, Any], field_validation: str) -> tuple[dict[str, Any], list[str]]:
    warnings: list[str] = []
    if field_validation != "Ignore":
        warnings = [f'unknown field "{format_path(path)}"' for path in unknown_fields(obj, served.schema)]
        if warnings and field_validation == "Strict":
            kind = served.kind
            raise bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"strict decoding error: {', '.join(warnings)}"
            )
    found = default(prune(with_integers(obj), served.schema), served.schema)
    causes = [
        Cause("FieldValueInvalid", each.message, format_path(each.path)) for each in validate(found, served.schema)
    ]
    if causes:
        raise invalid(served.kind, found["metadata"]["name"], causes)
    return found, warnings
