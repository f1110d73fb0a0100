"""Holds an object to the schema of its kind: unknown fields go, with a warning or an error; defaults come.

A body is decoded before anything else is checked: whether the object exists, and whether it has the name in the path.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.core.merge.server.normalise import with_integers
from ruleop.core.schema.crd.schema_findings import format_path
from ruleop.core.schema.crd.structural import default, prune, unknown_fields
from ruleop.core.validation.apiextensions.cel_rules import validate_rules
from ruleop.core.validation.apiextensions.custom_resources import validate_custom_resource
from ruleop.localcluster.api.subresources.scale import validate_scale
from ruleop.localcluster.objects.decoding import (
    DecodingError,
    decode,
    decode_metadata,
    in_body,
    strict_problem,
    unknown_field,
)
from ruleop.localcluster.objects.sharing import with_parts_of

_OWNER: Final = {"apiVersion": "", "kind": "", "name": "", "uid": ""}  # fields that Go writes even if they are empty

_REPEATED: Final = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)
_AFTER_PATCH: Final = " after mutating admission happens"

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError
    from ruleop.localcluster.api.requests.write_options import WriteOptions
    from ruleop.localcluster.kinds.served import Served


def decoded(served: Served, obj: Object, old: Object | None, options: WriteOptions) -> tuple[dict[str, Any], list[str]]:
    """The object as it is read from a request, without empty metadata, and warnings. Raises Rejected if it cannot be
    decoded."""
    refuse = options.refuse or partial(in_body, served.kind)
    try:
        found, unknown = _decoded(served, obj, old)
    except DecodingError as error:
        is_sorted = options.is_patch or served.is_custom
        raise refuse(_first_sorted(served, obj, error) if is_sorted else error) from None
    warnings = [*options.problems, *map(unknown_field, unknown)] if options.field_validation != "Ignore" else []
    if warnings and options.field_validation == "Strict":
        raise refuse(DecodingError(strict_problem(warnings)))
    metadata = found["metadata"] = _without_empty(found.get("metadata") or {}, served)
    owners = metadata.get("ownerReferences") or []
    if len(owners) > 1:
        metadata["ownerReferences"], repeated = _unique(owners)
        if repeated:
            warnings.append(_REPEATED.format(when=_AFTER_PATCH if options.is_patch else "", uids=", ".join(repeated)))
    return found, warnings


def _first_sorted(served: Served, obj: Object, error: DecodingError) -> DecodingError:
    """The problem that is found first in an object whose fields are sorted, as those of a patched object and those of a
    custom resource are."""
    try:
        _decoded(served, orjson.loads(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)), None)
    except DecodingError as first:
        return first
    return error


def _unique(owners: list[Object]) -> tuple[list[Object], list[str]]:
    """Owners without repeated ones, and the uids of these."""
    kept: list[Object] = []
    repeated: list[str] = []
    for each in owners:
        if each in kept:
            repeated.append(each["uid"])
        else:
            kept.append(each)
    return kept, repeated


def _without_empty(metadata: dict[str, Any], served: Served) -> dict[str, Any]:
    """Metadata as Go writes them. A number of zero is a pointer's. An empty list of managers resets those of a built-in
    kind."""
    kept = "" if served.is_custom else "managedFields"
    found = {name: value for name, value in metadata.items() if value or value == 0 or name == kept}
    if owners := found.get("ownerReferences"):
        found["ownerReferences"] = [each if _OWNER.keys() <= each.keys() else {**_OWNER, **each} for each in owners]
    return found


def checked(served: Served, obj: dict[str, Any], old: Object | None) -> tuple[dict[str, Any], list[FieldError]]:
    """A custom resource with the defaults of its schema, and why it is invalid. Others have no schema."""
    if not served.is_custom:
        return obj, []
    found = with_parts_of(old, default(obj, served.schema))
    errors = [*validate_custom_resource(found, served.schema, old), *validate_scale(served, found)]
    return found, [*errors, *validate_rules(found, served.schema, old, errors)]


def _decoded(served: Served, obj: Object, old: Object | None) -> tuple[dict[str, Any], list[str]]:
    if served.is_custom:
        return _decoded_custom(served, obj, old)
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
