"""The annotation `ruleop.dev/applied` on every child: the child's id, and the fields of the object that ruleop applied.

It is on the object itself, so that one request writes it together with the fields, and the two always agree. A missing
or unreadable record is not an error: the object is then treated as on adoption, so all desired fields are set and
nothing is removed.

All annotations of an object share 256 KiB. A record above 32 KiB is compressed; one that is still above 128 KiB is an
error.
"""

from __future__ import annotations

import base64
import binascii
import zlib

import orjson

from ruleop.errors import RuleopError
from ruleop.kubernetes.merge.equality import canonical
from ruleop.kubernetes.merge.fields import FieldSet
from ruleop.kubernetes.names import RESERVED_PREFIX
from ruleop.values import dataclass

ANNOTATION = f"{RESERVED_PREFIX}applied"

_VERSION = 1
_COMPRESSED = "z1:"  # no JSON text starts like this
_MAX_PLAIN = 32 * 1024
_MAX_LENGTH = 128 * 1024
_MAX_CACHED_LENGTH = 8 * 1024
_MAX_CACHED = 1024 * 1024  # characters of all cached texts; a decoded record takes about ten bytes for each
_MAX_UNPACKED = 1024 * 1024  # others may write the annotation: a few bytes must not exhaust the memory


class RecordTooLargeError(RuleopError):
    """An object with too many fields for a record in an annotation."""


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    fields: FieldSet


def encode(record: Record) -> str:
    """The annotation's text; the same record always gives the same text."""
    plain = canonical({"v": _VERSION, "id": record.id, "fields": record.fields.to_json()})
    if len(plain) <= _MAX_PLAIN:
        text = plain.decode()
        if len(text) <= _MAX_CACHED_LENGTH:
            _RECORDS.add(text, record)  # the record is decoded on the next pass
        return text
    text = _COMPRESSED + base64.b64encode(zlib.compress(plain, 9)).decode()
    if len(text) > _MAX_LENGTH or len(plain) > _MAX_UNPACKED:
        raise RecordTooLargeError(
            f"the record of the applied fields has {len(text) // 1024} KiB, above the {_MAX_LENGTH // 1024} KiB for "
            "an annotation; set `apply.strategy: server-side` for this child, so that the API server keeps the record"
        )
    return text


def decode(text: str | None) -> Record | None:
    """The record, or None if it is missing or unreadable."""
    if not text:
        return None
    if text in (known := _RECORDS.known):
        return known[text]
    record = _decode(text)
    if _may_be_cached(text):
        _RECORDS.add(text, record)
    return record


def _may_be_cached(text: str) -> bool:
    """Whether the record is small. A compressed one is not, however short its text is."""
    return len(text) <= _MAX_CACHED_LENGTH and not text.startswith(_COMPRESSED)


class _Records:
    """Decoded records by their text. A record has no values, so the children of a thousand CRs of one kind mostly share
    one record. All threads share them, and a plan may be ended at any instruction: an entry is never changed, and the
    length is at least that of the entries."""

    def __init__(self) -> None:
        self.known: dict[str, Record | None] = {}
        self.length = 0

    def add(self, text: str, record: Record | None) -> None:
        if self.length > _MAX_CACHED:
            self.known, self.length = {}, 0
        self.length += len(text)
        self.known[text] = record


_RECORDS = _Records()


def _decode(text: str) -> Record | None:
    try:
        plain = _decompress(text)
        data = orjson.loads(plain)
        match data:
            case {"v": int() as version, "id": str() as id_, "fields": fields} if version == _VERSION:
                return Record(id_, FieldSet.from_json(fields))
    except (ValueError, zlib.error, binascii.Error, RecursionError):
        pass
    return None


def _decompress(text: str) -> bytes | str:
    if not text.startswith(_COMPRESSED):
        return text
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(base64.b64decode(text[len(_COMPRESSED) :], validate=True), _MAX_UNPACKED)
    if not unpacker.eof:
        raise ValueError("truncated or too large")
    return plain
