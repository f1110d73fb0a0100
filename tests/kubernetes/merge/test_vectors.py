"""Kubernetes' own table of three-way merges (see `source` in the file). Each case has the outcome stated there, or one
stated here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ruleop.kubernetes.merge import create_fields, merge_patch, same, three_way
from ruleop.kubernetes.schema.shape import Shape

TABLE = json.loads((Path(__file__).parent / "vectors" / "three-way.json").read_text())
CASES = {case["id"]: case for case in TABLE["cases"]}


def the_shape() -> Shape:
    """The type `MergeItem` of the table: its members are of the same type again. `mergeItemPtr` is used there as a
    list, and so it is one."""
    members: dict[str, Shape] = {name: Shape(type="scalar") for name in ("name", "value", "other")}
    item = Shape(type="object", fields=members)
    union = Shape(type="object", fields=members, retain_keys=True)
    known_by_name = Shape(type="list", list_type="map", keys=("name",), items=item)
    numbers = Shape(type="scalar")
    members |= {
        "mergingList": known_by_name,
        "mergeItemPtr": known_by_name,
        "mergingIntList": Shape(type="list", list_type="set", items=numbers),
        "nonMergingList": Shape(type="list", items=item),
        "nonMergingIntList": Shape(type="list", items=numbers),
        "simpleMap": Shape(type="object", values=Shape(type="scalar")),
        "retainKeysMap": union,
        "retainKeysMergingList": Shape(type="list", list_type="map", keys=("name",), items=union),
    }
    return item


SHAPE = the_shape()

DEVIATIONS = {
    "retainKeys list of maps clears a field": (
        (
            "Nothing of ours changes here, so the member beside ours stays: it may well be the server's default, and clearing that would be "
            "a write at every reconcile. kubectl clears it."
        ),
        {"retainKeysMergingList": [{"name": "bar"}, {"name": "foo", "value": "a", "other": "x"}]},
    ),
}


def in_table_form(value):
    """Lists known by keys and sets compare by their members; what the table promises of the order is checked apart."""
    if isinstance(value, dict):
        return {name: in_table_form(member) for name, member in value.items()}
    if isinstance(value, list):
        return sorted((in_table_form(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def order_of_ours(result, desired):
    """The order in which the wanted items come, list by list."""
    if isinstance(desired, dict) and isinstance(result, dict):
        return {name: order_of_ours(result.get(name), value) for name, value in desired.items()}
    if isinstance(desired, list) and isinstance(result, list):
        names = [item.get("name") if isinstance(item, dict) else item for item in desired]
        return [name for item in result if (name := item.get("name") if isinstance(item, dict) else item) in names]
    return None


@pytest.mark.parametrize("name", CASES)
def test_each_case_of_the_kubernetes_merge_table_has_its_outcome(name):
    """The table does not say who created what; all of `last_applied` counts as created by us, as kubectl has it."""
    case = CASES[name]
    expected = DEVIATIONS[name][1] if name in DEVIATIONS else case["expect"]
    merged = three_way(case["live"], case["desired"], create_fields(case["last_applied"], SHAPE), SHAPE)
    assert same(in_table_form(merged.object), in_table_form(expected))
    assert order_of_ours(merged.object, case["desired"]) == order_of_ours(expected, case["desired"])
    again = three_way(merged.object, case["desired"], merged.fields, SHAPE)
    assert merge_patch(merged.object, again.object) is None, "a second look finds nothing to do"
    assert again.fields == merged.fields


@pytest.mark.parametrize("name", DEVIATIONS)
def test_each_deviation_differs_from_the_kubernetes_merge_table(name):
    assert not same(in_table_form(DEVIATIONS[name][1]), in_table_form(CASES[name]["expect"]))
