"""The values of Secrets: where they stand, the texts by which copies of them are recognised, and what replaces them.

A copy is the value as it is stored or decoded, and if it has several lines or is JSON, each line, each half of
`key: value`, and each string. Values that are public anyway do not count. Neither the length nor a hash of a masked
value is shown: a weak password can be guessed from either."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.kinds import LAST_APPLIED, GroupKind, Kind, Object
from ruleop.language.templates import Trait, filters_with

if TYPE_CHECKING:
    from collections.abc import Sequence

MASK: Final = "(hidden)"
BEFORE: Final = "(hidden, before)"
AFTER: Final = "(hidden, after)"
"""The words in place of a value, and of the two versions of one that changes: a plan shows that a password changes."""
SECRET: Final = GroupKind("", "Secret")
DATA_FIELDS: Final = ("data", "stringData")
SHORTEST: Final = 4
"""The length from which a value is recognised where it is the whole text."""
DISTINCT: Final = 8
"""The length from which a value is also recognised inside longer text. Otherwise `cert` would be in every
`cert-manager.io`."""
_STORED: Final = Kind("", "v1", "Secret")
_TRUTHS: Final = frozenset({"true", "false"})
_PIECES = re.compile(r"[:=]\s*")
_QUOTES: Final = "'\" ,"


def is_secret(obj: Object) -> bool:
    return Kind.of(obj) == _STORED


def values_of(secret: Object) -> Iterator[tuple[str, str]]:
    """The values of a Secret, each as it is stored and decoded."""
    for which in DATA_FIELDS:
        entries = secret.get(which)
        for value in entries.values() if isinstance(entries, Mapping) else ():
            if isinstance(value, str):
                yield (value, decoded(value)) if which == "data" else (encoded(value), value)


def secret_values(secret: Object) -> Iterator[str]:
    """The texts by which copies of the values of a Secret are recognised."""
    for stored, plain in values_of(secret):
        yield from (stored, encoded(stored), *_pieces(plain))


def _pieces(text: str) -> Iterator[str]:
    yield text
    yield text.strip()
    for line in text.splitlines():
        yield line.strip()
        yield from (part.strip(_QUOTES) for part in _PIECES.split(line, maxsplit=1))
    if text[:1] in ("{", "["):
        try:
            yield from leaves_of(orjson.loads(text))
        except orjson.JSONDecodeError:
            return


def known_values(secrets: Iterable[Object], computed: Iterable[str], public: Container[str]) -> frozenset[str]:
    """The values of these Secrets and what was computed from them, if they are long enough to be recognised, and not
    public."""
    found = {value for secret in secrets for value in secret_values(secret)}.union(computed)
    return frozenset(value for value in found if len(value) >= SHORTEST and value not in public)


def public_names(objects: Iterable[Object]) -> set[str]:
    """The names, namespaces and kinds of objects, and booleans: a Secret that has them too hides nothing."""
    found = set(_TRUTHS)
    for obj in objects:
        metadata = obj.get("metadata") or {}
        identity = metadata.get("name"), metadata.get("namespace"), obj.get("kind")
        found.update(each for each in identity if isinstance(each, str))
    return found


def leaves_of(value: Any) -> Iterator[str]:
    """The strings in plain data, without names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list)):
        for member in value.values() if isinstance(value, Mapping) else value:
            yield from leaves_of(member)


def decoded(value: str) -> str:
    """A value of `data` as text; the value itself if it is not base64."""
    try:
        return base64.b64decode(value, validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        return value


def encoded(value: str) -> str:
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def replaced(text: str, words: Mapping[str, str]) -> str:
    """The text with these values, the longest first, replaced by their words wherever they are."""
    for value, word in words.items():
        if len(value) < DISTINCT:
            break
        text = text.replace(value, word)
    return text


def longest_first(words: Mapping[str, str]) -> dict[str, str]:
    return {value: words[value] for value in sorted(words, key=lambda value: (-len(value), value))}


# -- secret fields -----------------------------------------------------------------------------------------------------
#
# The fields of Secrets that need protection where a template reads them, and the filters whose results do not.

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
