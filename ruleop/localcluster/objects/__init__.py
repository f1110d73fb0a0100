"""Pure functions over objects: field sets and their managers, server-side apply, patches, selectors, validation.

Objects are plain JSON and treated as frozen: each function returns a new one, which may share parts with its arguments.
Where the server's own messages reach a client, they are spelled as the real server spells them.
"""

from ruleop.localcluster.objects.decoding import (
    DecodingError,
    decode,
    decode_metadata,
    strict_problem,
    type_name,
    undecodable,
    unknown_field,
    validate_custom_resource,
)
from ruleop.localcluster.objects.patches import json_patch, merge_patch, strategic_merge_patch
from ruleop.localcluster.objects.server_side_apply import (
    Tracking,
    apply,
    ignored_fields,
    keep_unchanged,
    separate_entries,
    track_update,
    with_entries,
)
from ruleop.localcluster.objects.typed import NotTypedError, check_typed, zero_of

__all__ = [
    "DecodingError",
    "NotTypedError",
    "Tracking",
    "apply",
    "check_typed",
    "decode",
    "decode_metadata",
    "ignored_fields",
    "json_patch",
    "keep_unchanged",
    "merge_patch",
    "separate_entries",
    "strategic_merge_patch",
    "strict_problem",
    "track_update",
    "type_name",
    "undecodable",
    "unknown_field",
    "validate_custom_resource",
    "with_entries",
    "zero_of",
]
