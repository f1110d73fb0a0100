"""The object that a patch makes of an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jsonpatch

from ruleop.localcluster.errors import Rejected, bad_request, unsupported_media_type

if TYPE_CHECKING:
    from ruleop.kinds import Object

_REJECTED: Final = "the server rejected our request due to an error in our request"


def patched(obj: Object, media: str, patch: Any) -> dict[str, Any]:
    if media == "application/json-patch+json":
        try:
            found: dict[str, Any] = jsonpatch.apply_patch(obj, patch)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
            raise Rejected(422, "Invalid", _REJECTED, {}) from None
        return found
    if not isinstance(patch, dict):
        raise bad_request("the patch must be an object")
    if media == "application/merge-patch+json":
        found = _merged(obj, patch)
        assert isinstance(found, dict)
        return found
    raise unsupported_media_type("application/json-patch+json, application/merge-patch+json")


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
