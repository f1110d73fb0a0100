"""The names that the API server accepts: of objects, namespaces, API groups and labels. Only this module defines them.

The patterns are strings, for use in larger patterns and in JSON Schema. The functions also check the length.
"""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A label of a DNS name (RFC 1123), at most 63 characters, such as a namespace."""
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
"""DNS labels separated by dots, at most 253 characters: the names of most objects, and API groups."""
QUALIFIED: Final = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
"""The key of a label without its prefix, and a label's value."""
PREFIXED: Final = rf"({SUBDOMAIN}/)?{QUALIFIED}"
"""The key of a label, or a condition's type."""
SUBDOMAIN_IN_WORDS: Final = (
    "lowercase letters, digits, `-` and `.`, each part between dots with a letter or digit at both ends, at most 253"
)

RESERVED_PREFIX: Final = "ruleop.dev/"
"""The prefix of all labels, annotations and finalizers of ruleop's own. Rules cannot set a key that starts with it."""
PART_OF_LABEL: Final = f"{RESERVED_PREFIX}part-of"
"""The label that tells whose child an object is. Watches and stores select by it."""

MAX_LABEL: Final = 63
MAX_NAME: Final = 253

_LABEL = re.compile(LABEL, re.ASCII)
_SUBDOMAIN = re.compile(SUBDOMAIN, re.ASCII)
_FREE_GROUPS = frozenset({"rbac.authorization.k8s.io"})  # a Role's name may be any segment of a URL's path
_PATH_SEGMENT = re.compile(r"[^/%]+")


def is_label(text: str, *, most: int = MAX_LABEL) -> bool:
    return len(text) <= most and _LABEL.fullmatch(text) is not None


def is_letter_label(text: str) -> bool:
    """Whether it is a label of RFC 1035, which begins with a letter: a version, or the plural of a kind."""
    return is_label(text) and text[0].isalpha()


def is_subdomain(text: str) -> bool:
    return len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


def is_object_name(group: str, text: str) -> bool:
    """Whether an object of this API group can have this name. The API server has stricter rules for some kinds."""
    return _is_path_segment(text) if group in _FREE_GROUPS else is_subdomain(text)


def _is_path_segment(text: str) -> bool:
    return len(text) <= MAX_NAME and text not in {".", ".."} and _PATH_SEGMENT.fullmatch(text) is not None
