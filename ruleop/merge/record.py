"""The annotation `ruleop.dev/applied` on every child: the child's id, and which of the object's fields ruleop applied.

It lies on the object itself, so that it is written in the same request as the fields it speaks of; the two can never disagree. A record
that is missing or unreadable is no failure: the object is then treated as on adoption, everything wanted is set and nothing is removed.

All annotations of an object share 256 KiB. Records above 32 KiB are compressed, and one that is still above 128 KiB is refused.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass

import orjson

from ruleop.errors import RuleopError
from ruleop.merge.equality import canonical
from ruleop.merge.fields import FieldSet
from ruleop.names import RESERVED_PREFIX

ANNOTATION = f"{RESERVED_PREFIX}applied"

_VERSION = 1
_COMPRESSED = "z1:"  # no JSON text starts like this
_PLAIN_UP_TO = 32 * 1024
_LARGEST = 128 * 1024
_SHARED_UP_TO, _KNOWN = 8 * 1024, 4096
_LARGEST_UNPACKED = 16 * 1024 * 1024  # somebody else may write the annotation; a few bytes must not unpack to all of our memory


class RecordTooLargeError(RuleopError):
    """An object with so many fields that a record of them does not fit beside it."""


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    fields: FieldSet


def encode(record: Record) -> str:
    """The annotation's text; the same record always gives the same text."""
    plain = canonical({"v": _VERSION, "id": record.id, "fields": record.fields.to_json()})
    if len(plain) <= _PLAIN_UP_TO:
        text = plain.decode()
        if len(text) <= _SHARED_UP_TO:
            _keep(text, record)  # what was just written is read next
        return text
    text = _COMPRESSED + base64.b64encode(zlib.compress(plain, 9)).decode()
    if len(text) > _LARGEST:
        raise RecordTooLargeError(
            f"the record of the fields that ruleop applied takes {len(text) // 1024} KiB, and an annotation has room for "
            f"{_LARGEST // 1024}; set `apply.strategy: server-side` for this child, then the API server keeps the record"
        )
    return text


def decode(text: str | None) -> Record | None:
    """The record, or None when there is none that can be read."""
    if not text:
        return None
    if len(text) > _SHARED_UP_TO:
        return _decoded(text)
    if text not in _known:
        _keep(text, _decoded(text))
    return _known[text]


_known: dict[str, Record | None] = {}
"""By their text, the oldest first. A record has no values, so the children that one template makes for a thousand CRs mostly have one
record between them."""


def _keep(text: str, record: Record | None) -> None:
    if text not in _known and len(_known) >= _KNOWN:
        del _known[next(iter(_known))]
    _known[text] = record


def _decoded(text: str) -> Record | None:
    try:
        data = orjson.loads(_unpacked(text))
        match data:
            case {"v": int() as version, "id": str() as id_, "fields": fields} if version == _VERSION:
                return Record(id_, FieldSet.from_json(fields))
    except (ValueError, zlib.error, binascii.Error, RecursionError):
        pass
    return None


def _unpacked(text: str) -> bytes | str:
    if not text.startswith(_COMPRESSED):
        return text
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(base64.b64decode(text[len(_COMPRESSED) :], validate=True), _LARGEST_UNPACKED)
    if not unpacker.eof:
        raise ValueError("cut short, or far too large")
    return plain
