"""The annotation with the applied fields: small, the same bytes for the same fields, and never a value."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from ruleop.kubernetes.merge import (
    ANNOTATION,
    FieldSet,
    Record,
    RecordTooLargeError,
    create_fields,
    decode,
    encode,
    three_way,
)
from ruleop.kubernetes.schema.shape import UNKNOWN
from tests.kubernetes.merge.shapes import DEPLOYMENT, TEXT, keyed, struct

WANTED = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["x/y"]},
    "spec": {
        "template": {
            "spec": {
                "nodeSelector": {"disk": "secret-disk"},
                "tolerations": [{"key": "secret-key"}],
                "containers": [{"name": "app", "image": "secret-image", "ports": [{"containerPort": 80}], "env": []}],
            }
        }
    },
}


def test_a_record_is_read_back_as_it_was_written():
    for record in (Record("web", create_fields(WANTED, DEPLOYMENT)), Record("", FieldSet())):
        assert decode(encode(record)) == record


def test_equal_records_share_their_memory():
    text = encode(Record("web", create_fields(WANTED, DEPLOYMENT)))
    assert decode(text) is decode("".join(list(text)))


def test_the_encoded_form_of_a_record_is_fixed():
    """Records outlive a release of ruleop: a new form needs a new version, and this one must still be read."""
    assert encode(Record("web", create_fields(WANTED, DEPLOYMENT))) == (
        '{"fields":{"metadata":[{"finalizers":["s",1,"2adc656efaf148ef"],"labels":[{"app":1}],"name":1}],'
        '"spec":[{"template":[{"spec":[{"containers":["k",1,["name"],[["app",[{"env":["k",1,["name"],[]],"image":1,"name":1,'
        '"ports":["k",1,["containerPort","protocol"],[[80,"TCP",[{"containerPort":1}]]]]}]]]],"nodeSelector":"m","tolerations":"l"}]}]}]},'
        '"id":"web","v":1}'
    )
    assert ANNOTATION == "ruleop.dev/applied"


def test_no_value_is_in_a_record():
    wanted = {
        "data": {"password": "hunter2"},
        "list": ["hunter2"],
        "metadata": {"finalizers": ["hunter2"], "labels": {"a": "hunter2"}},
    }
    assert "hunter2" not in encode(Record("id", create_fields(wanted, DEPLOYMENT)))


def test_the_same_fields_make_the_same_bytes():
    one = {"b": 1, "a": [{"name": "x"}, {"name": "y"}], "m": {"q": 1, "p": 1}}
    other = {"m": {"p": 2, "q": 2}, "a": [{"name": "y"}, {"name": "x"}], "b": 5}
    shape = struct(a=keyed(struct(name=TEXT), "name"))
    assert create_fields(one, shape) == create_fields(other, shape)
    assert encode(Record("x", create_fields(one, shape))) == encode(Record("x", create_fields(other, shape)))


def test_keys_of_different_types_stay_distinct_in_a_record():
    items = [{"k": "1"}, {"k": 1}, {"k": True}, {"k": 1.0}, {"k": "true"}, {"k": "1.0"}]
    shape = struct(l=keyed(struct(k=TEXT), "k"))
    fields = create_fields({"l": items}, shape)
    assert decode(encode(Record("x", fields))) == Record("x", fields)
    again = three_way({"l": items}, {"l": items[1:2]}, decode(encode(Record("x", fields))).fields, shape)
    assert again.object == {"l": [{"k": 1}]}
    assert type(again.object["l"][0]["k"]) is int


@pytest.mark.slow
def test_a_large_record_is_compressed_and_a_huge_one_is_refused():
    small = encode(Record("x", create_fields({"data": {f"key-{n}": "" for n in range(2000)}}, UNKNOWN)))
    assert small[0] == "{"
    large = Record("x", create_fields({"data": {f"key-{n}": "" for n in range(10_000)}}, UNKNOWN))
    text = encode(large)
    assert text.startswith("z1:")
    assert len(text) < 64 * 1024
    assert decode(text) == large
    assert encode(large) == text
    random_names = {
        base64.b85encode(zlib.compress(bytes([n % 251, n // 251]) * 9)).decode() * 2: "" for n in range(50_000)
    }
    with pytest.raises(RecordTooLargeError, match="server-side"):
        encode(Record("x", create_fields({"data": random_names}, UNKNOWN)))


def test_a_record_of_32_kib_is_not_compressed():
    def of_length(name):
        return encode(Record("x", create_fields({"n" * name: 1}, UNKNOWN)))

    rest = len(of_length(1)) - 1
    assert len(of_length(32 * 1024 - rest)) == 32 * 1024
    assert of_length(32 * 1024 - rest + 1).startswith("z1:")


def packed(data: bytes) -> str:
    return "z1:" + base64.b64encode(zlib.compress(data)).decode()


GOOD = {"v": 1, "id": "x", "fields": {}}


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "rubbish",
        "{",
        "null",
        "[]",
        "\ud800",
        "z1:",
        "z1:not base64!",
        "z1:" + base64.b64encode(b"not zlib").decode(),
        packed(json.dumps(GOOD).encode())[:-8],
        packed(b"\xff"),
        packed(b'{"v":1,"id":"x","fields":{"a":"' + b"x" * 17 * 1024 * 1024),
        json.dumps({**GOOD, "v": 2}),
        json.dumps({**GOOD, "v": "1"}),
        json.dumps({**GOOD, "id": 5}),
        json.dumps({"v": 1, "id": "x"}),
        *(
            json.dumps({**GOOD, "fields": fields})
            for fields in (
                1,
                [],
                [{}],
                "l",
                {"a": 2},
                {"a": True},
                {"a": "x"},
                {"a": None},
                {"a": 1.0},
                {"a": []},
                {"a": [1]},
                {"a": [{}, {}]},
                {"a": ["s"]},
                {"a": ["s", 2]},
                {"a": ["s", 1, 5]},
                {"a": ["k", 1, ["k"]]},
                {"a": ["k", 1, [], []]},
                {"a": ["k", 1, [1], []]},
                {"a": ["k", 2, ["k"], []]},
                {"a": ["k", 1, ["k"], {}]},
                {"a": ["k", 1, ["k"], [5]]},
                {"a": ["k", 1, ["k"], [[1]]]},
                {"a": ["k", 1, ["k"], [["x", "y", 1]]]},
                {"a": ["k", 1, ["k"], [[None, 1]]]},
                {"a": ["k", 1, ["k"], [[True, 1]]]},
                {"a": ["k", 1, ["k"], [[["a", "b"], 1]]]},
                {"a": ["k", 1, ["k"], [["x", 7]]]},
            )
        ),
        '{"v":1,"id":"x","fields":' + '{"a":' * 900 + "1" + "}" * 901,
        '{"v":1,"id":"x","fields":' + '{"a":' * 90_000 + "1" + "}" * 90_001,
    ],
)
def test_an_unreadable_annotation_is_not_a_record(text):
    assert decode(text) is None


def test_a_record_compressed_by_another_library_is_read():
    assert decode(packed(json.dumps(GOOD).encode())) == Record("x", FieldSet())
    assert decode(json.dumps(GOOD, indent=2)) == Record("x", FieldSet())
