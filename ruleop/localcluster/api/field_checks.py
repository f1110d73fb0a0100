"""Holds an object to the schema of its kind: unknown fields go, with a warning or an error; defaults come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.errors import Cause, Rejected, invalid
from ruleop.localcluster.objects.decoding import DecodingError, decode, in_body, strict_problem, unknown_field
from ruleop.merge.normalise import with_integers
from ruleop.schema.schema_findings import format_path
from ruleop.schema.structural import default, prune, unknown_fields
from ruleop.schema.validation import validate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.localcluster.kinds.served import Served


def checked(
    served: Served, obj: dict[str, Any], field_validation: str, refuse: Callable[[str], Rejected] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The object as it is stored, and warnings. Raises Rejected: for a problem of decoding, what `refuse` makes of
    it."""
    refuse = refuse or (lambda problem: in_body(served.kind, problem))
    found, unknown = _decoded(served, obj, refuse)
    warnings = [unknown_field(path) for path in unknown] if field_validation != "Ignore" else []
    if warnings and field_validation == "Strict":
        raise refuse(strict_problem(warnings))
    if served.is_custom:
        found = default(found, served.schema)
        causes = [
            Cause("FieldValueInvalid", each.message, format_path(each.path)) for each in validate(found, served.schema)
        ]
        if causes:
            raise invalid(served.kind, found["metadata"]["name"], causes)
    return found, warnings


def _decoded(
    served: Served, obj: dict[str, Any], refuse: Callable[[str], Rejected]
) -> tuple[dict[str, Any], list[str]]:
    if served.is_custom:
        unknown = [format_path(path) for path in unknown_fields(obj, served.schema)]
        return prune(with_integers(obj), served.schema), unknown
    try:
        decoded = decode(obj, served.shape)
    except DecodingError as error:
        raise refuse(str(error)) from None
    return decoded.obj, list(decoded.unknown)
