"""The object that a patch makes of an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import bad_request, unsupported_media_type
from ruleop.localcluster.objects.patches import json_patch, merge_patch, strategic_merge_patch

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.kinds.served import Served

APPLY: Final = "application/apply-patch+yaml"
_JSON: Final = "application/json-patch+json"
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"


def patched(served: Served, obj: Object, media: str, patch: Any) -> Object:
    """Raises Rejected."""
    if media == _JSON:
        return json_patch(obj, patch)
    if media == _MERGE:
        return merge_patch(obj, patch)
    if media == _STRATEGIC and not served.is_custom:
        return strategic_merge_patch(obj, patch, served.shape)
    known = [_JSON, _MERGE, *([] if served.is_custom else [_STRATEGIC]), APPLY]
    raise unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(known)
    )


def configuration(patch: Any) -> dict[str, Any]:
    """The body of a server-side apply. Raises Rejected."""
    if not isinstance(patch, dict):
        raise bad_request("the body of an apply must be an object")
    return patch
