"""JSON that is nested deeper than orjson allows is read and written."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import parse_object
from ruleop.operator.wire.client.json_depth import MAX_VALUES, TooManyValuesError, dump_json, fold, parse_json
from ruleop.operator.wire.client.server_errors import ApiError, Problem, response_error
from ruleop.operator.wire.watch.store import Store
from tests.operator.wire.model_server import SOURCE

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('a"\\{}[]é')), inner, max_size=3)
    ),
)


@pytest.mark.slow
@given(value=st.lists(JSON, min_size=1), levels=st.integers(255, 1000))
def test_deeply_nested_json_is_written_as_orjson_would_write_it(value: Any, levels: int) -> None:
    expected = b"[" * levels + orjson.dumps(value) + b"]" * levels
    for _ in range(levels):
        value = [value]
    assert dump_json(value) == expected


@given(value=JSON, depth=st.integers(0, 4))
def test_folding_deep_json_loses_no_byte(value: Any, depth: int) -> None:
    shell, inner = fold(orjson.dumps(value), depth)
    text = orjson.dumps(value)
    assert all(orjson.loads(each) is not None for each in inner)
    assert len(shell) + sum(map(len, inner)) - sum(len(b"%d" % number) for number in range(len(inner))) == len(text)
    orjson.loads(shell)


@pytest.mark.parametrize("broken", [b'{"a":"' + b'\\"' * 400_000, b'"' * 800_001, b'{"a":"' + b"\\" * 800_001])
def test_an_unterminated_string_is_scanned_once(broken: bytes) -> None:
    """With a search for its end from each quote, this would take an hour."""
    shell, inner = fold(broken, 1)
    assert (shell, inner) == (broken, [])


def test_text_with_too_many_brackets_is_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ruleop.operator.wire.client.json_depth.MAX_BRACKETS", 8)
    assert fold(b"[[[1]],[]]", 1) == (b"[0,1]", [b"[[1]]", b"[]"])
    assert fold(b"[[[1]],[],[]]", 1) == (b"[[[1]],[],[]]", [])


def test_a_store_holds_each_deep_object_once_and_whole() -> None:
    store = Store(SOURCE)
    value: Any = 1
    for _ in range(400):
        value = {"a": value}
    metadata = {"name": "a", "namespace": "ns", "uid": "u"}
    for version in (1, 2):
        store.apply({"metadata": {**metadata, "resourceVersion": str(version)}, "spec": value, "status": {"x": value}})
    (entry,) = (entry for _, entry in store.entries())
    assert entry.parsed()["spec"] == value
    assert entry.parsed()["status"] == {"x": value}
    assert store.statistics().changes == 2


def test_an_answer_of_too_many_values_is_refused_before_it_is_parsed() -> None:
    """60 MiB of empty mappings would take 500 MiB."""
    empty = b"[" + b"{}," * MAX_VALUES + b"{}]"
    with pytest.raises(TooManyValuesError):
        parse_json(empty)
    with pytest.raises(ApiError, match="the answer is too large: it has more than 2,097,152 values") as caught:
        parse_object(empty, requests.document("/apis"))
    assert caught.value.problem is Problem.TOO_LARGE
    error = response_error(500, b'{"kind": "Status", "items": %b}' % empty, verb="get", resource="x")
    assert error.problem is Problem.SERVER


def test_a_long_answer_of_few_values_is_parsed() -> None:
    text = b'"' + b"x" * (5 << 20) + b'"'
    assert len(parse_json(text)) == 5 << 20
