"""The object that a patch makes of an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.core.validation.fields.go_text import go_text
from ruleop.localcluster.objects.decoding import in_patch
from ruleop.localcluster.objects.patches import json_patch, merge_patch, strategic_merge_patch
from ruleop.localcluster.status_errors import bad_request, unsupported_media_type

if TYPE_CHECKING:
    from ruleop.core.kinds import Kind, Object
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.objects.decoding import DecodingError
    from ruleop.localcluster.status_errors import Rejected

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
    raise unsupported_media_type(", ".join(known))


def refused(media: str, patch: Any, new: Object, error: DecodingError) -> Rejected:
    """The response to a patch whose result cannot be decoded."""
    if media != _STRATEGIC:
        return in_patch(orjson.dumps(new, option=orjson.OPT_SORT_KEYS).decode(), str(error))
    return in_patch(go_text(patch), error.conversion)


def configuration(patch: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The body of a server-side apply. Raises Rejected."""
    version, name = str(patch.get("apiVersion") or ""), str(patch.get("kind") or "")
    if kind.kind != name or kind.api_version != version:
        raise bad_request(f"invalid object type: {version if '/' in version else f'/{version}'}, Kind={name}")
    return patch
