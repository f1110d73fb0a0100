"""The status of a CR: its fields, its conditions, and when it is written."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

from ruleop.authoring.report.spans import text_of
from ruleop.authoring.report.view_text import plan_lines
from ruleop.authoring.report.views import ResourceView
from ruleop.kubernetes.merge import same
from ruleop.kubernetes.schema.validation import validate
from ruleop.language import status_limits
from ruleop.planning import Failed, Failure, KindInfo, Served
from ruleop.planning import status as module
from ruleop.planning.model.marks import PAUSED, RECONCILE_PERIOD
from tests.planning.harness import Harness, config, key
from tests.planning.settled import edit_and_settle, settled

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
CHILD = "children: {a: {template: a.yaml}}\n"
OTHER = "observe: {other: {version: v1, kind: ConfigMap, name: other}}\n"
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?\Z")


def with_status(text: str, spec: dict[str, Any] | None = None, more: str = "", **files: str) -> Harness:
    return Harness.of(CHILD + OTHER + "status: " + text + "\n" + more, {"v": "1", **(spec or {})}, a=A, **files)


def with_schema(harness: Harness, **status: Any) -> Harness:
    """The info of a kind with this status schema."""
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, **status},
    }
    harness.infos["App"] = replace(harness.info(harness.rule.kind), status_schema=schema)
    return harness


# -- the projected fields ----------------------------------------------------------------------------------------------


def test_status_fields_keep_their_types_and_omitted_ones_are_absent():
    text = "{n: '{{ spec.n }}', b: '{{ spec.b }}', l: '{{ spec.l }}', m: {x: '{{ spec.n }}', w: '{{ omit }}'}, o: '{{ omit }}', c: plain, t: 'n={{ spec.n }}'}"
    harness = with_status(text.replace("n:", "num:"), {"n": 3, "b": True, "l": [1, "2"]})
    harness.settle()
    found = {name: value for name, value in harness.status.items() if name not in ("conditions", "observedGeneration")}
    assert found == {"num": 3, "b": True, "l": [1, "2"], "m": {"x": 3}, "c": "plain", "t": "n=3"}


@pytest.mark.parametrize(
    "text", ["{ratio: '{{ 100 * spec.n / 4 }}', l: [{whole: '{{ spec.n / 1 }}'}, '{{ spec.n / 4 }}']}", "numbers.yaml"]
)
def test_a_whole_number_is_written_as_an_integer(text: str):
    template = "ratio: {{ 100 * spec.n / 4 }}\nl: [{whole: {{ spec.n / 1 }}}, {{ spec.n / 4 }}]\n"
    harness = with_status(text, {"n": 2}, numbers=template)
    harness.settle()
    found = {name: harness.status[name] for name in ("ratio", "l")}
    assert same(found, {"ratio": 50, "l": [{"whole": 2}, 0.5]})
    harness.resource = orjson.loads(
        orjson.dumps(harness.resource).replace(b"50.0", b"50").replace(b"2.0", b"2")
    )  # in Go's format
    assert harness.plan().quiet


def test_a_missing_value_leaves_out_its_field_or_item():
    harness = with_status("{x: '{{ other.data.x }}', l: ['1', '{{ other.data.x }}'], z: '{{ spec.v }}'}")
    harness.settle()
    assert "x" not in harness.status
    assert (harness.status["l"], harness.status["z"]) == (["1"], "1")
    assert harness.ready()[0] == "True"
    harness.add(config("other", {"x": "7"}))
    harness.settle()
    assert (harness.status["x"], harness.status["l"]) == ("7", ["1", "7"])
    harness.delete(key("other"))
    harness.settle()
    assert "x" not in harness.status


def test_a_loop_over_a_missing_value_leaves_out_its_items():
    status = """
  all: [first, {"{% for key, value in other.data.items() %}": "{{ key }}={{ value }}"}]
  each: [{"{% for part in ['x', 'y'] %}": {name: "{{ part }}", value: "{{ other.data[part] }}"}}]
  known: {v: "{{ spec.v }}", "{% if other.data.x is defined %}": {x: "{{ other.data.x }}"}}
"""
    harness = with_status(status)
    harness.settle()
    assert harness.status["all"] == ["first"]
    assert harness.status["each"] == [{"name": "x"}, {"name": "y"}]
    assert harness.status["known"] == {"v": "1"}
    assert harness.ready()[0] == "True"
    harness.add(config("other", {"x": "7"}))
    harness.settle()
    assert harness.status["all"] == ["first", "x=7"]
    assert harness.status["known"] == {"v": "1", "x": "7"}


def test_a_mistake_in_a_loop_leaves_out_its_field_alone():
    harness = with_status("{all: [{'{% for each in spec.no %}': '{{ each }}'}], v: '{{ spec.v }}'}")
    harness.settle()
    assert (harness.status.get("all"), harness.status["v"]) == (None, "1")
    assert harness.ready()[:2] == ("False", "RenderFailed")


def test_a_field_that_loses_a_member_is_written_once():
    harness = with_status("{m: '{{ spec.m }}'}", {"m": {"x": "1", "w": {"deep": "2"}}})
    harness.settle()
    edit_and_settle(harness, {"v": "1", "m": {"x": "1"}})
    assert harness.status["m"] == {"x": "1"}
    assert harness.plan().quiet


def test_nulls_inside_a_field_are_written_once():
    harness = with_status("{m: '{{ spec.m }}'}", {"m": {"x": None, "w": "1"}})
    harness.infos["App"] = KindInfo(harness.rule.kind)
    harness.settle()
    assert harness.status["m"] == {"w": "1"}


def test_other_fields_and_conditions_of_the_status_are_not_touched():
    harness = with_status("{x: '{{ spec.v }}'}")
    theirs = {
        "type": "Theirs",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    harness.resource["status"] = {"theirs": {"deep": 1}, "conditions": [theirs, "rubbish"]}
    harness.settle()
    assert harness.status["theirs"] == {"deep": 1}
    assert harness.status["conditions"][0] == theirs


@pytest.mark.parametrize("type_", [["Ready"], {"a": "b"}, 1, ""], ids=repr)
@pytest.mark.parametrize("paused", [False, True])
def test_a_condition_whose_type_is_not_text_is_kept_as_it_is(type_, paused):
    harness = with_status("{x: '{{ spec.v }}'}")
    theirs = {"type": type_, "status": {"long": ["x"] * 100}}
    harness.resource["status"] = {"conditions": [theirs]}
    if paused:
        pause(harness)
    harness.settle()
    assert harness.status["conditions"][0] == theirs
    assert harness.plan(retired=frozenset({"Old"})).status.patch is None
    harness.resource["status"]["x"] = "other"
    shown = text_of(plan_lines(ResourceView(harness.resource, harness.plan(), kinds=harness)))
    assert max(map(len, shown.splitlines())) < 200


def test_fields_and_conditions_of_others_are_neither_pruned_nor_defaulted(monkeypatch):
    """The server has done that, and they may be many."""
    harness = with_schema(with_status("{x: '{{ spec.v }}'}"), status={"type": "object", "properties": {"x": {}}})
    harness.resource["status"] = {"theirs": {"a": None}, "conditions": [{"type": f"T{n}"} for n in range(1000)]}
    pruned = []
    original = module.drop_unknown
    monkeypatch.setattr(module, "drop_unknown", lambda value, schema: pruned.append(value) or original(value, schema))
    planned = harness.plan()
    assert planned.status.status["theirs"] == {"a": None}
    assert pruned[0]["status"].keys() == {"x", "conditions", "observedGeneration"}
    assert [each["type"] for each in pruned[0]["status"]["conditions"]] == ["Ready", "Reconciling", "Stalled"]


def test_an_error_in_a_status_field_is_reported_and_stops_no_child():
    harness = with_status("{x: '{{ spec.nope }}', z: '{{ spec.v }}', w: '{{ spec.nope }}'}")
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]
    assert "x" not in harness.status
    assert harness.status["z"] == "1"
    assert harness.ready()[:2] == ("False", "RenderFailed")
    assert re.match(r"status: watches\.yaml:6:\d+: .*spec\.nope is not set", harness.ready()[2])


def test_a_status_template_manages_its_fields_in_every_branch():
    text = "x: '{{ spec.v }}'\n{% if spec.more %}\nmore: yes-{{ spec.v }}\n{% endif %}\nip: {{ other.data.ip }}\n"
    harness = with_status("s.yaml", {"more": True}, s=text)
    harness.resource["status"] = {"theirs": 1}
    harness.settle()
    assert (harness.status["x"], harness.status["more"]) == ("1", "yes-1")
    assert "ip" not in harness.status
    edit_and_settle(harness, {"v": "1", "more": False})
    assert "more" not in harness.status
    assert harness.status["theirs"] == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n", "the template of a status must render one mapping"),
        ("a: b\n---\nc: d\n", "the template of a status must render one mapping"),
        ("a: {{ spec.nope }}\n", "spec.nope is not set"),
    ],
)
def test_a_status_template_must_render_a_mapping(text: str, expected: str):
    harness = with_status("s.yaml", s=text)
    harness.settle()
    assert expected in harness.ready()[2]
    assert harness.names() == ["ConfigMap/a"]


def test_a_status_template_that_waits_or_is_empty_is_left_out():
    for text in ("{% if other.data.x %}\na: b\n{% endif %}\n", "{% if false %}\na: b\n{% endif %}\n"):
        harness = with_status("s.yaml", s=text)
        harness.settle()
        assert "a" not in harness.status
        assert harness.ready()[0] == "True"


def test_computed_names_below_a_field_are_removed_with_their_source():
    for status in ("{names: {'{{ spec.v }}-name': '1', '{{ omit }}': '2'}}", "s.yaml"):
        harness = with_status(status, s="names:\n  {{ spec.v }}-name: '1'\n")
        harness.settle()
        assert harness.status["names"] == {"1-name": "1"}
        edit_and_settle(harness, {"v": "2"})
        assert harness.status["names"] == {"2-name": "1"}


# -- pruning and defaulting --------------------------------------------------------------------------------------------

CONDITIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            name: {"type": "string"} for name in ("type", "status", "reason", "message", "lastTransitionTime")
        },
    },
}


def test_the_status_is_pruned_and_defaulted_by_the_schema():
    harness = with_status("{x: '{{ spec.v }}', dropped: '1', filled: '{{ other.data.x }}'}")
    properties = {"x": {"type": "string"}, "filled": {"type": "string", "default": "d"}, "conditions": CONDITIONS}
    with_schema(harness, status={"type": "object", "properties": properties})
    harness.settle()
    assert harness.status.keys() == {"x", "filled", "conditions"}
    assert harness.status["filled"] == "d"
    assert "observedGeneration" not in harness.condition()
    assert harness.plan().quiet


def conditions_of_others(*, required: tuple[str, ...] = ("type", "status"), **fields: Any) -> dict[str, Any]:
    """The schema of conditions in a CRD that was not made for ruleop."""
    items = CONDITIONS["items"]
    properties = {name: each for name, each in {**items["properties"], **fields}.items() if each is not None}
    return {**CONDITIONS, "items": {**items, "required": [*required], "properties": properties}}


def stored_status(harness: Harness, conditions: dict[str, Any], **more: Any) -> list[str]:
    """The types of the conditions that are written, by a schema that allows what is written."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "conditions": conditions}, **more}
    with_schema(harness, status=schema)
    harness.settle()
    assert harness.plan().quiet
    assert validate({"status": harness.status}, harness.info(harness.rule.kind).status_schema) == []
    return [each["type"] for each in harness.status.get("conditions", ())]


OWN = status_limits.CONDITIONS
PATTERN_OF_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
STANDARD = {  # as controller-gen writes that of metav1.Condition
    "description": "Conditions of it",
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "description": "Condition contains details",
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {"description": "the last time", "type": "string", "format": "date-time"},
            "message": {"type": "string", "maxLength": 32768},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "type": {"type": "string", "maxLength": 316, "pattern": PATTERN_OF_TYPE},
        },
    },
}
NARROWER: list[dict[str, Any]] = [
    {"maxItems": 2},
    {"type": "object"},
    {"items": {"maxProperties": 5}},
    {"items": {"required": ["type", "status", "observedGeneration"]}},
    {"items": {"required": ["type", "severity"]}},
    {"items": {"properties": {"type": {"enum": ["Ready"]}}}},
    {"items": {"properties": {"status": {"enum": ["True", "False"]}}}},
    {"items": {"properties": {"reason": {"minLength": 9}}}},
    {"items": {"properties": {"message": {"maxLength": 1}}}},
    {"items": {"properties": {"lastTransitionTime": {"pattern": "^x"}}}},
    {"items": {"properties": {"observedGeneration": {"minimum": 7}}}},
]
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def narrowed(schema: dict[str, Any], by: dict[str, Any]) -> dict[str, Any]:
    inner = {
        name: narrowed(schema[name], each) if isinstance(each, dict) and isinstance(schema.get(name), dict) else each
        for name, each in by.items()
    }
    return {**schema, **inner}


@pytest.mark.parametrize("schema", [OWN, STANDARD], ids=["own", "standard"])
@pytest.mark.parametrize("by", NARROWER, ids=str)
def test_conditions_are_validated_where_the_schema_restricts_them_further(schema: dict[str, Any], by: dict[str, Any]):
    assert status_limits.allows_all([READY], schema)
    assert not status_limits.allows_all([READY], narrowed(schema, by))


@pytest.mark.parametrize("name", OWN["items"]["properties"])
def test_conditions_are_validated_where_the_schema_lacks_one_of_their_fields(name: str):
    fields = {each: inner for each, inner in OWN["items"]["properties"].items() if each != name}
    assert not status_limits.allows_all([READY], {**OWN, "items": {**OWN["items"], "properties": fields}})


@pytest.mark.parametrize("own", [{"type": "x" * 317}, {"reason": ""}, {"reason": "1st"}, {"reason": "a-b"}], ids=str)
def test_conditions_are_validated_that_are_not_of_the_standard_form(own: dict[str, str]):
    assert not status_limits.allows_all([READY, {**READY, **own}], STANDARD)


def test_conditions_that_the_schema_restricts_less_need_no_validation():
    fields = {name: {"type": each["type"], "description": "d"} for name, each in OWN["items"]["properties"].items()}
    more = {**fields, "severity": {"type": "string", "enum": ["Info"]}}
    assert status_limits.allows_all([READY], {"items": {"properties": more}, "description": "d"})


def test_a_status_is_the_same_whether_its_conditions_are_validated_or_not(monkeypatch: pytest.MonkeyPatch):
    found = []
    for is_validated in (False, True):
        harness = with_status("{x: '{{ spec.v }}'}", more="conditions: [{type: Deleted, status: 'true'}]\n")
        if is_validated:
            monkeypatch.setattr(module, "allows_all", lambda *_: False)
        assert stored_status(harness, STANDARD) == ["Ready", "Reconciling", "Stalled", "Deleted"]
        found.append(harness.status)
    assert found[0] == found[1]


def test_a_condition_whose_type_the_schema_does_not_allow_is_left_out():
    named = conditions_of_others(type={"type": "string", "enum": ["Ready", "Deleted"]})
    harness = with_status("{x: '{{ spec.v }}'}", more="conditions: [{type: Deleted, status: 'true'}]\n")
    assert stored_status(harness, named) == ["Ready", "Deleted"]
    assert harness.status["x"] == "1"


def test_no_condition_is_written_that_lacks_a_required_field():
    harness = with_status("{x: '{{ spec.v }}'}")
    required = conditions_of_others(required=("type", "status", "lastUpdateTime"), lastUpdateTime={"type": "string"})
    assert stored_status(harness, required) == []
    assert harness.status == {"x": "1"}


@pytest.mark.parametrize("missing", ["type", "status"])
def test_no_condition_is_written_without_its_type_or_status(missing: str):
    """It would be added again in each pass."""
    harness = with_status("{x: '{{ spec.v }}'}")
    assert stored_status(harness, conditions_of_others(required=(), **{missing: None})) == []


@pytest.mark.parametrize("conditions", [{"type": "object"}, {"type": "array", "items": {"type": "string"}}], ids=str)
def test_no_condition_is_written_where_conditions_are_something_else(conditions: dict[str, Any]):
    assert stored_status(with_status("{x: '{{ spec.v }}'}"), conditions) == []


def test_conditions_of_others_stay_where_none_of_the_rules_fits():
    harness = with_status("{x: '{{ spec.v }}'}")
    harness.resource["status"] = {"conditions": [{"type": "Theirs", "status": "True"}]}
    assert stored_status(harness, conditions_of_others(type={"type": "string", "enum": ["Theirs"]})) == ["Theirs"]


def test_no_generation_is_written_where_it_has_to_be_a_string():
    harness = with_status("{x: '{{ spec.v }}'}")
    properties = {"x": {"type": "string"}, "observedGeneration": {"type": "string"}, "conditions": CONDITIONS}
    with_schema(harness, status={"type": "object", "properties": properties})
    harness.settle()
    assert harness.plan().quiet
    assert harness.status.keys() == {"x", "conditions"}


def test_no_condition_is_written_into_a_map_of_strings():
    harness = with_status("{x: '{{ spec.v }}'}")
    with_schema(harness, status={"type": "object", "additionalProperties": {"type": "string"}})
    harness.settle()
    assert harness.plan().quiet
    assert harness.status == {"x": "1"}


def test_no_status_is_written_without_the_fields_that_the_schema_requires():
    harness = with_status("{x: '{{ other.data.x }}'}")
    properties = {"x": {"type": "string"}, "filled": {"type": "string", "default": "d"}, "conditions": CONDITIONS}
    with_schema(harness, status={"type": "object", "required": ["x", "filled"], "properties": properties})
    harness.settle()
    assert harness.status == {}
    assert harness.plan().status.missing == ("x",)
    assert harness.names() == ["ConfigMap/a"]
    harness.add(config("other", {"x": "7"}))
    harness.settle()
    assert (harness.status["x"], harness.status["filled"], harness.ready()[0]) == ("7", "d", "True")
    assert harness.plan().status.missing == ()


def test_details_are_details_where_the_schema_drops_the_generation():
    text = STATEFUL_SET.replace("StatefulSet", "Deployment")
    harness = with_schema(
        Harness.of("children: {db: {template: db.yaml}}", db=text),
        status={"type": "object", "properties": {"conditions": CONDITIONS}},
    )
    harness.settle(controllers=False)
    status = {"observedGeneration": 1, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 1}
    harness.change(key("db", "Deployment", group="apps"), {"status": status})
    harness.settle(controllers=False)
    harness.change(key("db", "Deployment", group="apps"), {"status": {**status, "availableReplicas": 2}})
    assert harness.plan().status.details_only


def test_no_status_is_written_if_the_schema_has_none():
    harness = with_schema(with_status("{x: '1'}"))
    harness.settle()
    assert harness.status == {}
    assert harness.plan().quiet


def test_a_schema_without_conditions_gets_fields_of_the_status_and_events():
    harness = with_schema(
        with_status("{x: '{{ spec.v }}'}"), status={"type": "object", "properties": {"x": {"type": "string"}}}
    )
    harness.settle()
    harness.edit({})
    for _ in range(4):
        harness.step()
    assert harness.status == {}
    assert [event.reason for event in harness.events] == ["Synced", "RenderFailed"]


def test_a_cr_without_the_status_subresource_is_written_through_the_resource():
    harness = with_status("{x: '{{ spec.v }}'}")
    harness.infos["App"] = replace(harness.info(harness.rule.kind), status_subresource=False)
    harness.settle()
    assert harness.plan().status.subresource is False
    assert "observedGeneration" not in harness.status
    assert "observedGeneration" not in harness.condition()


def test_a_status_that_is_not_a_mapping_is_replaced():
    harness = with_status("{x: '1'}")
    harness.resource["status"] = "text"
    harness.settle()
    assert harness.status["x"] == "1"


def test_no_status_is_written_without_manage_status():
    harness = settled(CHILD + "manageStatus: false", {"v": "1"}, a=A)
    assert harness.plan().status is None
    assert harness.status == {}
    assert [event.reason for event in harness.events] == ["Synced"]


# -- conditions --------------------------------------------------------------------------------------------------------


def test_the_time_of_a_transition_moves_only_when_the_status_flips():
    harness = settled(CHILD, {"v": "1"}, a=A)
    assert harness.condition()["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    harness.now = "2026-02-02T00:00:00Z"
    edit_and_settle(harness, {"v": "2"})
    assert harness.condition()["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert harness.condition()["observedGeneration"] == 2
    edit_and_settle(harness, {})
    assert harness.condition()["status"] == "False"
    assert harness.condition()["lastTransitionTime"] == "2026-02-02T00:00:00Z"
    assert harness.condition("Reconciling")["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert harness.condition("Stalled")["lastTransitionTime"] == "2026-02-02T00:00:00Z"


def test_the_passage_of_time_alone_writes_nothing():
    harness = settled(CHILD, {"v": "1"}, a=A)
    harness.now = "2027-01-01T00:00:00Z"
    assert harness.plan().quiet


def test_a_status_write_has_uid_version_and_observed_generation():
    harness = Harness.of(CHILD, {"v": "1"}, a=A)
    harness.step()
    patch = harness.plan().status.patch
    assert patch is None or patch["metadata"].keys() == {"uid", "resourceVersion"}
    assert harness.status["observedGeneration"] == 1


USERS = """
conditions:
  - {type: Big, status: spec.big, reason: "{{ spec.reason }}", message: "it is {{ spec.big }}"}
  - {type: Later, status: other.data.x == "1"}
  - {type: Said, status: "'unknown'"}
  - {type: Half, status: "true if spec.big"}
  - {type: Broken, status: spec.nope}
"""


def test_custom_conditions_follow_their_expressions():
    harness = settled(CHILD + OTHER + USERS, {"v": "1", "big": True, "reason": "7 It's, big: "}, a=A)
    assert harness.condition("Big") | {"lastTransitionTime": ""} == {
        "type": "Big",
        "status": "True",
        "reason": "Its,big",
        "message": "it is true",
        "lastTransitionTime": "",
        "observedGeneration": 1,
    }
    assert (harness.condition("Later")["status"], harness.condition("Later")["reason"]) == ("Unknown", "Waiting")
    assert harness.condition("Later")["message"] == "other (ConfigMap/shop/other) is not available yet"
    assert harness.condition("Said")["status"] == "Unknown"
    assert (harness.condition("Broken")["status"], harness.condition("Broken")["reason"]) == ("Unknown", "RenderFailed")
    assert harness.condition()["reason"] == "RenderFailed"
    edit_and_settle(harness, {"v": "1", "big": False, "reason": ":::"})
    assert (harness.condition("Big")["status"], harness.condition("Big")["reason"]) == ("False", "DoesNotHold")
    assert harness.condition("Half")["status"] == "Unknown"
    edit_and_settle(harness, {"v": "1", "big": True, "reason": "::"})
    assert harness.condition("Big")["reason"] == "Holds"
    assert all(REASON.match(each["reason"]) for each in harness.status["conditions"])


def test_messages_of_conditions_and_events_are_bounded():
    harness = Harness.of(
        "children: {a: {template: a.yaml, forEach: range(30)}}",
        {"v": "1"},
        a=A.replace("name: a", "name: 'a{{ item }}-{{ 'x' * 200 }}'"),
    )
    harness.step()
    harness.change(next(iter(harness.objects)), {"data": {"v": "9"}})
    message = harness.plan().conditions.ready.message
    assert len(message) <= 1024
    assert all(len(event.message) <= 1024 for event in harness.plan().events)
    harness = settled(
        "children: {a: {template: a.yaml, forEach: range(9), readyWhen: 'false'}}",
        {"v": "1"},
        a=A.replace("name: a", "name: 'a{{ item }}'"),
    )
    assert harness.ready()[2].endswith("; and more")
    assert harness.ready()[2].count("readyWhen is false") == 8


def test_counts_of_pods_in_a_condition_are_details():
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {}}\n"
    harness = Harness.of(CHILD, a=text)
    harness.settle(controllers=False)
    expected = harness.ready()
    for available in (1, 2):
        status = {"observedGeneration": 1, "updatedReplicas": 3, "replicas": 3, "availableReplicas": available}
        harness.change(key("a", "Deployment", group="apps"), {"status": status})
        status_write = harness.plan().status
        assert status_write.patch is not None
        assert status_write.details_only
        ready = status_write.status["conditions"][0]
        assert ready["message"] == f"Deployment/a: {available} of 3 pods available"
    assert expected == ("False", "Progressing", "Deployment/a: its controller has not seen the latest change")
    status = {"observedGeneration": 1, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 3}
    harness.change(key("a", "Deployment", group="apps"), {"status": status})
    assert not harness.plan().status.details_only


CHAIN = """
children:
  backup: {template: backup.yaml, dependsOn: [db]}
  report: {template: report.yaml, dependsOn: [backup]}
  other: {template: other.yaml, readyWhen: 'false'}
  db: {template: db.yaml}
"""
STATEFUL_SET = (
    "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n"
    "spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {}}\n"
)


def test_a_chain_of_waits_begins_with_its_cause():
    named = {name: A.replace("name: a", f"name: {name}") for name in ("backup", "report", "other")}
    harness = Harness.of(CHAIN, {"v": "1"}, db=STATEFUL_SET, **named)
    harness.settle(controllers=False)
    status = {"observedGeneration": 1, "readyReplicas": 1, "replicas": 3}
    harness.change(key("db", "StatefulSet", group="apps"), {"status": status})
    harness.settle(controllers=False)
    assert harness.ready() == (
        "False",
        "Waiting",
        (
            "StatefulSet/db: 1 of 3 pods ready; ConfigMap/other: readyWhen is false; "
            "backup waits for db to be ready; report waits for backup to be ready"
        ),
    )
    harness.change(key("db", "StatefulSet", group="apps"), {"status": {**status, "readyReplicas": 2}})
    assert harness.plan().status.details_only
    harness.delete(key("other"))
    harness.settle(controllers=False)
    assert harness.plan().quiet


def failing(kind: str, **condition: str) -> dict[str, object]:
    return {"observedGeneration": 1, "conditions": [{"type": kind, **condition}]}


def test_the_words_of_a_controller_are_in_the_condition_unless_they_may_quote_a_secret():
    rejected = failing("ReplicaFailure", status="True", reason="FailedCreate", message='pods "x" is forbidden; quota\n')
    text = STATEFUL_SET.replace("StatefulSet", "Deployment")
    harness = Harness.of("children: {db: {template: db.yaml}}", db=text)
    harness.settle(controllers=False)
    harness.change(key("db", "Deployment", group="apps"), {"status": rejected})
    harness.settle(controllers=False)
    assert harness.ready()[2] == 'Deployment/db: 0 of 3 pods updated: pods "x" is forbidden, quota'
    secret = text.replace("{name: db}", "{name: db, annotations: {p: '{{ login.data.p }}'}}")
    body = "observe: {login: {version: v1, kind: Secret, name: login}}\nchildren: {db: {template: db.yaml}}"
    harness = Harness.of(body, db=secret)
    harness.add(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "login", "namespace": "shop"},
            "data": {"p": "eA=="},
        }
    )
    harness.settle(controllers=False)
    harness.change(key("db", "Deployment", group="apps"), {"status": rejected})
    harness.settle(controllers=False)
    assert harness.ready()[2] == "Deployment/db: 0 of 3 pods updated"


@pytest.mark.parametrize("name", ["paused", "skip-finalize"])
def test_a_misspelt_switch_is_reported(name: str):
    harness = Harness.of(CHILD, {"v": "1"}, a=A)
    harness.resource["metadata"]["annotations"] = {f"ruleop.dev/{name}": "yes"}
    harness.settle()
    status, reason, message = harness.ready()
    assert (status, reason) == ("True", "Ready")
    assert message == f'the annotation ruleop.dev/{name} has no effect: expected "true" or "false", not \'yes\''
    harness.resource["metadata"]["annotations"] = {f"ruleop.dev/{name}": "false"}
    harness.settle()
    assert harness.ready() == ("True", "Ready", "")


# -- validate ----------------------------------------------------------------------------------------------------------

VALIDATE = """
validate:
  - {rule: spec.v != "bad", message: "v is {{ spec.v }}"}
  - {rule: other.data.x == "1" if spec.look else true, message: look}
status: {name: "{{ a.metadata.name }}", ready: "{{ ready.a }}"}
"""


def test_an_invalid_cr_keeps_its_children_and_shows_their_status():
    harness = settled(
        CHILD.replace("a.yaml}", "a.yaml, readyWhen: this.data.v == '1'}") + OTHER + VALIDATE,
        {"v": "1", "look": False},
        a=A,
    )
    harness.events.clear()
    edit_and_settle(harness, {"v": "bad", "look": False})
    assert harness.objects[key("a")]["data"] == {"v": "1"}
    assert harness.ready() == ("False", "Invalid", "v is bad")
    assert harness.condition("Stalled")["status"] == "True"
    assert [(event.type, event.reason, event.message) for event in harness.events] == [
        ("Warning", "InvalidSpec", "v is bad")
    ]
    assert (harness.status["name"], harness.status["ready"]) == ("a", True)
    harness.change(key("a"), {"data": {"v": "2"}})
    harness.settle()
    assert harness.status["ready"] is False
    harness.change(key("a"), {"data": {"v": None}})
    harness.settle()
    assert harness.status["ready"] is False


def test_a_validation_with_unavailable_values_waits_and_a_failed_one_has_its_position():
    harness = settled(CHILD + OTHER + VALIDATE, {"v": "1", "look": True}, a=A)
    assert harness.names() == []
    assert harness.ready() == (
        "False",
        "Waiting",
        "waiting for other (ConfigMap/shop/other), which `validate` reads",
    )
    assert harness.events == []
    assert harness.plan().actions == ()
    harness.add(config("other", {"x": "1"}))
    harness.settle()
    assert harness.ready()[0] == "True"
    edit_and_settle(harness, {"look": False})
    assert harness.ready()[:2] == ("False", "RenderFailed")
    assert "spec.v is not set" in harness.ready()[2]


def test_a_child_whose_readywhen_fails_while_the_cr_is_invalid_is_not_ready():
    harness = settled(
        CHILD.replace("a.yaml}", "a.yaml, readyWhen: spec.nope == 1}") + OTHER + VALIDATE,
        {"v": "1", "look": False},
        a=A,
    )
    edit_and_settle(harness, {"v": "bad", "look": False})
    assert harness.status["ready"] is False


def test_a_list_of_children_is_a_list_while_the_cr_is_invalid():
    body = "children: {a: {template: a.yaml, forEach: range(2), readyWhen: item == 7}}\nstatus: {names: \"{{ a | map(attribute='metadata.name') }}\", ready: '{{ ready.a }}'}\n"
    harness = settled(
        body + "validate: [{rule: spec.v == '1', message: bad}]",
        {"v": "1"},
        a=A.replace("name: a", "name: 'a{{ item }}'"),
    )
    edit_and_settle(harness, {"v": "2"})
    assert harness.status["names"] == ["a0", "a1"]
    assert harness.status["ready"] is True


# -- pause, period, events ---------------------------------------------------------------------------------------------


WHY_PAUSED = f"the annotation {PAUSED} stops all changes"


def pause(harness: Harness, *, over: bool = False) -> None:
    harness.patch_resource({"annotations": {PAUSED: "false" if over else "true"}})
    harness.settle()


def statuses(harness: Harness) -> dict[str, str]:
    return {each["type"]: each["status"] for each in harness.status["conditions"]}


def test_a_pause_stops_all_writes_but_the_status():
    harness = settled(CHILD, {"v": "1"}, a=A)
    harness.edit({"v": "2"})
    pause(harness)
    assert harness.objects[key("a")]["data"] == {"v": "1"}
    pause(harness, over=True)
    assert harness.objects[key("a")]["data"] == {"v": "2"}


def test_a_paused_cr_keeps_ready_and_has_the_condition_paused():
    harness = settled(CHILD, {"v": "1"}, a=A)
    before, reported = harness.condition("Ready"), len(harness.events)
    pause(harness)
    assert harness.condition("Ready") == before
    assert statuses(harness) == {"Ready": "True", "Reconciling": "False", "Stalled": "False", "Paused": "True"}
    assert (harness.condition("Paused")["reason"], harness.condition("Paused")["message"]) == ("Paused", WHY_PAUSED)
    assert harness.plan().quiet
    pause(harness, over=True)
    assert statuses(harness) == {"Ready": "True", "Reconciling": "False", "Stalled": "False"}
    assert len(harness.events) == reported, "neither is news"


def test_edits_during_a_pause_are_observed_after_it():
    """By kstatus it is then in progress instead of failed."""
    harness = settled(CHILD, {"v": "1"}, a=A)
    pause(harness)
    edit_and_settle(harness, {"v": "2"})
    assert harness.ready()[0] == "True"
    assert (harness.status["observedGeneration"], harness.condition("Ready")["observedGeneration"]) == (1, 1)
    assert harness.condition("Paused")["observedGeneration"] == 2
    pause(harness, over=True)
    assert (harness.status["observedGeneration"], harness.condition("Ready")["observedGeneration"]) == (2, 2)


def test_a_paused_cr_has_reconciling_false_and_keeps_stalled():
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"
    harness = Harness.of("children: {d: {template: d.yaml}}\n", d=deployment)
    harness.settle(controllers=False)
    harness.patch_resource({"annotations": {PAUSED: "true"}})
    harness.settle(controllers=False)
    assert statuses(harness) == {"Ready": "False", "Reconciling": "False", "Stalled": "False", "Paused": "True"}
    assert harness.ready()[1] == "Progressing"
    broken = settled(CHILD, {}, a=A)
    pause(broken)
    assert statuses(broken) == {"Ready": "False", "Reconciling": "False", "Stalled": "True", "Paused": "True"}
    assert broken.ready()[1] == "RenderFailed"


def test_a_cr_paused_before_its_first_reconcile_has_ready_unknown():
    harness = Harness.of(CHILD, {"v": "1"}, a=A)
    pause(harness)
    assert harness.names() == []
    assert harness.ready() == ("Unknown", "Paused", WHY_PAUSED)
    assert statuses(harness) == {"Ready": "Unknown", "Reconciling": "False", "Stalled": "False", "Paused": "True"}
    assert "observedGeneration" not in harness.status
    assert harness.events == []
    pause(harness, over=True)
    assert harness.ready()[0] == "True"
    assert [event.reason for event in harness.events] == ["Synced"]


def test_a_foreign_condition_paused_is_kept():
    harness = settled(CHILD, {"v": "1"}, a=A)
    theirs = {"type": "Paused", "status": "False", "reason": "Running"}
    harness.resource["status"]["conditions"].append(theirs)
    harness.settle()
    assert theirs in harness.status["conditions"]


def test_status_fields_are_updated_in_a_pause():
    harness = with_status("{seen: '{{ other.data.v }}'}")
    harness.add(config("other", {"v": "1"}))
    harness.settle()
    pause(harness)
    harness.change(key("other"), {"data": {"v": "2"}})
    harness.settle()
    assert harness.status["seen"] == "2"
    assert harness.ready()[0] == "True"


def test_an_invalid_period_is_reported_and_blocks_nothing():
    harness = Harness.of(CHILD, {"v": "1"}, a=A)
    harness.patch_resource({"annotations": {RECONCILE_PERIOD: "10"}})
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]
    assert harness.ready()[:2] == ("True", "Ready")
    assert f"the annotation {RECONCILE_PERIOD} has no effect: the duration" in harness.ready()[2]
    harness.patch_resource({"annotations": {RECONCILE_PERIOD: "10m"}})
    harness.settle()
    assert harness.ready() == ("True", "Ready", "")


def test_events_come_on_transitions_only():
    harness = settled(CHILD, {"v": "1"}, a=A)
    for spec in ({}, {}, {"v": "1"}, {"v": "2"}):
        harness.edit(spec)
        for _ in range(3):
            harness.step()
    assert [(event.type, event.reason) for event in harness.events] == [
        ("Normal", "Synced"),
        ("Warning", "RenderFailed"),
        ("Normal", "Synced"),
    ], "an edit that is simply carried out is nothing to tell"
    assert harness.events[0].message == "App synced successfully"
    harness.events.clear()
    harness.served["ConfigMap"] = Served.PENDING
    harness.settle()
    assert harness.events == []
    harness.served["ConfigMap"] = Served.FORBIDDEN
    harness.settle()
    assert [(event.type, event.reason) for event in harness.events] == [("Warning", "Forbidden")]


def test_becoming_ready_sends_no_event_if_nothing_was_written():
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"
    harness = Harness.of("children: {d: {template: d.yaml}}\n", d=deployment)
    harness.settle(controllers=False)
    assert harness.ready()[1] == "Progressing"
    harness.settle()
    assert harness.ready()[1] == "Ready"
    assert [event.reason for event in harness.events] == ["Synced"]


def test_a_different_error_sends_another_event():
    harness = Harness.of(CHILD, {"v": "1"}, a=A)
    harness.refuse[key("a")] = Failed(Failure.INVALID, "first")
    harness.step()
    harness.step()
    harness.refuse[key("a")] = Failed(Failure.INVALID, "second")
    harness.step()
    assert [event.message[-6:] for event in harness.events] == [" first", "second"]


def test_an_unsettled_plan_sends_no_events_before_its_writes():
    harness = Harness.of(CHILD + "status: {x: '{{ spec.nope }}'}", {"v": "1"}, a=A)
    assert harness.plan().actions
    assert harness.plan().events == ()


GENERATED = """
apiVersion: v1
kind: Secret
metadata: {name: credentials}
stringData: {password: "{{ random_password(8) }}"}
"""
NEEDS_IT = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {checksum: "{{ credentials.data | sha256(8) }}"}
"""
GENERATED_AND_READ = (
    "children: {credentials: {template: s.yaml, apply: {strategy: create-only}}, web: {template: w.yaml}}"
)


def test_synced_is_sent_after_the_child_that_waits_for_a_secret_is_written():
    harness = Harness.of(GENERATED_AND_READ, s=GENERATED, w=NEEDS_IT)
    harness.step()
    assert harness.names() == ["Secret/credentials"]
    assert harness.events == []
    assert harness.ready() == ("False", "Waiting", "web waits for ConfigMap/shop/web to be written")
    harness.settle()
    assert harness.names() == ["ConfigMap/web", "Secret/credentials"]
    assert [event.reason for event in harness.events] == ["Synced"]
    assert harness.ready()[0] == "True"


def test_synced_is_sent_after_a_recreation_and_not_between_delete_and_create():
    body = "children: {a: {template: a.yaml, apply: {onImmutable: recreate}}}"
    harness = settled(
        body, {"v": "1"}, a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
    )
    harness.refuse[key("a")] = Failed(Failure.IMMUTABLE, "patch configmaps shop/a: data: field is immutable")
    harness.edit({"v": "2"})
    reported = len(harness.events)
    harness.step()
    assert harness.ready()[1:] == ("Waiting", "a waits for ConfigMap/shop/a to be written")
    del harness.refuse[key("a")]
    harness.step()
    assert harness.names() == []
    assert harness.events[reported:] == []
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "2"}
    assert [event.reason for event in harness.events[reported:]] == ["Synced"]
