"""The object that a patch makes of an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonpatch

from ruleop.localcluster.errors import Rejected, bad_request, unsupported_media_type

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.kinds.served import Served


def patched(served: Served, obj: Object, media: str, patch: Any) -> dict[str, Any]:
    if media == "application/json-patch+json":
        try:
            found: dict[str, Any] = jsonpatch.apply_patch(obj, patch)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            raise Rejected(
                422, "Invalid", f"the server rejected our request due to an error in our request: {error}"
            ) from None
        return found
    if not isinstance(patch, dict):
        raise bad_request("the patch must be an object")
    if media == "application/merge-patch+json":
        found = _merged(obj, patch)
        assert isinstance(found, dict)
        return found
    raise unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        + ("" if served.is_custom else ", application/strategic-merge-patch+json")
    )


def _merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    found = dict(value) if isinstance(value, dict) else {}
    for name, each in patch.items():
        if each is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name), each)
    return found
