"""The names that the API server accepts: of objects, namespaces, API groups and labels. Only this module defines them.

The patterns are strings, for use in larger patterns and in JSON Schema. The functions also check the length.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
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

LABEL_IN_WORDS: Final = "up to 63 lowercase letters, digits and `-`"
VALUE_IN_WORDS: Final = "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
KEY_IN_WORDS: Final = f"{VALUE_IN_WORDS}, perhaps after a domain and `/`"

LABEL_KINDS: Final = frozenset({("", "Namespace"), ("", "Service"), ("apps", "StatefulSet")})
"""Kinds (group and kind) whose names are single labels."""
LONGEST_CRON_JOB: Final = 52
"""Characters of the name of a CronJob: those of its Jobs have eleven more."""

RESERVED_PREFIX: Final = "ruleop.dev/"
"""The prefix of all labels, annotations and finalizers of ruleop's own. Rules cannot set a key that starts with it."""
PART_OF_LABEL: Final = f"{RESERVED_PREFIX}part-of"
"""The label that tells whose child an object is. Watches and stores select by it."""

BUCKET_LABEL: Final = f"{RESERVED_PREFIX}bucket"
"""The label of children by which each of several processes watches its own (`ruleop.kubernetes.buckets`)."""
OPERATOR_LABEL: Final = f"{RESERVED_PREFIX}operator"
"""The label of a Lease: the name of the operator whose process holds it."""
EPOCH: Final = f"{RESERVED_PREFIX}epoch"
SELECTOR: Final = f"{RESERVED_PREFIX}selector"
SINCE: Final = f"{RESERVED_PREFIX}since"
"""The annotations of a Lease that tell which custom resources its holder reconciles, and at which resourceVersion it
acquired the Lease."""

PATCH_MANAGER: Final = "ruleop:"
"""The prefix of the field managers by which children set fields of objects that belong to somebody else. Stores keep
what managedFields say about these managers."""

DEFAULT_OPERATOR: Final = "ruleop"
"""The operator's name without `name` in ruleop.yaml and without `--name`."""
STATUS_MANAGER: Final = "ruleop"
"""The field manager of the status, of the operator with the default name; others add theirs."""
MOST_OF_NAME: Final = 40
"""Characters of the operator's name: it ends the name of a finalizer, which is limited to 63."""

MAX_LABEL: Final = 63
MAX_NAME: Final = 253

_LABEL = re.compile(LABEL, re.ASCII)
_SUBDOMAIN = re.compile(SUBDOMAIN, re.ASCII)
_QUALIFIED = re.compile(QUALIFIED, re.ASCII)
_FREE_GROUPS = frozenset({"rbac.authorization.k8s.io"})  # a Role's name may be any segment of a URL's path
_MOST = {("batch", "CronJob"): LONGEST_CRON_JOB}
_PATH_SEGMENT = re.compile(r"[^/%]+")


def status_manager(operator: str) -> str:
    """The field manager by which an operator writes the status: two of one resource see each other by it."""
    return STATUS_MANAGER if operator == DEFAULT_OPERATOR else f"{STATUS_MANAGER}-{operator}"


def operator_of_manager(manager: str) -> str:
    """The name of the operator that writes a status as this field manager; empty if it is none."""
    if manager == STATUS_MANAGER:
        return DEFAULT_OPERATOR
    return manager.removeprefix(f"{STATUS_MANAGER}-") if manager.startswith(f"{STATUS_MANAGER}-") else ""


def lease_name(operator: str, *, selector: str = "", ordinal: int | None = None) -> str:
    """The Lease of a process. Processes with the same Lease stand by for each other. No operator has a `.` in its name,
    so no two share a Lease."""
    if ordinal is not None:
        return f"{operator}.{ordinal}"
    if not selector:
        return operator
    words = re.sub(r"[^a-z0-9]+", "-", selector.lower())[:15].strip("-")
    part = "-".join(filter(None, [words, hashlib.sha256(selector.encode()).hexdigest()[:6]]))
    return f"{operator}.{part}"


def is_label(text: str, *, most: int = MAX_LABEL) -> bool:
    return len(text) <= most and _LABEL.fullmatch(text) is not None


def is_letter_label(text: str) -> bool:
    """Whether it is a label of RFC 1035, which begins with a letter: a version, or the plural of a kind."""
    return is_label(text) and text[0].isalpha()


def is_subdomain(text: str) -> bool:
    return len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether it is the key of a label or, in lower case, of an annotation. Most passes ask for the same few."""
    return len(text) <= MAX_NAME + 1 + MAX_LABEL and _is_label_key(text)


@lru_cache(maxsize=4096)
def _is_label_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and len(name) <= MAX_LABEL and _QUALIFIED.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    return len(text) <= MAX_LABEL and _is_label_value(text)


@lru_cache(maxsize=4096)
def _is_label_value(text: str) -> bool:
    return not text or _QUALIFIED.fullmatch(text) is not None


def is_object_name(kind: tuple[str, str], text: str) -> bool:
    """Whether an object of this kind (group and name of the kind) can have this name."""
    return len(text) <= MAX_NAME and _is_object_name(kind, text)


@lru_cache(maxsize=4096)
def _is_object_name(kind: tuple[str, str], text: str) -> bool:
    if kind in LABEL_KINDS:
        return is_label(text)
    if kind[0] in _FREE_GROUPS:
        return text not in {".", ".."} and _PATH_SEGMENT.fullmatch(text) is not None
    return is_subdomain(text) and len(text) <= longest_name(kind)


def longest_name(kind: tuple[str, str]) -> int:
    """The most characters that the name of an object of this kind can have."""
    return MAX_LABEL if kind in LABEL_KINDS else _MOST.get(kind, MAX_NAME)


def name_in_words(kind: tuple[str, str]) -> str:
    if kind in LABEL_KINDS:
        return f"{LABEL_IN_WORDS}, with a letter or digit at both ends"
    return SUBDOMAIN_IN_WORDS if kind not in _MOST else SUBDOMAIN_IN_WORDS.replace(str(MAX_NAME), str(_MOST[kind]))
