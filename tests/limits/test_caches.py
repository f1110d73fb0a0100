"""The contents of custom resources decide which entries a cache has, so caches are bounded by their size."""

from __future__ import annotations

import base64
import sys
import zlib

import pytest
import re2

from ruleop.kubernetes.merge import Record, create_fields, decode, encode, record, server_changes, three_way
from ruleop.kubernetes.merge.equality import _digest_of_text, fingerprint
from ruleop.kubernetes.quantity import _parse, parse_quantity
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.language.templates.filters.text_filters import MAX_PROGRAM, MAX_PROGRAMS, _compiled, regex_match
from tests.limits.shapes import deep


def test_few_patterns_are_kept_and_each_is_small(monkeypatch):
    _compiled.cache_clear()
    asked = []
    compile_pattern = re2.compile
    monkeypatch.setattr(
        re2, "compile", lambda text, options: asked.append(options.max_mem) or compile_pattern(text, options)
    )
    for number in range(256):
        regex_match("text", f"t{number}")
    assert _compiled.cache_info().currsize == MAX_PROGRAMS
    assert MAX_PROGRAMS * MAX_PROGRAM <= 24 << 20
    assert set(asked) == {MAX_PROGRAM}


def test_records_are_kept_up_to_a_number_of_characters(monkeypatch):
    records = record._Records()
    monkeypatch.setattr(record, "_RECORDS", records)
    monkeypatch.setattr(record, "_MAX_CACHED", 10_000)
    for number in range(100):
        fields = create_fields(
            {"metadata": {"name": "a"}, "data": {f"key-{number}-{each}": "" for each in range(50)}}, UNKNOWN
        )
        longest = len(encode(Record("a", fields)))
        assert sum(map(len, records.known)) == records.length <= 10_000 + longest
    assert records.known


@pytest.mark.parametrize("length", [300, 1_000_000])
def test_long_texts_are_not_kept_for_their_digest_or_amount(length):
    _digest_of_text.cache_clear()
    _parse.cache_clear()
    assert len(fingerprint("a" * length)) == 16
    assert parse_quantity("1" * length) is None
    assert not _digest_of_text.cache_info().currsize
    assert not _parse.cache_info().currsize


def test_a_short_compressed_record_is_not_cached():
    fields = create_fields({f"a{number}": {"b": {}} for number in range(5000)}, UNKNOWN)
    text = encode(Record("x", fields))
    assert len(text) < 32 * 1024
    assert decode(text) is not None
    assert text not in record._RECORDS.known


def test_a_record_that_unpacks_to_more_than_a_mebibyte_is_not_read():
    plain = b'{"v":1,"id":"x","fields":{' + b" " * 2**20 + b"}}"
    text = "z1:" + base64.b64encode(zlib.compress(plain, 9)).decode()
    assert len(text) < 2000
    assert decode(text) is None


def test_a_deep_object_is_not_compared_again_from_each_of_its_levels(monkeypatch):
    """Each level of a merge asks whether its part is in sync, and the doubt is at the bottom."""
    compared = []
    original = server_changes.is_in_sync
    for module in (server_changes, sys.modules[three_way.__module__]):
        monkeypatch.setattr(module, "is_in_sync", lambda *each: compared.append(1) or original(*each))
    live, desired = ({f"a{number}": deep(80, leaf) for number in range(10)} for leaf in "xy")
    merged = three_way(live, desired, create_fields(live, UNKNOWN), UNKNOWN)
    assert merged.object == desired
    assert len(compared) < 3 * 10 * 80
