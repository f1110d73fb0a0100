"""A recording has the same placeholder wherever a value of a Secret was, and the value nowhere."""

from __future__ import annotations

import base64
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.language.secrets.placeholders import Placeholders
from tests.exploration import examples


def secret(name="s", **data):
    return {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "data": {k: b64(v) for k, v in data.items()},
    }


def b64(text):
    return base64.b64encode(text.encode()).decode()


def test_a_secret_value_has_the_same_placeholder_everywhere():
    placeholders = Placeholders([secret(p="hunter22")])
    word = placeholders.of("hunter22")
    assert word != "hunter22"
    assert placeholders.of({"url": "db://hunter22@x"}) == {"url": f"db://{word}@x"}
    assert placeholders.of(secret(p="hunter22"))["data"]["p"] == b64(word)
    assert Placeholders([secret(p="hunter22")]).of("hunter22") != word, "no two recordings can be compared"


def test_short_secret_values_stay_in_other_texts():
    placeholders = Placeholders(
        [secret(a="1", b="cert", c="web", d="true"), {"kind": "App", "metadata": {"name": "web"}}]
    )
    assert placeholders.of("cert-manager.io") == "cert-manager.io"
    assert placeholders.of("cert") != "cert"
    assert placeholders.of(["1", "web", "true"]) == ["1", "web", "true"]
    hidden = placeholders.of(secret(a="1", b="cert", c="web", d="true"))["data"]
    assert hidden["a"] != b64("1")
    assert hidden["c"] == b64("web"), "the name of an object is no secret"


def test_a_value_that_reads_like_a_missing_name_is_redacted():
    assert Placeholders([secret(p="None")]).of("None") != "None"


def test_binary_secret_values_are_redacted():
    binary = base64.b64encode(bytes(range(256))).decode()
    obj = {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": "s"},
        "data": {"k": binary, "odd": 7, "bad": "not base64!"},
    }
    hidden = Placeholders([obj]).of(obj)["data"]
    assert binary not in json.dumps(hidden)
    assert hidden["odd"] is None
    assert hidden["bad"] != "not base64!"


@settings(max_examples=examples(100))
@given(st.text(min_size=4, max_size=30), st.text(max_size=5), st.text(max_size=5))
def test_no_long_secret_value_remains_anywhere(value, before, after):
    hidden = Placeholders([secret(p=value)]).of({"a": [value, {"b": before + value + after}], "s": secret(p=value)})
    found = [hidden["a"][0], base64.b64decode(hidden["s"]["data"]["p"]).decode()]
    if value not in {"true", "false", "Secret", "s"}:
        assert value not in found
        if len(value) >= 8:
            assert value not in hidden["a"][1]["b"]
