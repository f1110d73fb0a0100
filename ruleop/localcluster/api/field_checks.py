"""Holds an object to the schema of its kind: unknown fields go, with a warning or an error; defaults come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.errors import bad_request
from ruleop.localcluster.kinds.schema_causes import schema_causes
from ruleop.merge.normalise import with_integers
from ruleop.schema.schema_findings import format_path
from ruleop.schema.structural import default, prune, unknown_fields
from ruleop.schema.table import object_meta

if TYPE_CHECKING:
    from ruleop.localcluster.errors import Cause
    from ruleop.localcluster.kinds.served import Served


def checked(
    served: Served, obj: dict[str, Any], field_validation: str
) -> tuple[dict[str, Any], list[str], list[Cause]]:
    """The object as it is stored, warnings, and why it is invalid. Raises Rejected if it cannot be decoded."""
    if served.is_custom:
        return _checked_custom(served, obj, field_validation)
    return obj, [], []


def _checked_custom(
    served: Served, obj: dict[str, Any], field_validation: str
) -> tuple[dict[str, Any], list[str], list[Cause]]:
    warnings: list[str] = []
    if field_validation != "Ignore":
        unknown = [format_path(path) for path in unknown_fields(obj, served.schema)]
        unknown += [f"metadata.{name}" for name in obj["metadata"] if name not in object_meta().fields]
        warnings = [f'unknown field "{path}"' for path in sorted(unknown)]
        if warnings and field_validation == "Strict":
            kind = served.kind
            raise bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"strict decoding error: {', '.join(warnings)}"
            )
    if any(name not in object_meta().fields for name in obj["metadata"]):
        known = {name: value for name, value in obj["metadata"].items() if name in object_meta().fields}
        obj = {**obj, "metadata": known}
    found = default(prune(with_integers(obj), served.schema), served.schema)
    return found, warnings, schema_causes(found, served.schema)
