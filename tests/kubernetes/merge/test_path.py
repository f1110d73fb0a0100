"""The syntax of `apply.ignore`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.errors import RuleopError
from ruleop.kubernetes.merge import PathError, parse_path
from ruleop.kubernetes.merge.path import PathSelector


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("spec", ["spec"]),
        ("spec.replicas", ["spec", "replicas"]),
        ("metadata.annotations['a/b']", ["metadata", "annotations", "a/b"]),
        ('metadata.annotations["it\'s.x"].y', ["metadata", "annotations", "it's.x", "y"]),
        (r"a['it\'s \\ x']", ["a", r"it's \ x"]),
        (r'a["\"q\""]', ["a", '"q"']),
        ("['a.b'].c", ["a.b", "c"]),
        ("a['']", ["a", ""]),
        ("$ref.x-y.a/b", ["$ref", "x-y", "a/b"]),
        ("c[name=app].image", ["c", [("name", "app")], "image"]),
        ("ports[containerPort=80,protocol=TCP]", ["ports", [("containerPort", "80"), ("protocol", "TCP")]]),
        ("p[ port = 80 , host = a.example.com/x ].y", ["p", [("port", "80"), ("host", "a.example.com/x")], "y"]),
        ("p['odd key'='odd, value',\"k\"=\"\"]", ["p", [("odd key", "odd, value"), ("k", "")]]),
        ("a[k=v][k2=v2]['n']", ["a", [("k", "v")], [("k2", "v2")], "n"]),
    ],
)
def test_a_path_is_read_and_prints_as_it_was_written(text, segments):
    path = parse_path(text)
    assert [list(s.pairs) if isinstance(s, PathSelector) else s for s in path.segments] == segments
    assert str(path) == text


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "the path is empty; name a field, such as spec.replicas"),
        ("spec.", 5, "expected the name of a field; names with special characters are written ['like this']"),
        (".spec", 0, "expected the name of a field"),
        ("a..b", 2, "expected the name of a field"),
        ("a b", 1, "expected `.` or `[`"),
        ("a]", 1, "expected `.` or `["),
        ("a['b']c", 6, "expected `.` or `["),
        ("a[0]", 2, "an item is selected by its keys, not by its position: [name=app]"),
        ("a[b]", 2, "brackets must contain a quoted name, ['a/b'], or the keys of an item, [name=app]"),
        ("a[]", 2, "expected a name or a value"),
        ("a['b", 2, "this quote is not closed"),
        ("a[b", 3, "expected `=` and a value"),
        ("a[b=", 4, "expected a name or a value"),
        ("a[b=c", 5, "expected `,` or `]`"),
        ("a[b=c.d e]", 8, "expected `,` or `]`"),
        ("a[b=c,]", 6, "expected a name or a value"),
        ("a[b=c,d]", 7, "expected `=` and a value"),
        ("a[b=c,b=d]", 6, "duplicate key b"),
        ("[a=b].c", 0, "a path must start with the name of a field"),
    ],
)
def test_an_invalid_path_is_reported_with_its_position(text, offset, message):
    with pytest.raises(PathError) as caught:
        parse_path(text)
    assert (caught.value.offset, caught.value.message[: len(message)]) == (offset, message)
    assert str(caught.value) == f"{caught.value.message} (at character {offset + 1})"
    assert isinstance(caught.value, RuleopError)


def test_equivalent_paths_are_equal():
    one, other = parse_path("a['b'].c"), parse_path('a.b["c"]')
    assert one == other
    assert len({one, other, parse_path("a.b.d")}) == 2


@given(st.text(alphabet="ab.[]='\", \\0", max_size=12))
def test_any_text_is_a_valid_path_or_an_error_at_a_position_within_it(text):
    offset = 0
    try:
        assert str(parse_path(text)) == text
    except PathError as error:
        offset = error.offset
    assert 0 <= offset <= len(text)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_any_name_can_be_written_in_quotes(names):
    quoted = "".join("['" + name.replace("\\", "\\\\").replace("'", "\\'") + "']" for name in names)
    assert parse_path(quoted).segments == tuple(names)
