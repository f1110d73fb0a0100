"""The fields of Secrets that need protection where a template reads them, and the filters whose
results do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.kinds import LAST_APPLIED
from ruleop.language.secrets.secret_values import DATA_FIELDS
from ruleop.language.templates import Trait, filters_with

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECKSUMS: Final = filters_with(Trait.CHECKSUM)
_PUBLIC: Final = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
_NAMES: Final = frozenset({"name", "namespace", "uid"})  # of the metadata


def is_public_field(path: Sequence[str | None]) -> bool:
    """Whether a field of a Secret may be shown to everyone: not its data, nor its annotations as a whole."""
    if path[0] != "metadata":
        return path[0] in _PUBLIC
    if len(path) < 2 or path[1] is None:
        return False  # with the annotations
    return path[1] != "annotations" or (len(path) > 2 and path[2] not in (None, LAST_APPLIED))


def is_secret_field(path: Sequence[str | None]) -> bool:
    """Whether a field of a Secret needs protection: its data, but not the keys in a loop over it."""
    return not is_public_field(path) and not (path[0] in DATA_FIELDS and path[1:] == (None, "key"))


def is_name_field(path: Sequence[str | None]) -> bool:
    """Whether a field of a Secret is its type or a part of its identity."""
    return path[0] in _PUBLIC - {"metadata"} or (path[0] == "metadata" and len(path) > 1 and path[1] in _NAMES)
