"""What the API server accepts as a name: of an object, a namespace, an API group, a label. The one place where these rules stand.

The patterns are text, for larger patterns and for JSON Schema. They bound no length; the functions do.
"""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A part of a DNS name (RFC 1123), at most 63 characters: a namespace, for one."""
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
"""Labels with dots between them, at most 253 characters: what most objects may be called, and API groups."""
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
_FREE_GROUPS = frozenset({"rbac.authorization.k8s.io"})  # a Role's name is anything that can stand between two slashes of a URL
_PATH_SEGMENT = re.compile(r"[^/%]+")


def is_label(text: str, *, most: int = MAX_LABEL) -> bool:
    return len(text) <= most and _LABEL.fullmatch(text) is not None


def is_letter_label(text: str) -> bool:
    """As RFC 1035 has it, with a letter first: a version, the plural of a kind."""
    return is_label(text) and text[0].isalpha()


def is_subdomain(text: str) -> bool:
    return len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


def is_object_name(group: str, text: str) -> bool:
    """Whether an object of this API group can have this name. Some kinds have stricter rules, which only the API server knows."""
    return _is_path_segment(text) if group in _FREE_GROUPS else is_subdomain(text)


def _is_path_segment(text: str) -> bool:
    return len(text) <= MAX_NAME and text not in {".", ".."} and _PATH_SEGMENT.fullmatch(text) is not None
