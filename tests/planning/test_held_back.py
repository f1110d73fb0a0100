"""An error holds back only the deletions that it could make wrong. All others go, and those that are
held back are reported."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.rules import Project
from ruleop.planning import Delete, Failed, Failure, Served
from ruleop.planning.model.actions import HeldDeletion
from tests.exploration import examples
from tests.planning.harness import Harness, app, key, project
from tests.planning.settled import edit_and_settle, settled

QUOTA = "quota: {object: {apiVersion: v1, kind: ResourceQuota, metadata: {name: quota}, spec: {hard: {cpu: '{{ spec.cpu }}'}}}}"
MEMBERS = (
    "members: {forEach: spec.members, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ item.name }}'}, "
    "data: {as: '{{ item.role }}'}}}"
)
TEAM = f"children: {{{QUOTA}, {MEMBERS}}}"
QUOTA_KEY = key("quota", "ResourceQuota")
REFUSED = Failed(Failure.INVALID, "quantities must match the regular expression")


def members(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "role": "admin"} for name in names]


def team(*names: str, body: str = TEAM, **spec: Any) -> Harness:
    return settled(body, {"cpu": "1", "members": members(*names), **spec})


def configs(found: Harness) -> list[str]:
    return [name.removeprefix("ConfigMap/") for name in found.names() if name.startswith("ConfigMap/")]


def deletion_events(found: Harness) -> list[str]:
    return [event.message for event in found.events if event.reason == "DeletionHeldBack"]


# -- what goes ---------------------------------------------------------------------------------------------------------


def test_a_removed_member_goes_in_the_same_pass_though_the_server_rejects_another_child():
    found = team("ada", "joe")
    found.refuse[QUOTA_KEY] = REFUSED
    found.edit({"cpu": "ten", "members": members("zoe")})
    found.step()
    assert configs(found) == ["zoe"]
    assert found.ready()[1] == "ApplyFailed"
    assert "held back" not in found.ready()[2]


def test_a_removed_member_goes_in_the_same_pass_though_another_child_cannot_be_rendered():
    found = team("ada", "joe")
    found.edit({"members": members("joe")})
    found.step()
    assert configs(found) == ["joe"]
    assert found.ready()[1] == "RenderFailed"
    assert "held back" not in found.ready()[2]


@pytest.mark.parametrize("more", ["status: {x: '{{ spec.none }}'}", "conditions: [{type: X, status: spec.none}]"])
def test_a_removed_member_goes_though_the_status_cannot_be_rendered(more: str):
    found = team("ada", "joe", body=f"{TEAM}\n{more}")
    edit_and_settle(found, {"cpu": "1", "members": members("joe")})
    assert configs(found) == ["joe"]
    assert found.ready()[1] == "RenderFailed"


def test_a_removed_member_goes_though_somebody_elses_object_has_the_name_of_another_child():
    found = team("ada", "joe", body=TEAM.replace("name: quota}, spec", "name: '{{ spec.quota }}'}, spec"), quota="q")
    found.add({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "theirs", "namespace": "shop"}})
    found.edit({"cpu": "1", "quota": "theirs", "members": members("joe")})
    found.step()
    assert configs(found) == ["joe"]
    assert key("q", "ResourceQuota") in found.objects, "it is the one that the conflicting object would replace"
    assert "the deletion of 1 object is held back by an error of quota" in found.ready()[2]


# -- what stays --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mistake", [{"name": "zoe"}, {"name": "not valid!", "role": "x"}, {"role": "x"}, "text"])
def test_an_error_of_the_same_child_holds_its_objects_back(mistake: Any):
    found = team("ada", "joe")
    found.edit({"cpu": "1", "members": [*members("joe"), mistake]})
    found.step()
    assert configs(found) == ["ada", "joe"]
    assert found.ready()[2].endswith("; the deletion of 1 object is held back by an error of members")
    assert deletion_events(found) == ["The deletion of 1 object is held back by an error of members: ConfigMap/ada"]
    edit_and_settle(found, {"cpu": "1", "members": members("joe")})
    assert configs(found) == ["joe"]


@pytest.mark.parametrize("failure", [Failure.INVALID, Failure.OTHER, Failure.FORBIDDEN, Failure.EXISTS])
def test_an_object_stays_while_its_replacement_cannot_be_written(failure: Failure):
    found = team("ada")
    found.refuse[key("zoe")] = Failed(failure, "no")
    edit_and_settle_busy(found, {"cpu": "1", "members": members("zoe")})
    assert configs(found) == ["ada"]
    assert "the deletion of 1 object is held back by an error of members" in found.ready()[2]
    found.refuse.clear()
    found.settle()
    assert configs(found) == ["zoe"]


def test_an_object_stays_while_its_replacement_is_not_written_because_of_another_child():
    found = team("ada")
    found.edit({"members": members("zoe")})
    found.step()
    assert configs(found) == ["ada"]
    assert "the deletion of 1 object is held back until members is written" in found.ready()[2]


@pytest.mark.parametrize("body", ["when: spec.on, ", "forEach: spec.list, "])
def test_an_error_in_what_decides_about_a_child_holds_its_objects_back(body: str):
    found = settled(
        f"children: {{a: {{{body}object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}}}}}",
        {"on": True, "list": [1]},
    )
    edit_and_settle(found, {})
    assert configs(found) == ["a"]
    assert found.ready()[1] == "RenderFailed"


def test_an_error_in_a_let_that_decides_about_a_child_holds_its_objects_back():
    body = "let: {names: '{{ spec.names | sort }}'}\nchildren: {%s}"
    child = "a: {forEach: names, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ item }}'}}}"
    found = settled(body % child, {"names": ["a", "b"]})
    edit_and_settle(found, {})
    assert configs(found) == ["a", "b"]


@pytest.mark.parametrize(
    "when", ["gate.data.on | default('no') == 'yes'", "gate is defined", "let_on", "(all | default([])) | length > 0"]
)
def test_a_missing_permission_to_read_what_decides_holds_back_what_the_default_would_delete(when: str):
    found = Harness.of(
        "observe: {gate: {version: v1, kind: Secret, name: gate}, all: {version: v1, kind: Secret, selector: {a: b}}}\n"
        "let: {let_on: \"{{ gate.data.on | default('no') == 'yes' }}\"}\n"
        f'children: {{a: {{when: "{when}", object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}}}}}'
    )
    gate = {"name": "gate", "namespace": "shop", "labels": {"a": "b"}}
    found.add({"apiVersion": "v1", "kind": "Secret", "metadata": gate, "data": {"on": "yes"}})
    found.settle()
    found.served = {"Secret": Served.FORBIDDEN}
    found.settle()
    assert configs(found) == ["a"]
    assert found.ready()[2].startswith("the deletion of 1 object is held back by what a reads: cannot list secrets")
    found.served = {}
    found.objects.pop(key("gate", "Secret"))
    found.settle()
    assert configs(found) == []


CHOICE = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {v: '{{ spec.%s }}'}}"


@pytest.mark.parametrize("mistake", [{}, {"z": [1]}])
def test_an_object_that_another_child_may_desire_stays_while_that_one_has_an_error(mistake: dict[str, Any]):
    body = f"children: {{x: {{when: not spec.two, object: {CHOICE % ('one', 'x')}}}, "
    body += f"z: {{when: spec.two, object: {CHOICE % ('one', 'z')}}}}}"
    found = settled(body, {"two": False, "x": "1"})
    edit_and_settle(found, {"two": True, **mistake})
    assert configs(found) == ["one"]
    assert "held back" not in found.ready()[2], "it is desired"
    uid = found.objects[key("one")]["metadata"]["uid"]
    edit_and_settle(found, {"two": True, "z": "2"})
    assert found.objects[key("one")]["metadata"]["uid"] == uid


def test_an_object_stays_that_another_child_may_desire_by_what_cannot_be_read():
    on = "gate.data.on | default('no') == 'yes'"
    body = "observe: {gate: {version: v1, kind: Secret, name: gate}}\n"
    body += f"children: {{x: {{when: not spec.two, object: {CHOICE % ('one', 'x')}}}, "
    body += f'z: {{when: "spec.two and {on}", object: {CHOICE % ("one", "z")}}}}}'
    found = Harness.of(body, {"two": False, "x": "1", "z": "1"})
    found.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gate", "namespace": "shop"}})
    found.settle()
    found.served = {"Secret": Served.FORBIDDEN}
    edit_and_settle(found, {"two": True, "x": "1", "z": "1"})
    assert configs(found) == ["one"]


def test_an_object_goes_if_the_child_with_the_error_has_another_name():
    body = f"children: {{x: {{when: not spec.two, object: {CHOICE % ('one', 'x')}}}, "
    body += f"z: {{when: spec.two, waitFor: spec.go, object: {CHOICE % ('two', 'z')}}}}}"
    found = settled(body, {"two": False, "x": "1"})
    edit_and_settle(found, {"two": True, "z": "1", "go": False})
    assert configs(found) == []


def test_an_object_of_an_unknown_id_stays_while_a_child_of_its_kind_has_an_error():
    found = team("ada")
    found.project = Harness.of(TEAM.replace("members:", "people:")).project
    edit_and_settle(found, {"cpu": "1", "members": [{"name": "ada"}]})
    assert configs(found) == ["ada"], "it may be the same under another id"
    found.project = Harness.of(f"children: {{{QUOTA}}}").project
    found.refuse[QUOTA_KEY] = REFUSED
    edit_and_settle_busy(found, {"cpu": "ten"})
    assert configs(found) == [], "no child can make one"


# -- what is reported --------------------------------------------------------------------------------------------------


def test_the_event_comes_once_for_each_object_and_not_again_after_a_restart():
    found = team("ada", "joe", "zoe")
    broken = {"name": "x"}
    found.edit({"cpu": "1", "members": [*members("joe", "zoe"), broken]})
    for _ in range(3):
        found.step()
    assert len(deletion_events(found)) == 1
    found.history = type(found.history).NONE
    found.step()
    assert len(deletion_events(found)) == 1
    found.edit({"cpu": "1", "members": [*members("zoe"), broken]})
    found.step()
    assert deletion_events(found)[1:] == [
        "The deletion of 2 objects is held back by an error of members: ConfigMap/ada, ConfigMap/joe"
    ]


def test_a_plan_has_what_is_held_back_and_why():
    found = team("ada", "joe")
    found.edit({"cpu": "1", "members": [*members("joe"), {"name": "x"}]})
    assert found.plan().held == (HeldDeletion(key("ada"), "members", "deletion", "by an error of members", True),)
    assert not [action for action in found.plan().actions if isinstance(action, Delete)]


def test_an_orphan_that_is_held_back_is_to_be_released():
    found = team("ada", "joe", body=TEAM.replace("forEach", "deletion: orphan, forEach"))
    found.edit({"cpu": "1", "members": [*members("joe"), {"name": "x"}]})
    found.step()
    assert found.ready()[2].endswith("; the release of 1 object is held back by an error of members")


def edit_and_settle_busy(found: Harness, spec: dict[str, Any]) -> None:
    """The same with writes that are retried in each pass."""
    found.edit(spec)
    for _ in range(3):
        found.step()


# -- a model with random errors ----------------------------------------------------------------------------------------

BODY = """
observe: {gate: {version: v1, kind: Service, name: gate}}
let: {names: "{{ spec.names | sort }}"}
children:
  A: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ spec.a.name }}"}, data: {x: "{{ spec.a.x }}"}}}
  M:
    forEach: spec.members
    object: {apiVersion: v1, kind: Secret, metadata: {name: "{{ item.name }}"}, stringData: {x: "{{ item.x }}"}}
  w:
    when: spec.w.on
    waitFor: spec.w.go
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ spec.w.name }}"}, data: {x: "{{ spec.w.x }}"}}
  g:
    when: gate.metadata.labels.on | default('no') == 'yes'
    object: {apiVersion: batch/v1, kind: CronJob, metadata: {name: g}}
  l: {forEach: names, object: {apiVersion: v1, kind: ServiceAccount, metadata: {name: "{{ item }}"}}}
  x:
    when: spec.mode == 'x'
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: choice}, data: {x: "{{ spec.x.v }}"}}
  z:
    when: spec.mode == 'z'
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: choice}, data: {z: "{{ spec.z.v }}"}}
status: {x: "{{ spec.status }}"}
"""
PROJECTS: tuple[Project, ...] = tuple(
    project(BODY.replace("  A:", f"  {a}:").replace("  M:", f"  {m}:")) for a, m in (("a", "m"), ("b", "p"))
)
MEMBER = st.sampled_from(["m1", "m2", "m3"])
SPECS = st.fixed_dictionaries(
    {
        "a": st.fixed_dictionaries({"name": st.sampled_from(["a1", "a2"]), "x": st.just("1")}),
        "members": st.lists(MEMBER, unique=True).map(lambda names: [{"name": each, "x": "1"} for each in names]),
        "w": st.fixed_dictionaries(
            {"on": st.booleans(), "go": st.booleans(), "name": st.sampled_from(["w1", "w2"]), "x": st.just("1")}
        ),
        "names": st.lists(st.sampled_from(["l1", "l2"]), unique=True),
        "mode": st.sampled_from(["x", "z", "none"]),
        "x": st.just({"v": "1"}),
        "z": st.just({"v": "1"}),
        "status": st.just("1"),
    }
)
BREAKS: dict[tuple[Any, ...], tuple[str, ...]] = {
    ("a", "name"): ("a",),
    ("a", "x"): ("a",),
    ("members",): ("m",),
    ("members", 0, "name"): ("m",),
    ("members", 0, "x"): ("m",),
    ("members", 1, "x"): ("m",),
    ("w", "on"): ("w",),
    ("w", "name"): ("w",),
    ("w", "x"): ("w",),
    ("names",): ("l",),
    ("mode",): ("x", "z"),
    ("x", "v"): ("x",),
    ("z", "v"): ("z",),
    ("status",): (),
}
"""What can be missing in the spec, and the children that read it."""
KINDS = {"a": "ConfigMap", "w": "ConfigMap", "x": "ConfigMap", "z": "ConfigMap", "m": "Secret", "l": "ServiceAccount"}
OF_KIND = {**KINDS, "g": "CronJob"}
REFUSABLE = st.sampled_from([("ConfigMap", "a2"), ("Secret", "m1"), ("ServiceAccount", "l1"), ("ConfigMap", "choice")])
STEPS = st.lists(
    st.tuples(
        SPECS,
        st.sets(st.sampled_from(sorted(BREAKS, key=str)), max_size=3),
        st.dictionaries(REFUSABLE, st.sampled_from([Failure.INVALID, Failure.OTHER, Failure.FORBIDDEN]), max_size=2),
        st.sampled_from(range(len(PROJECTS))),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)
GATE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gate", "namespace": "shop"}}


def gate(on: bool) -> dict[str, Any]:
    return {**GATE, "metadata": {**GATE["metadata"], "labels": {"on": "yes" if on else "no"}}}


def desired(rules: Project, spec: dict[str, Any], *, on: bool) -> set[ObjectKey]:
    """What the rules desire by the spec as it is meant, with nothing to wait for."""
    found = Harness(rules, app({**spec, "w": {**spec["w"], "go": True}}))
    found.add(gate(on))
    return {each.key for child in found.plan().children for each in child.objects}


def without(spec: dict[str, Any], path: tuple[Any, ...]) -> None:
    *parents, last = path
    part: Any = spec
    for step in parents:
        if isinstance(part, list) and step >= len(part):
            return
        part = part.get(step, {}) if isinstance(part, dict) else part[step]
    if not isinstance(part, list):
        part.pop(last, None)


def owned(found: Harness) -> dict[ObjectKey, str]:
    return {each: obj["metadata"]["uid"] for each, obj in found.objects.items() if obj["kind"] != "Service"}


@settings(max_examples=examples(100), deadline=None, report_multiple_bugs=False, phases=[Phase.generate])
@given(STEPS)
def test_nothing_desired_is_deleted_and_all_goes_about_which_no_error_decides(steps: Any):
    found = Harness(PROJECTS[0], app({}))
    for meant, breaks, refused, number, on, is_forbidden in steps:
        spec = copy.deepcopy(meant)
        for path in breaks:
            without(spec, path)
        found.project = rules = PROJECTS[number]
        found.objects.pop(key("gate", "Service"), None)
        found.add(gate(on))
        found.served = {"Service": Served.FORBIDDEN} if is_forbidden else {}
        found.refuse = {key(name, kind): Failed(failure, "no") for (kind, name), failure in refused.items()}
        wanted, before = desired(rules, meant, on=on), owned(found)
        edit_and_settle_busy(found, spec)
        after = owned(found)
        assert all(after.get(each) == uid for each, uid in before.items() if each in wanted), "a desired object went"
        old, new = key("a1"), key("a2")
        if ("ConfigMap", "a2") in refused and new in wanted and new not in before and old in before:
            assert old in after, "the object that replaces it does not exist"
        troubled = {child for path in breaks for child in BREAKS[path]}
        troubled |= {child for child, kind in OF_KIND.items() if any(of == kind for of, _ in refused)}
        troubled |= ({"g"} if is_forbidden else set()) | (set() if meant["w"]["go"] else {"w"})
        is_withheld = found.ready()[1] == "RenderFailed" and "status" not in found.ready()[2].partition(":")[0]
        kinds = {OF_KIND[child] for child in troubled}
        if is_withheld:
            kinds |= {each.kind for each in wanted - after.keys()}  # its new objects are not written
        left = [each for each in after if each not in wanted and each.kind not in kinds]
        assert not left, "nothing that went wrong could make their deletion wrong"
        assert all(each.key in after for each in found.plan().held)
    found.refuse, found.served = {}, {}
    edit_and_settle(found, {**meant, "w": {**meant["w"], "go": True}})
    assert owned(found).keys() == wanted
