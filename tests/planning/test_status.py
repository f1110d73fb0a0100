"""What a CR's status says, and when it is written."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

from ruleop.merge import same
from ruleop.planning import Failed, Failure, KindInfo, Served
from ruleop.planning.marks import PAUSED, RECONCILE_PERIOD
from tests.planning.world import World, config, key

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
CHILD = "children: {a: {template: a.yaml}}\n"
OTHER = "observe: {other: {version: v1, kind: ConfigMap, name: other}}\n"
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?\Z")


def with_status(text: str, spec: dict[str, Any] | None = None, more: str = "", **files: str) -> World:
    return World.of(CHILD + OTHER + "status: " + text + "\n" + more, {"v": "1", **(spec or {})}, a=A, **files)


def with_schema(world: World, **status: Any) -> World:
    """The kind with this schema of status."""
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, **status},
    }
    world.infos["App"] = replace(world.info(world.rule.kind), status_schema=schema)
    return world


# -- the projected fields ----------------------------------------------------------------------------------------------------------------


def test_status_fields_keep_their_types_and_omitted_ones_are_absent():
    text = "{n: '{{ spec.n }}', b: '{{ spec.b }}', l: '{{ spec.l }}', m: {x: '{{ spec.n }}', w: '{{ omit }}'}, o: '{{ omit }}', c: plain, t: 'n={{ spec.n }}'}"
    world = with_status(text.replace("n:", "num:"), {"n": 3, "b": True, "l": [1, "2"]})
    world.settle()
    found = {name: value for name, value in world.status.items() if name not in ("conditions", "observedGeneration")}
    assert found == {"num": 3, "b": True, "l": [1, "2"], "m": {"x": 3}, "c": "plain", "t": "n=3"}


@pytest.mark.parametrize(
    "text", ["{ratio: '{{ 100 * spec.n / 4 }}', l: [{whole: '{{ spec.n / 1 }}'}, '{{ spec.n / 4 }}']}", "numbers.yaml"]
)
def test_a_whole_number_is_written_as_an_integer(text: str):
    template = "ratio: {{ 100 * spec.n / 4 }}\nl: [{whole: {{ spec.n / 1 }}}, {{ spec.n / 4 }}]\n"
    world = with_status(text, {"n": 2}, numbers=template)
    world.settle()
    found = {name: world.status[name] for name in ("ratio", "l")}
    assert same(found, {"ratio": 50, "l": [{"whole": 2}, 0.5]})
    world.resource = orjson.loads(
        orjson.dumps(world.resource).replace(b"50.0", b"50").replace(b"2.0", b"2")
    )  # as Go writes them
    assert world.plan().quiet


def test_a_missing_value_leaves_out_its_field_or_item():
    world = with_status("{x: '{{ other.data.x }}', l: ['1', '{{ other.data.x }}'], z: '{{ spec.v }}'}")
    world.settle()
    assert "x" not in world.status
    assert (world.status["l"], world.status["z"]) == (["1"], "1")
    assert world.ready()[0] == "True"
    world.add(config("other", {"x": "7"}))
    world.settle()
    assert (world.status["x"], world.status["l"]) == ("7", ["1", "7"])
    world.delete(key("other"))
    world.settle()
    assert "x" not in world.status


def test_a_field_that_loses_a_member_is_written_once():
    world = with_status("{m: '{{ spec.m }}'}", {"m": {"x": "1", "w": {"deep": "2"}}})
    world.settle()
    world.edit({"v": "1", "m": {"x": "1"}})
    world.settle()
    assert world.status["m"] == {"x": "1"}
    assert world.plan().quiet


def test_nulls_inside_a_field_are_written_once():
    world = with_status("{m: '{{ spec.m }}'}", {"m": {"x": None, "w": "1"}})
    world.infos["App"] = KindInfo(world.rule.kind)
    world.settle()
    assert world.status["m"] == {"w": "1"}


def test_other_fields_and_conditions_of_the_status_are_not_touched():
    world = with_status("{x: '{{ spec.v }}'}")
    theirs = {
        "type": "Theirs",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    world.resource["status"] = {"theirs": {"deep": 1}, "conditions": [theirs, "rubbish"]}
    world.settle()
    assert world.status["theirs"] == {"deep": 1}
    assert world.status["conditions"][0] == theirs


def test_an_error_in_a_status_field_is_reported_and_stops_no_child():
    world = with_status("{x: '{{ spec.nope }}', z: '{{ spec.v }}', w: '{{ spec.nope }}'}")
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    assert "x" not in world.status
    assert world.status["z"] == "1"
    assert world.ready()[:2] == ("False", "RenderFailed")
    assert re.match(r"status: watches\.yaml:6:\d+: .*spec\.nope is not set", world.ready()[2])


def test_a_status_template_manages_its_fields_in_every_branch():
    text = "x: '{{ spec.v }}'\n{% if spec.more %}\nmore: yes-{{ spec.v }}\n{% endif %}\nip: {{ other.data.ip }}\n"
    world = with_status("s.yaml", {"more": True}, s=text)
    world.resource["status"] = {"theirs": 1}
    world.settle()
    assert (world.status["x"], world.status["more"]) == ("1", "yes-1")
    assert "ip" not in world.status
    world.edit({"v": "1", "more": False})
    world.settle()
    assert "more" not in world.status
    assert world.status["theirs"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "the template of a status must render one mapping"),
        ("a: b\n---\nc: d\n", "the template of a status must render one mapping"),
        ("a: {{ spec.nope }}\n", "spec.nope is not set"),
    ],
)
def test_a_status_template_must_render_a_mapping(text: str, said: str):
    world = with_status("s.yaml", s=text)
    world.settle()
    assert said in world.ready()[2]
    assert world.names() == ["ConfigMap/a"]


def test_a_status_template_that_waits_or_is_empty_is_left_out():
    for text in ("{% if other.data.x %}\na: b\n{% endif %}\n", "{% if false %}\na: b\n{% endif %}\n"):
        world = with_status("s.yaml", s=text)
        world.settle()
        assert "a" not in world.status
        assert world.ready()[0] == "True"


def test_computed_names_below_a_field_are_removed_with_their_source():
    for status in ("{names: {'{{ spec.v }}-name': '1', '{{ omit }}': '2'}}", "s.yaml"):
        world = with_status(status, s="names:\n  {{ spec.v }}-name: '1'\n")
        world.settle()
        assert world.status["names"] == {"1-name": "1"}
        world.edit({"v": "2"})
        world.settle()
        assert world.status["names"] == {"2-name": "1"}


# -- what the server keeps -----------------------------------------------------------------------------------------------------------------

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
    world = with_status("{x: '{{ spec.v }}', dropped: '1', filled: '{{ other.data.x }}'}")
    properties = {"x": {"type": "string"}, "filled": {"type": "string", "default": "d"}, "conditions": CONDITIONS}
    with_schema(world, status={"type": "object", "properties": properties})
    world.settle()
    assert world.status.keys() == {"x", "filled", "conditions"}
    assert world.status["filled"] == "d"
    assert "observedGeneration" not in world.condition()
    assert world.plan().quiet


def test_no_status_is_written_if_the_schema_has_none():
    world = with_schema(with_status("{x: '1'}"))
    world.settle()
    assert world.status == {}
    assert world.plan().quiet


def test_without_conditions_in_the_schema_fields_and_events_are_still_written():
    world = with_schema(
        with_status("{x: '{{ spec.v }}'}"), status={"type": "object", "properties": {"x": {"type": "string"}}}
    )
    world.settle()
    world.edit({})
    for _ in range(4):
        world.step()
    assert world.status == {}
    assert [event.reason for event in world.events] == ["Synced", "RenderFailed"]


def test_without_the_subresource_the_status_is_written_through_the_resource():
    world = with_status("{x: '{{ spec.v }}'}")
    world.infos["App"] = replace(world.info(world.rule.kind), status_subresource=False)
    world.settle()
    assert world.plan().status.subresource is False
    assert "observedGeneration" not in world.status
    assert "observedGeneration" not in world.condition()


def test_a_status_that_is_not_a_mapping_is_replaced():
    world = with_status("{x: '1'}")
    world.resource["status"] = "text"
    world.settle()
    assert world.status["x"] == "1"


def test_no_status_is_written_without_manage_status():
    world = World.of(CHILD + "manageStatus: false", {"v": "1"}, a=A)
    world.settle()
    assert world.plan().status is None
    assert world.status == {}
    assert [event.reason for event in world.events] == ["Synced"]


# -- conditions ----------------------------------------------------------------------------------------------------------------------------


def test_the_time_of_a_transition_moves_only_when_the_status_flips():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.settle()
    assert world.condition()["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    world.now = "2026-02-02T00:00:00Z"
    world.edit({"v": "2"})
    world.settle()
    assert world.condition()["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert world.condition()["observedGeneration"] == 2
    world.edit({})
    world.settle()
    assert world.condition()["status"] == "False"
    assert world.condition()["lastTransitionTime"] == "2026-02-02T00:00:00Z"
    assert world.condition("Reconciling")["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert world.condition("Stalled")["lastTransitionTime"] == "2026-02-02T00:00:00Z"


def test_time_alone_writes_nothing():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.settle()
    world.now = "2027-01-01T00:00:00Z"
    assert world.plan().quiet


def test_the_status_has_uid_version_and_observed_generation():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.step()
    patch = world.plan().status.patch
    assert patch is None or patch["metadata"].keys() == {"uid", "resourceVersion"}
    assert world.status["observedGeneration"] == 1


USERS = """
conditions:
  - {type: Big, status: spec.big, reason: "{{ spec.reason }}", message: "it is {{ spec.big }}"}
  - {type: Later, status: other.data.x == "1"}
  - {type: Said, status: "'unknown'"}
  - {type: Half, status: "true if spec.big"}
  - {type: Broken, status: spec.nope}
"""


def test_custom_conditions_follow_their_expressions():
    world = World.of(CHILD + OTHER + USERS, {"v": "1", "big": True, "reason": "7 It's, big: "}, a=A)
    world.settle()
    assert world.condition("Big") | {"lastTransitionTime": ""} == {
        "type": "Big",
        "status": "True",
        "reason": "Its,big",
        "message": "it is true",
        "lastTransitionTime": "",
        "observedGeneration": 1,
    }
    assert (world.condition("Later")["status"], world.condition("Later")["reason"]) == ("Unknown", "Waiting")
    assert world.condition("Later")["message"] == "other (ConfigMap/shop/other) is not available yet"
    assert world.condition("Said")["status"] == "Unknown"
    assert (world.condition("Broken")["status"], world.condition("Broken")["reason"]) == ("Unknown", "RenderFailed")
    assert world.condition()["reason"] == "RenderFailed"
    world.edit({"v": "1", "big": False, "reason": ":::"})
    world.settle()
    assert (world.condition("Big")["status"], world.condition("Big")["reason"]) == ("False", "DoesNotHold")
    assert world.condition("Half")["status"] == "Unknown"
    world.edit({"v": "1", "big": True, "reason": "::"})
    world.settle()
    assert world.condition("Big")["reason"] == "Holds"
    assert all(REASON.match(each["reason"]) for each in world.status["conditions"])


def test_messages_are_bounded():
    world = World.of(
        "children: {a: {template: a.yaml, forEach: range(30)}}",
        {"v": "1"},
        a=A.replace("name: a", "name: 'a{{ item }}-{{ 'x' * 200 }}'"),
    )
    world.step()
    world.change(next(iter(world.objects)), {"data": {"v": "9"}})
    message = world.plan().conditions.ready.message
    assert len(message) <= 1024
    assert all(len(event.message) <= 1024 for event in world.plan().events)
    world = World.of(
        "children: {a: {template: a.yaml, forEach: range(9), readyWhen: 'false'}}",
        {"v": "1"},
        a=A.replace("name: a", "name: 'a{{ item }}'"),
    )
    world.settle()
    assert world.ready()[2].endswith("; and more")
    assert world.ready()[2].count("is not ready") == 8


def test_messages_contain_no_counters():
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {}}\n"
    world = World.of(CHILD, a=text)
    world.settle(controllers=False)
    said = world.ready()
    for available in (1, 2):
        status = {"observedGeneration": 1, "updatedReplicas": 3, "replicas": 3, "availableReplicas": available}
        world.change(key("a", "Deployment", group="apps"), {"status": status})
        assert world.plan().quiet
    assert said == ("False", "Progressing", "Deployment/a is not ready")


# -- validate --------------------------------------------------------------------------------------------------------------------------------

VALIDATE = """
validate:
  - {rule: spec.v != "bad", message: "v is {{ spec.v }}"}
  - {rule: other.data.x == "1" if spec.look else true, message: look}
status: {name: "{{ a.metadata.name }}", ready: "{{ ready.a }}"}
"""


def test_an_invalid_cr_keeps_its_children_and_shows_their_status():
    world = World.of(
        CHILD.replace("a.yaml}", "a.yaml, readyWhen: this.data.v == '1'}") + OTHER + VALIDATE,
        {"v": "1", "look": False},
        a=A,
    )
    world.settle()
    world.events.clear()
    world.edit({"v": "bad", "look": False})
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "1"}
    assert world.ready() == ("False", "Invalid", "v is bad")
    assert world.condition("Stalled")["status"] == "True"
    assert [(event.type, event.reason, event.message) for event in world.events] == [
        ("Warning", "InvalidSpec", "v is bad")
    ]
    assert (world.status["name"], world.status["ready"]) == ("a", True)
    world.change(key("a"), {"data": {"v": "2"}})
    world.settle()
    assert world.status["ready"] is False
    world.change(key("a"), {"data": {"v": None}})
    world.settle()
    assert world.status["ready"] is False


def test_a_validation_with_missing_values_waits_and_a_failed_one_has_its_place():
    world = World.of(CHILD + OTHER + VALIDATE, {"v": "1", "look": True}, a=A)
    world.settle()
    assert world.names() == []
    assert world.ready() == (
        "False",
        "Waiting",
        "other (ConfigMap/shop/other) is not there yet, and validation needs it",
    )
    assert world.events == []
    assert world.plan().actions == ()
    world.add(config("other", {"x": "1"}))
    world.settle()
    assert world.ready()[0] == "True"
    world.edit({"look": False})
    world.settle()
    assert world.ready()[:2] == ("False", "RenderFailed")
    assert "spec.v is not set" in world.ready()[2]


def test_ready_when_that_fails_while_the_cr_is_invalid_is_not_ready():
    world = World.of(
        CHILD.replace("a.yaml}", "a.yaml, readyWhen: spec.nope == 1}") + OTHER + VALIDATE,
        {"v": "1", "look": False},
        a=A,
    )
    world.settle()
    world.edit({"v": "bad", "look": False})
    world.settle()
    assert world.status["ready"] is False


def test_a_list_of_children_is_a_list_while_the_cr_is_invalid():
    body = "children: {a: {template: a.yaml, forEach: range(2), readyWhen: item == 7}}\nstatus: {names: \"{{ a | map(attribute='metadata.name') }}\", ready: '{{ ready.a }}'}\n"
    world = World.of(
        body + "validate: [{rule: spec.v == '1', message: bad}]",
        {"v": "1"},
        a=A.replace("name: a", "name: 'a{{ item }}'"),
    )
    world.settle()
    world.edit({"v": "2"})
    world.settle()
    assert world.status["names"] == ["a0", "a1"]
    assert world.status["ready"] is True


# -- pause, period, events -------------------------------------------------------------------------------------------------------------------


WHY_PAUSED = f"the annotation {PAUSED} stops all changes"


def pause(world: World, *, over: bool = False) -> None:
    world.patch_resource({"annotations": {PAUSED: "false" if over else "true"}})
    world.settle()


def statuses(world: World) -> dict[str, str]:
    return {each["type"]: each["status"] for each in world.status["conditions"]}


def test_a_pause_stops_all_writes_but_the_status():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.settle()
    world.edit({"v": "2"})
    pause(world)
    assert world.objects[key("a")]["data"] == {"v": "1"}
    pause(world, over=True)
    assert world.objects[key("a")]["data"] == {"v": "2"}


def test_a_paused_cr_keeps_ready_and_has_the_condition_paused():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.settle()
    before, told = world.condition("Ready"), len(world.events)
    pause(world)
    assert world.condition("Ready") == before
    assert statuses(world) == {"Ready": "True", "Reconciling": "False", "Stalled": "False", "Paused": "True"}
    assert (world.condition("Paused")["reason"], world.condition("Paused")["message"]) == ("Paused", WHY_PAUSED)
    assert world.plan().quiet
    pause(world, over=True)
    assert statuses(world) == {"Ready": "True", "Reconciling": "False", "Stalled": "False"}
    assert len(world.events) == told, "neither is news"


def test_edits_during_a_pause_are_observed_after_it():
    """By kstatus it is then in progress, which is true, and not failed."""
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.settle()
    pause(world)
    world.edit({"v": "2"})
    world.settle()
    assert world.ready()[0] == "True"
    assert (world.status["observedGeneration"], world.condition("Ready")["observedGeneration"]) == (1, 1)
    assert world.condition("Paused")["observedGeneration"] == 2
    pause(world, over=True)
    assert (world.status["observedGeneration"], world.condition("Ready")["observedGeneration"]) == (2, 2)


def test_in_a_pause_reconciling_is_false_and_stalled_is_kept():
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"
    world = World.of("children: {d: {template: d.yaml}}\n", d=deployment)
    world.settle(controllers=False)
    world.patch_resource({"annotations": {PAUSED: "true"}})
    world.settle(controllers=False)
    assert statuses(world) == {"Ready": "False", "Reconciling": "False", "Stalled": "False", "Paused": "True"}
    assert world.ready()[1] == "Progressing"
    broken = World.of(CHILD, {}, a=A)
    broken.settle()
    pause(broken)
    assert statuses(broken) == {"Ready": "False", "Reconciling": "False", "Stalled": "True", "Paused": "True"}
    assert broken.ready()[1] == "RenderFailed"


def test_a_cr_paused_before_its_first_reconcile_has_ready_unknown():
    world = World.of(CHILD, {"v": "1"}, a=A)
    pause(world)
    assert world.names() == []
    assert world.ready() == ("Unknown", "Paused", WHY_PAUSED)
    assert statuses(world) == {"Ready": "Unknown", "Reconciling": "False", "Stalled": "False", "Paused": "True"}
    assert "observedGeneration" not in world.status
    assert world.events == []
    pause(world, over=True)
    assert world.ready()[0] == "True"
    assert [event.reason for event in world.events] == ["Synced"]


def test_a_foreign_condition_paused_is_kept():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.settle()
    theirs = {"type": "Paused", "status": "False", "reason": "Running"}
    world.resource["status"]["conditions"].append(theirs)
    world.settle()
    assert theirs in world.status["conditions"]


def test_status_fields_are_updated_in_a_pause():
    world = with_status("{seen: '{{ other.data.v }}'}")
    world.add(config("other", {"v": "1"}))
    world.settle()
    pause(world)
    world.change(key("other"), {"data": {"v": "2"}})
    world.settle()
    assert world.status["seen"] == "2"
    assert world.ready()[0] == "True"


def test_an_invalid_period_is_reported_and_blocks_nothing():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.patch_resource({"annotations": {RECONCILE_PERIOD: "10"}})
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    assert world.ready()[:2] == ("True", "Ready")
    assert f"the annotation {RECONCILE_PERIOD} has no effect: the duration" in world.ready()[2]
    world.patch_resource({"annotations": {RECONCILE_PERIOD: "10m"}})
    world.settle()
    assert world.ready() == ("True", "Ready", "")


def test_events_come_on_transitions_only():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.settle()
    for spec in ({}, {}, {"v": "1"}, {"v": "2"}):
        world.edit(spec)
        for _ in range(3):
            world.step()
    assert [(event.type, event.reason) for event in world.events] == [
        ("Normal", "Synced"),
        ("Warning", "RenderFailed"),
        ("Normal", "Synced"),
    ], "an edit that is simply carried out is nothing to tell"
    assert world.events[0].message == "App synced successfully"
    world.events.clear()
    world.served["ConfigMap"] = Served.PENDING
    world.settle()
    assert world.events == []
    world.served["ConfigMap"] = Served.FORBIDDEN
    world.settle()
    assert [(event.type, event.reason) for event in world.events] == [("Warning", "Forbidden")]


def test_becoming_ready_sends_no_event_if_nothing_was_written():
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"
    world = World.of("children: {d: {template: d.yaml}}\n", d=deployment)
    world.settle(controllers=False)
    assert world.ready()[1] == "Progressing"
    world.settle()
    assert world.ready()[1] == "Ready"
    assert [event.reason for event in world.events] == ["Synced"]


def test_another_error_is_another_event():
    world = World.of(CHILD, {"v": "1"}, a=A)
    world.refuse[key("a")] = Failed(Failure.INVALID, "first")
    world.step()
    world.step()
    world.refuse[key("a")] = Failed(Failure.INVALID, "second")
    world.step()
    assert [event.message[-6:] for event in world.events] == [" first", "second"]


def test_an_unsettled_plan_sends_no_events_before_its_writes():
    world = World.of(CHILD + "status: {x: '{{ spec.nope }}'}", {"v": "1"}, a=A)
    assert world.plan().actions
    assert world.plan().events == ()


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
    world = World.of(GENERATED_AND_READ, s=GENERATED, w=NEEDS_IT)
    world.step()
    assert world.names() == ["Secret/credentials"]
    assert world.events == []
    assert world.ready() == ("False", "Waiting", "web waits for ConfigMap/shop/web to be written")
    world.settle()
    assert world.names() == ["ConfigMap/web", "Secret/credentials"]
    assert [event.reason for event in world.events] == ["Synced"]
    assert world.ready()[0] == "True"


def test_synced_is_sent_after_a_recreation_and_not_between_delete_and_create():
    body = "children: {a: {template: a.yaml, apply: {onImmutable: recreate}}}"
    world = World.of(
        body, {"v": "1"}, a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
    )
    world.settle()
    world.refuse[key("a")] = Failed(Failure.IMMUTABLE, "patch configmaps shop/a: data: field is immutable")
    world.edit({"v": "2"})
    told = len(world.events)
    world.step()
    assert world.ready()[1:] == ("Waiting", "a waits for ConfigMap/shop/a to be written")
    del world.refuse[key("a")]
    world.step()
    assert world.names() == []
    assert world.events[told:] == []
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "2"}
    assert [event.reason for event in world.events[told:]] == ["Synced"]
