"""Fields of objects that belong to somebody else: what is applied, what is released, and who holds a field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.localcluster.objects.server_side_apply import apply as apply_managed
from ruleop.planning import Event, Failed, Failure, History, Served, ServerSideApply
from ruleop.planning.model.managers import manager_of, managers_on
from ruleop.planning.model.marks import KEY_LENGTH, SKIP_ORDER, KeyedProofs, Owner
from tests.planning.harness import FINALIZER, Harness, app, key
from tests.planning.settled import edit_and_settle

TEAM = ObjectKey("", "Namespace", "", "team")
OTHER = ObjectKey("", "Namespace", "", "other")
RULES = """
reach: cluster
children:
  quota:
    when: spec.quota | default(true)
    patch:
      version: v1
      kind: Namespace
      name: "{{ spec.namespace }}"
      fields: {metadata: {labels: {team: "{{ spec.team }}"}}}
"""
SPEC = {"namespace": "team", "team": "red"}
PROOFS = KeyedProofs((b"k" * KEY_LENGTH,))


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def harness_of(rules: str = RULES, spec: dict[str, Any] | None = None, *, head: str | None = None) -> Harness:
    harness = Harness.of(rules, SPEC if spec is None else spec)
    for name in ("team", "other"):
        harness.add_as("kubectl-create", namespace(name, theirs="x"))
    return harness


def settled(rules: str = RULES, spec: dict[str, Any] | None = None) -> Harness:
    harness = harness_of(rules, spec)
    harness.settle()
    return harness


def labels(harness: Harness, key_: ObjectKey = TEAM) -> dict[str, str]:
    return dict(harness.objects[key_]["metadata"].get("labels") or {})


def patchers(harness: Harness, key_: ObjectKey = TEAM) -> list[str]:
    return [each.child for each in managers_on(harness.objects[key_])]


def test_fields_are_applied_after_the_finalizer_and_nothing_else_is_written():
    harness = settled()
    assert harness.writes[:2] == ["add finalizer", "ServerSideApply Namespace/team"]
    assert labels(harness) == {"theirs": "x", "team": "red"}
    metadata = harness.objects[TEAM]["metadata"]
    assert not {"annotations", "ownerReferences", "finalizers"} & metadata.keys()
    assert harness.ready()[:2] == ("True", "Ready")
    assert harness.plan(History.NONE).quiet


def test_the_object_is_waited_for_and_never_created():
    harness = Harness.of(RULES, SPEC)
    harness.settle()
    assert harness.ready() == ("False", "Waiting", "quota waits for Namespace/team to exist")
    assert harness.names() == []
    harness.add(namespace("team"))
    harness.settle()
    assert labels(harness) == {"team": "red"}


def test_an_optional_patch_of_an_object_that_does_not_exist_is_skipped():
    harness = Harness.of(RULES.replace("    when", "    optional: true\n    when"), SPEC)
    harness.settle()
    assert harness.ready()[:2] == ("True", "Ready")
    assert [target.key for target in harness.plan().watches] == [TEAM]
    harness.add(namespace("team"))
    harness.settle()
    assert labels(harness) == {"team": "red"}


def test_changed_fields_are_applied_and_dropped_ones_are_removed():
    rules = RULES.replace('team: "{{ spec.team }}"', '"{{ spec.team }}": "yes"')
    harness = settled(rules)
    edit_and_settle(harness, {**SPEC, "team": "blue"})
    assert labels(harness) == {"theirs": "x", "blue": "yes"}


@pytest.mark.parametrize("spec", [{**SPEC, "quota": False}, {**SPEC, "namespace": "other"}])
def test_fields_that_are_given_up_are_released(spec: dict[str, Any]):
    harness = settled()
    edit_and_settle(harness, spec)
    assert labels(harness) == {"theirs": "x"}
    assert patchers(harness) == []
    assert labels(harness, OTHER) == {"theirs": "x"} | ({"team": "red"} if "quota" not in spec else {})


def test_fields_that_were_given_up_return_also_if_the_status_was_not_written_in_between():
    harness = settled()
    harness.edit({**SPEC, "quota": False})
    harness.step(delays_status=True)
    assert labels(harness) == {"theirs": "x"}
    edit_and_settle(harness, {**SPEC, "quota": True})
    assert labels(harness)["team"] == "red"
    edit_and_settle(harness, {**SPEC, "team": "blue"})
    assert labels(harness)["team"] == "blue"


def test_a_deleted_custom_resource_releases_its_fields_and_then_its_finalizer():
    harness = settled()
    harness.writes.clear()
    harness.end()
    harness.settle()
    assert harness.resource is None
    assert [each for each in harness.writes if each != "status"] == [
        "ServerSideApply Namespace/team",
        "remove finalizer",
    ]
    assert labels(harness) == {"theirs": "x"}


def test_fields_are_released_after_the_objects_that_waited_for_them():
    rules = (
        RULES
        + """
  far:
    waitFor: ready.quota
    namespace: other
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: far}}
"""
    )
    harness = settled(rules)
    harness.writes.clear()
    harness.end()
    harness.settle()
    assert [each for each in harness.writes if each != "status"] == [
        "Delete ConfigMap/far",
        "ServerSideApply Namespace/team",
        "remove finalizer",
    ]


FORBIDDEN = Failed(Failure.FORBIDDEN, "no", verb="patch")
BY_POLICY = Failed(Failure.FORBIDDEN, "denied by the policy x")
INVALID = Failed(Failure.INVALID, "data: field is immutable")
BROKEN = Failed(Failure.OTHER, "the webhook does not answer")
GIVE_UP = "set the annotation ruleop.dev/skip-finalize to give up on it"


def ending(failed: Failed) -> Harness:
    """The CR is deleted, and the release of its fields was rejected once."""
    harness = settled()
    harness.refuse[TEAM] = failed
    harness.end()
    harness.step()
    assert harness.finalizers == [FINALIZER]
    return harness


IN_ORDER = """
reach: cluster
deletionOrder: reverse
children:
  db: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: db}}, when: spec.on}
  name:
    when: spec.on
    dependsOn: [db]
    patch:
      version: v1
      kind: Namespace
      name: team
      fields: {metadata: {labels: {team: "{{ db.metadata.name }}"}}}
  user: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: user}}, dependsOn: [name], when: spec.on}
"""


@pytest.mark.parametrize("by", ["deletion", "edit"])
def test_fields_are_released_in_the_order_of_deletions(by: str):
    harness = settled(IN_ORDER, {"on": True})
    harness.writes.clear()
    if by == "deletion":
        harness.end()
        harness.settle()
        assert harness.resource is None
    else:
        edit_and_settle(harness, {"on": False})
    found = [each for each in harness.writes if each not in {"status", "remove finalizer"}]
    assert found == ["Delete ConfigMap/user", "ServerSideApply Namespace/team", "Delete ConfigMap/db"]


@pytest.mark.parametrize("by", ["deletion", "edit"])
def test_ready_names_what_the_order_waits_for(by: str):
    harness = settled(IN_ORDER, {"on": True})
    harness.change(key("user"), {"metadata": {"finalizers": ["example.com/x"]}})
    if by == "deletion":
        harness.end()
    else:
        harness.edit({"on": False})
    harness.settle()
    assert labels(harness)["team"] == "db"
    released = "the fields of Namespace/team are to be released: ConfigMap/shop/user is still there"
    if by == "edit":
        released = "name waits for the fields of Namespace/team to be released: ConfigMap/shop/user is still there"
    assert released in harness.ready()[2]
    assert "ConfigMap/shop/db" in harness.ready()[2]
    assert "the fields of Namespace/team are not released yet" in harness.ready()[2]
    harness.patch_resource({"annotations": {SKIP_ORDER: "true"}})
    harness.settle()
    assert labels(harness) == {"theirs": "x"}
    assert key("db") not in harness.objects


def test_a_child_can_be_deleted_after_fields_are_released():
    rules = """
    reach: cluster
    children:
      mark:
        patch: {version: v1, kind: Namespace, name: team, fields: {metadata: {labels: {team: red}}}}
      late: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: late}}, deleteAfter: [mark]}
    """
    harness = settled(rules)
    harness.writes.clear()
    harness.end()
    harness.settle()
    found = [each for each in harness.writes if each not in {"status", "remove finalizer"}]
    assert found == ["ServerSideApply Namespace/team", "Delete ConfigMap/late"]


def test_a_rejected_release_that_is_given_up_ends_the_order():
    harness = settled(IN_ORDER, {"on": True})
    harness.refuse[TEAM] = INVALID
    harness.patch_resource({"annotations": {"ruleop.dev/skip-finalize": "true"}})
    harness.end()
    harness.settle()
    assert harness.resource is None
    assert key("db") not in harness.objects


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        (FORBIDDEN, f"cannot patch namespaces: needs get, list, watch, patch; {GIVE_UP}"),
        (BY_POLICY, f"denied by the policy x; given up at 00:10:00 UTC, or {GIVE_UP}"),
        (INVALID, f"data: field is immutable; given up at 00:10:00 UTC, or {GIVE_UP}"),
        (BROKEN, f"the webhook does not answer; {GIVE_UP}"),
    ],
)
def test_a_release_that_is_rejected_is_reported_by_ready_and_an_event_and_retried(failed: Failed, why: str):
    harness = ending(failed)
    message = f"the fields of Namespace/team cannot be released: {why}"
    assert harness.ready()[1:] == ("Deleting", message)
    assert harness.events[-1] == Event("Warning", "FieldsNotReleased", message)
    harness.refuse.clear()
    harness.settle()
    assert harness.resource is None
    assert labels(harness) == {"theirs": "x"}


@pytest.mark.parametrize("failed", [FORBIDDEN, BY_POLICY, INVALID, BROKEN])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("by", ["annotation", "namespace"])
def test_a_rejected_release_is_given_up_by_the_annotation_and_in_a_namespace_that_goes(
    failed: Failed, by: str, restarted: bool
):
    harness = ending(failed)
    if restarted:
        harness.history = History.NONE
    if by == "annotation":
        harness.patch_resource({"annotations": {"ruleop.dev/skip-finalize": "true"}})
    else:
        harness.namespace_terminating = True
    harness.settle()
    assert harness.resource is None
    assert labels(harness)["team"] == "red"
    reason = "the annotation" if by == "annotation" else "the namespace is being deleted"
    (event,) = [each for each in harness.events if "gave up on it" in each.message]
    assert event.reason == "FieldsNotReleased"
    assert reason in event.message


@pytest.mark.parametrize(("failed", "ends"), [(FORBIDDEN, False), (BROKEN, False), (BY_POLICY, True), (INVALID, True)])
def test_a_release_that_the_object_itself_prevents_is_given_up_in_time(failed: Failed, ends: bool):
    harness = ending(failed)
    for minutes, gone in ((9, False), (11, ends)):
        harness.now = f"2026-01-01T00:{minutes:02}:00Z"
        harness.step()
        assert (harness.resource is None) == gone
    assert ("it has been rejected for 10 minutes" in harness.events[-1].message) == ends


def test_without_a_rejection_fields_are_released_also_with_the_annotation_and_in_a_namespace_that_goes():
    harness = settled()
    harness.patch_resource({"annotations": {"ruleop.dev/skip-finalize": "true"}})
    harness.namespace_terminating = True
    harness.end()
    harness.settle()
    assert harness.resource is None
    assert labels(harness) == {"theirs": "x"}


def test_one_object_whose_release_is_rejected_holds_no_other():
    rules = RULES.replace('name: "{{ spec.namespace }}"', 'name: "{{ item }}"').replace(
        "    when", "    forEach: \"['team', 'other']\"\n    when"
    )
    harness = settled(rules)
    harness.refuse[TEAM] = INVALID
    harness.end()
    harness.step()
    assert (labels(harness)["team"], labels(harness, OTHER)) == ("red", {"theirs": "x"})


def test_a_rejected_release_of_a_resource_that_lives_on_names_the_fields():
    harness = settled()
    harness.refuse[TEAM] = INVALID
    harness.edit({**SPEC, "quota": False})
    harness.step()
    message = "quota: the fields of Namespace/team could not be released: data: field is immutable"
    assert harness.ready() == ("False", "ApplyFailed", message)


def test_the_fields_of_a_removed_child_are_released_and_the_finalizer_goes():
    harness = settled()
    harness.project = Harness.of("children: {}\n").project
    harness.settle()
    assert labels(harness) == {"theirs": "x"}
    assert harness.finalizers == []


def test_the_fields_of_a_renamed_child_stay_all_the_time():
    harness = settled()
    harness.project = Harness.of(RULES.replace("quota:\n", "renamed:\n", 1)).project
    harness.step()
    assert labels(harness)["team"] == "red"
    harness.settle()
    assert labels(harness)["team"] == "red"
    assert patchers(harness) == ["renamed"]


def test_fields_are_kept_while_it_is_unknown_what_the_child_sets():
    harness = settled()
    edit_and_settle(harness, {"team": "red"})
    assert harness.ready()[1] == "RenderFailed"
    assert labels(harness)["team"] == "red"


def test_nothing_is_released_just_after_the_rules_have_changed():
    harness = settled()
    harness.project = Harness.of("children: {}\n").project
    harness.held_until = "2026-01-01T00:01:00Z"
    harness.settle()
    assert labels(harness)["team"] == "red"
    assert "the release of 1 object is held back until" in harness.ready()[2]


def test_a_field_that_another_manager_holds_is_not_taken():
    harness = harness_of()
    harness.change_as("kubectl-label", TEAM, {"metadata": {"labels": {"team": "blue"}}})
    harness.settle()
    assert labels(harness)["team"] == "blue"
    status, reason, message = harness.ready()
    assert (status, reason) == ("False", "FieldConflict")
    assert message == (
        "quota: watches.yaml:12:38: Namespace/team: metadata.labels.team is held by "
        '"kubectl-label"; `force: true` would take it'
    )
    assert [(each.reason, each.message) for each in harness.events] == [("FieldConflict", message)]
    written = len(harness.writes)
    harness.settle()
    assert len(harness.writes) == written
    assert harness.plan(History.NONE).actions


def rival(harness: Harness, name: str = "second", namespace: str = "shop") -> dict[str, Any]:
    """Another custom resource holds the field, with another value."""
    theirs = {**app(SPEC | {"team": "blue"}, name=name, namespace=namespace, uid="cr-2")}
    manager = manager_of(Owner.of(theirs, harness.proofs), "mark", TEAM)
    live = harness.objects[TEAM]
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "blue"}}}
    harness.put(apply_managed(live, body, harness.tracking(live), manager=manager, now=harness.now, force=False))
    return theirs


@pytest.mark.parametrize(
    ("known", "namespace", "who"),
    [
        (True, "shop", "App/second"),
        (True, "other", "App/other/second"),
        (False, "shop", "another custom resource of this operator"),
    ],
)
def test_a_field_that_another_custom_resource_holds_names_it_and_advises_no_force(
    known: bool, namespace: str, who: str
):
    harness = harness_of()
    harness.proofs = PROOFS
    theirs = rival(harness, namespace=namespace)
    if known:
        harness.resources = {Owner.of(theirs).part_of: ObjectKey.of(theirs)}
    harness.settle()
    message = (
        f"quota: watches.yaml:12:38: Namespace/team: metadata.labels.team is held by the child mark of {who}; "
        "let only one of them set it"
    )
    assert harness.ready() == ("False", "FieldConflict", message)


def test_a_manager_that_is_not_proven_names_no_custom_resource():
    harness = harness_of()
    theirs = rival(harness)
    harness.proofs = PROOFS
    harness.resources = {Owner.of(theirs).part_of: ObjectKey.of(theirs)}
    harness.settle()
    manager = manager_of(Owner.of(theirs), "mark", TEAM)
    assert f'is held by "{manager}", which is not of this operator; let only one of them set it' in harness.ready()[2]


def test_a_conflict_is_over_when_the_other_manager_gives_the_field_up():
    harness = harness_of()
    harness.change_as("kubectl-label", TEAM, {"metadata": {"labels": {"team": "blue"}}})
    harness.settle()
    harness.change_as("kubectl-label", TEAM, {"metadata": {"labels": {"team": None}}})
    harness.history = History.NONE
    harness.settle()
    assert labels(harness)["team"] == "red"
    assert harness.ready()[:2] == ("True", "Ready")


def test_a_field_that_another_manager_holds_is_taken_with_force():
    harness = harness_of(RULES.replace("      version: v1", "      force: true\n      version: v1"))
    harness.change_as("kubectl-label", TEAM, {"metadata": {"labels": {"team": "blue"}}})
    harness.settle()
    assert labels(harness)["team"] == "red"
    harness.change_as("kubectl-label", TEAM, {"metadata": {"labels": {"team": "blue"}}})
    harness.settle()
    assert labels(harness)["team"] == "red"


def test_a_value_that_two_managers_agree_on_stays_when_one_gives_it_up():
    harness = harness_of()
    harness.change_as("kubectl-label", TEAM, {"metadata": {"labels": {"team": "red"}}})
    harness.settle()
    edit_and_settle(harness, {**SPEC, "quota": False})
    assert labels(harness)["team"] == "red"
    assert patchers(harness) == []


def test_a_removed_field_is_set_again():
    harness = settled()
    harness.change_as("kubectl-label", TEAM, {"metadata": {"labels": {"team": None}}})
    harness.settle()
    assert labels(harness)["team"] == "red"


def test_a_field_with_the_right_value_is_applied_unless_the_manager_holds_it():
    harness = harness_of()
    harness.change(TEAM, {"metadata": {"labels": {"team": "red"}}})
    harness.settle()
    assert "ServerSideApply Namespace/team" in harness.writes
    assert patchers(harness) == ["quota"]


@pytest.mark.parametrize("crash_after", [0, 1, 2])
def test_a_crash_at_any_write_leaves_no_other_result(crash_after: int):
    harness = harness_of()
    harness.step(crash_after=crash_after)
    harness.settle()
    assert labels(harness) == {"theirs": "x", "team": "red"}
    harness.end()
    harness.step(crash_after=min(crash_after, 1))
    harness.history = History.NONE
    harness.settle()
    assert harness.resource is None
    assert labels(harness) == {"theirs": "x"}


def test_the_fields_of_another_custom_resource_are_left_alone():
    harness = settled()
    theirs = app(name="second", uid="cr-2")
    manager = manager_of(Owner.of(theirs), "quota", TEAM)
    entries = harness.objects[TEAM]["metadata"]["managedFields"]
    ours = next(each for each in entries if each["operation"] == "Apply")
    harness.change(TEAM, {"metadata": {"managedFields": [*entries, {**ours, "manager": manager}]}})
    edit_and_settle(harness, {**SPEC, "quota": False})
    assert labels(harness)["team"] == "red"
    assert patchers(harness) == ["quota"]


def test_list_items_are_set_beside_those_of_others():
    rules = """
    children:
      pull:
        patch:
          version: v1
          kind: ServiceAccount
          name: default
          fields: {secrets: [{name: registry}]}
    """
    harness = Harness.of(rules)
    account = key("default", "ServiceAccount")
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "shop"}}
    harness.add_as("kubectl-create", {**body, "secrets": [{"name": "theirs"}]})
    harness.settle()
    found = harness.objects[account]["secrets"]
    assert sorted(each["name"] for each in found) == ["registry", "theirs"]
    assert harness.plan(History.NONE).quiet
    harness.end()
    harness.settle()
    assert harness.objects[account]["secrets"] == [{"name": "theirs"}]


def test_two_children_cannot_set_fields_of_one_object():
    two = RULES + RULES.partition("children:\n")[2].replace("quota:\n", "second:\n", 1)
    harness = settled(two)
    assert "is rendered twice, by the children quota and second" in harness.ready()[2]
    assert "team" not in labels(harness)


def test_an_object_in_another_namespace_needs_reach():
    rules = """
    children:
      note:
        patch: {version: v1, kind: ConfigMap, name: a, namespace: "{{ spec.where }}", fields: {data: {x: y}}}
    """
    with pytest.raises(Exception, match="another namespace than its CR"):
        Harness.of(rules, {"where": "far"})


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_the_data_of_a_secret_in_another_namespace_cannot_be_set(field: str):
    rules = f"""
    reach: cluster
    children:
      note:
        patch: {{version: v1, kind: Secret, name: a, namespace: "{{{{ spec.where }}}}", fields: {{{field}: {{x: eA==}}}}}}
    """
    harness = Harness.of(rules, {"where": "far"})
    for where in ("far", "shop"):
        harness.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": where}})
    harness.settle()
    assert f"`{field}` of a Secret in another namespace than the CR's cannot be set" in harness.ready()[2]
    edit_and_settle(harness, {"where": "shop"})
    assert harness.ready()[:2] == ("True", "Ready")
    assert harness.plan(History.NONE).quiet


@pytest.mark.parametrize(
    "fields",
    [
        "{status: {a: b}}",
        "{metadata: {finalizers: [x/y]}}",
        "{metadata: {ownerReferences: []}}",
        "{spec: {finalizers: [kubernetes]}}",
    ],
)
def test_fields_that_no_rule_may_set_are_refused_when_they_are_rendered(fields: str):
    rules = f"""
    reach: cluster
    let: {{more: {fields}}}
    children:
      quota:
        patch: {{version: v1, kind: Namespace, name: team, fields: {{"{{{{ more | combine({{}}) }}}}": null}}}}
    """
    harness = settled(rules)
    assert harness.ready()[1] == "RenderFailed", harness.ready()
    assert labels(harness) == {"theirs": "x"}


def test_an_object_that_cannot_be_read_fails_with_the_permission():
    harness = harness_of()
    harness.served["Namespace"] = Served.FORBIDDEN
    harness.settle()
    assert harness.ready()[1] == "Forbidden"
    assert "get, list, watch, patch" in harness.ready()[2]


def test_templates_read_the_object_with_its_fields():
    harness = settled(RULES + 'status: {seen: "{{ quota.metadata.labels.team }} {{ quota.metadata.labels.theirs }}"}\n')
    assert harness.status["seen"] == "red x"


def test_a_child_that_depends_on_the_fields_waits_for_them():
    rules = (
        RULES
        + "  later:\n    dependsOn: [quota]\n    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: later}}\n"
    )
    harness = Harness.of(rules, SPEC)
    harness.settle()
    assert key("later") not in harness.objects
    harness.add(namespace("team"))
    harness.settle()
    assert key("later") in harness.objects


def test_objects_in_a_patched_namespace_do_not_wait_for_its_fields():
    inside = "  inside: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: team}}}\n"
    harness = harness_of(RULES + inside)
    harness.add_as(
        "somebody", {**namespace("team", team="blue"), "metadata": {"name": "team", "labels": {"team": "blue"}}}
    )
    harness.settle()
    assert harness.ready()[1] == "FieldConflict"
    assert ObjectKey("", "ConfigMap", "team", "x") in harness.objects


def test_each_item_of_for_each_has_its_object():
    rules = """
    reach: cluster
    children:
      mark:
        forEach: spec.on
        optional: true
        patch: {version: v1, kind: Namespace, name: "{{ item }}", fields: {metadata: {labels: {index: "{{ index }}x"}}}}
    """
    harness = settled(rules, {"on": ["team", "other", "missing"]})
    assert harness.ready()[:2] == ("True", "Ready")
    assert (labels(harness)["index"], labels(harness, OTHER)["index"]) == ("0x", "1x")
    assert {target.key for target in harness.plan().watches} == {TEAM, OTHER, TEAM._replace(name="missing")}
    edit_and_settle(harness, {"on": ["other"]})
    assert (labels(harness), labels(harness, OTHER)["index"]) == ({"theirs": "x"}, "0x")


@pytest.mark.parametrize(
    "entry",
    [
        7,
        {"manager": "ruleop:", "operation": "Apply"},
        {"manager": "ruleop:PART:quota", "operation": "Update", "fieldsV1": {}},
        {"manager": "ruleop:PART:quota", "operation": "Apply", "fieldsV1": None},
        {"manager": "ruleop:PART:other:child", "operation": "Apply", "fieldsV1": {"f:metadata": {}}},
        {"manager": "ruleop:PART:quota", "operation": "Apply", "fieldsV1": {"f:metadata": [1], "x": 1}},
        {
            "manager": "ruleop:PART:quota",
            "operation": "Apply",
            "fieldsV1": {
                "f:metadata": {"f:managedFields": {"k:{": 1, "v:": 2, "i:x": 3, "k:7": {}, "k:{}": {"f:a": []}}}
            },
        },
        {"manager": "ruleop:PART:{{ 7 * 7 }}", "operation": "Apply", "fieldsV1": {"x": [], "k:": {}, "v:": {}}},
    ],
)
def test_forged_entries_of_managed_fields_do_no_harm(entry: Any):
    harness = settled()
    assert harness.resource is not None
    if isinstance(entry, dict):
        entry = {**entry, "manager": entry["manager"].replace("PART", Owner.of(harness.resource).part_of)}
    before = harness.objects[TEAM]["metadata"]["managedFields"]
    harness.change(TEAM, {"metadata": {"managedFields": [entry, *before]}})
    for action in harness.plan(History.NONE).actions:
        assert isinstance(action, ServerSideApply)
        assert action.why == "given up" or action.object["metadata"]["labels"] == {"team": "red"}


BY_SPEC = """
children:
  data:
    when: spec.fields != {}
    patch: {version: v1, kind: ConfigMap, name: a, fields: {data: "{{ spec.fields }}"}}
"""

NAMES = st.sampled_from(["a", "b", "c"])
EDIT = st.tuples(st.just("cr"), st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=3))
OF_OTHERS = st.tuples(st.just("others"), st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=3))


@pytest.mark.slow
@given(st.lists(EDIT | OF_OTHERS, max_size=6))
def test_after_any_edits_the_fields_are_those_of_the_last_ones_and_in_the_end_only_those_of_others(
    edits: list[tuple[str, dict[str, str]]],
):
    """The others' fields have names of their own, and ruleop's are taken by nobody."""
    harness = Harness.of(BY_SPEC, {"fields": {}})
    harness.add_as(
        "kubectl-create", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
    )
    ours: dict[str, str] = {}
    theirs: dict[str, str] = {}
    for who, fields in edits:
        if who == "cr":
            harness.edit({"fields": fields})
            ours = fields
        else:
            new = {f"their-{name}": value for name, value in fields.items()}
            harness.change_as("somebody", key("a"), {"data": {**dict.fromkeys(theirs), **new}})
            theirs = new
        harness.settle()
        assert (harness.objects[key("a")].get("data") or {}) == {**ours, **theirs}
        assert harness.plan(History.NONE).quiet
    harness.end()
    if harness.resource is not None:
        harness.settle()
    assert (harness.objects[key("a")].get("data") or {}) == theirs
    assert patchers(harness, key("a")) == []
