"""Holds an object to the schema of its kind: unknown fields go, with a warning or an error; defaults come.

A body is decoded before anything else is checked: whether the object exists, and whether it has the name in the path.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.kinds.schema_causes import schema_causes
from ruleop.localcluster.objects.decoding import (
    DecodingError,
    decode,
    decode_metadata,
    in_body,
    strict_problem,
    unknown_field,
)
from ruleop.localcluster.objects.sharing import with_parts_of
from ruleop.merge.normalise import with_integers
from ruleop.schema.schema_findings import format_path
from ruleop.schema.structural import default, prune, unknown_fields

_OWNER: Final = {"apiVersion": "", "kind": "", "name": "", "uid": ""}  # fields that Go writes even if they are empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause, Rejected
    from ruleop.localcluster.kinds.served import Served


def decoded(
    served: Served,
    obj: Object,
    old: Object | None,
    field_validation: str,
    *,
    refuse: Callable[[DecodingError], Rejected] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The object as it is read from a request, without empty metadata, and warnings. Raises Rejected if it cannot be
    decoded: what `refuse` makes of the error."""
    refuse = refuse or partial(in_body, served.kind)
    try:
        found, unknown = _decoded_custom(served, obj, old) if served.is_custom else _decoded(served, obj, old)
    except DecodingError as error:
        raise refuse(error) from None
    found["metadata"] = _without_empty(found.get("metadata") or {})
    if field_validation == "Ignore":
        return found, []
    warnings = [unknown_field(path) for path in unknown]
    if warnings and field_validation == "Strict":
        raise refuse(DecodingError(strict_problem(warnings)))
    return found, warnings


def _without_empty(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata as Go writes them. A number of zero is a pointer's."""
    found = {name: value for name, value in metadata.items() if value or value == 0}
    if owners := found.get("ownerReferences"):
        found["ownerReferences"] = [each if _OWNER.keys() <= each.keys() else {**_OWNER, **each} for each in owners]
    return found


def checked(served: Served, obj: dict[str, Any], old: Object | None) -> tuple[dict[str, Any], list[Cause]]:
    """A custom resource with the defaults of its schema, and why it is invalid. Others have no schema."""
    if not served.is_custom:
        return obj, []
    found = with_parts_of(old, default(obj, served.schema))
    return found, schema_causes(found, served.schema, old)


def _decoded(served: Served, obj: Object, old: Object | None) -> tuple[dict[str, Any], list[str]]:
    found = decode(with_parts_of(old, dict(obj)), served.shape, old)
    return found.obj, list(found.unknown)


def _decoded_custom(served: Served, obj: Object, old: Object | None) -> tuple[dict[str, Any], list[str]]:
    metadata = decode_metadata(obj.get("metadata"), (old or {}).get("metadata"))
    whole = with_integers(dict(obj))
    found = prune({**whole, "metadata": metadata.obj}, served.schema)
    unknown = [f"metadata.{path}" for path in metadata.unknown]
    if len(found) != len(whole) or any(found[name] != whole[name] for name in found if name != "metadata"):
        unknown += [format_path(path) for path in unknown_fields(whole, served.schema)]
    return found, sorted(unknown)
