"""Plans show which fields of a Secret differ, but no values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.report.view_json import json_patch
from ruleop.language.secrets.masks import NO_MASKS, covered_secret

VALUES = st.dictionaries(st.sampled_from("abcd"), st.text("xyz", min_size=5, max_size=9), max_size=4)


def secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}


def test_values_of_a_secret_are_masked_and_keys_are_not() -> None:
    assert NO_MASKS.object(secret(data={"a": "eA=="}, stringData={"b": "x"}, type="Opaque")) == secret(
        data={"a": "(hidden)"}, stringData={"b": "(hidden)"}, type="Opaque"
    )


def test_objects_of_other_kinds_are_not_masked() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x"}}
    assert NO_MASKS.object(config) is config
    sealed = {"apiVersion": "bitnami.com/v1", "kind": "Secret", "data": {"a": "x"}}
    assert NO_MASKS.object(sealed) is sealed


def test_masked_values_still_show_whether_they_differ() -> None:
    before, after = covered_secret(
        secret(data={"a": "1", "b": "1", "c": "1"}), secret(data={"a": "1", "b": "2", "d": "1"})
    )
    assert before["data"] == {"a": "(hidden)", "b": "(hidden, before)", "c": "(hidden, before)"}
    assert after["data"] == {"a": "(hidden)", "b": "(hidden, after)", "d": "(hidden, after)"}


def test_values_that_are_not_mappings_are_masked_as_a_whole() -> None:
    assert NO_MASKS.object(secret(data="oops")) == secret(data="(hidden)")
    assert NO_MASKS.object(secret(data={"a": {"b": "x"}})) == secret(data={"a": "(hidden)"})


def test_kubectls_last_applied_annotation_is_masked() -> None:
    note = "kubectl.kubernetes.io/last-applied-configuration"
    obj = secret(data={"a": "eA=="})
    obj["metadata"]["annotations"] = {note: '{"data":{"a":"eA=="}}', "other": "stays"}
    assert NO_MASKS.object(obj)["metadata"]["annotations"] == {note: "(hidden)", "other": "stays"}
    assert "eA==" not in str(covered_secret(obj, secret(data={}))) + str(covered_secret(secret(), obj))


@given(VALUES, VALUES)
def test_a_masked_patch_contains_no_value_and_has_the_same_operations(
    before: dict[str, str], after: dict[str, str]
) -> None:
    patch = json_patch(secret(data=before), secret(data=after))
    text = str([operation.get("value") for operation in patch])
    assert not any(value in text for value in {*before.values(), *after.values()})
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert {operation["path"].removeprefix("/data/") for operation in patch} == changed
