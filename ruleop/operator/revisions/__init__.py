"""Revisions of the rules: which rules were in force, since when, and their files.

They are kept in a ConfigMap, so that a leader knows the rules of the one before it, also after a restart.
"""

from ruleop.operator.revisions.revision_store import (
    Revision,
    Revisions,
    RevisionStore,
    decode,
    files_of_revision,
    revisions_key,
    unpack,
)

__all__ = [
    "Revision",
    "RevisionStore",
    "Revisions",
    "decode",
    "files_of_revision",
    "revisions_key",
    "unpack",
]
