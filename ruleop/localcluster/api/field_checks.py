"""Holds an object to the schema of its kind: unknown fields go, with a warning or an error; defaults come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.kinds.schema_causes import schema_causes
from ruleop.localcluster.objects.decoding import DecodingError, decode, in_body, strict_problem, unknown_field
from ruleop.localcluster.objects.sharing import with_parts_of
from ruleop.merge.normalise import with_integers
from ruleop.schema.schema_findings import format_path
from ruleop.schema.structural import default, prune, unknown_fields
from ruleop.schema.table import object_meta

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause, Rejected
    from ruleop.localcluster.kinds.served import Served


def checked(
    served: Served,
    obj: dict[str, Any],
    old: Object | None,
    field_validation: str,
    *,
    dropped: Object,
    refuse: Callable[[str], Rejected] | None = None,
) -> tuple[dict[str, Any], list[str], list[Cause]]:
    """The object as it is stored, warnings, and why it is invalid. `dropped` is what the request has in vain.
    Raises Rejected if it cannot be decoded: what `refuse` makes of the problem."""
    refuse = refuse or (lambda problem: in_body(served.kind, problem))
    found, unknown = _decoded(served, obj, refuse, old)
    if dropped and field_validation != "Ignore":
        unknown = sorted([*unknown, *_decoded(served, {"metadata": {}, **dropped}, refuse, None)[1]])
    warnings = [unknown_field(path) for path in unknown] if field_validation != "Ignore" else []
    if warnings and field_validation == "Strict":
        raise refuse(strict_problem(warnings))
    if not served.is_custom:
        return found, warnings, []
    found = with_parts_of(old, default(found, served.schema))
    return found, warnings, schema_causes(found, served.schema, old)


def _decoded(
    served: Served, obj: dict[str, Any], refuse: Callable[[str], Rejected], old: Object | None
) -> tuple[dict[str, Any], list[str]]:
    if served.is_custom:
        return _decoded_custom(served, obj)
    try:
        decoded = decode(with_parts_of(old, obj), served.shape, old)
    except DecodingError as error:
        raise refuse(str(error)) from None
    return decoded.obj, list(decoded.unknown)


def _decoded_custom(served: Served, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    declared, metadata = object_meta().fields, obj["metadata"]
    unknown = [f"metadata.{name}" for name in metadata if name not in declared]
    if unknown:
        obj = {**obj, "metadata": {name: value for name, value in metadata.items() if name in declared}}
    whole = with_integers(obj)
    found = prune(whole, served.schema)
    if found != whole:
        unknown += [format_path(path) for path in unknown_fields(whole, served.schema)]
    return found, sorted(unknown)
