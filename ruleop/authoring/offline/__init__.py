"""Files that offline commands use instead of an API server."""

from ruleop.authoring.offline.documents import SUFFIXES, Document, documents_in
from ruleop.authoring.offline.stand_in import (
    EPOCH,
    NAMESPACE,
    OfflineKinds,
    as_live,
    dropped,
    identified,
    named_like,
    prepare,
    rejections,
    uid_of,
    undecided,
    unevaluated,
    with_defaults,
    with_owner_uids,
)

__all__ = [
    "EPOCH",
    "NAMESPACE",
    "SUFFIXES",
    "Document",
    "OfflineKinds",
    "as_live",
    "documents_in",
    "dropped",
    "identified",
    "named_like",
    "prepare",
    "rejections",
    "uid_of",
    "undecided",
    "unevaluated",
    "with_defaults",
    "with_owner_uids",
]
