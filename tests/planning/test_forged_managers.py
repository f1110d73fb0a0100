"""Who may write an object can write its managedFields: managers that name the custom resource of somebody else decide
nothing. Those of versions without proofs count, while they are accepted, in the reach of the rule."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.names import PATCH_MANAGER
from ruleop.language.rules.checks.child_bodies import MAX_PATCH_ID
from ruleop.language.templates.values.cost import Account
from ruleop.planning import plan
from ruleop.planning.child.field_patches import MOST_UNPROVEN, patched_key
from ruleop.planning.model.managers import FieldsManager, manager_of, managers_on
from ruleop.planning.model.marks import KEY_LENGTH, KeyedProofs, Owner
from tests.planning.harness import CR, Harness, app, config, key
from tests.planning.settled import edit_and_settle

PROOFS = KeyedProofs((b"k" * KEY_LENGTH,))
UPGRADING = KeyedProofs(PROOFS.keys, accept_unproven_managers=True)
ROTATED = KeyedProofs((b"n" * KEY_LENGTH, *PROOFS.keys))
RULES = """
children:
  mark:
    when: spec.on | default(true)
    patch: {version: v1, kind: ConfigMap, name: settings, fields: {data: {ours: "{{ spec.value | default('1') }}"}}}
"""
WIDE = "reach: cluster\n" + RULES
WITHOUT = "children:\n  own: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: own}}}\n"
NEAR, FAR = key("settings"), key("settings", namespace="tenant")
FIELDS = {"f:data": {"f:theirs": {}}}


def harness_of(rules: str = RULES, proofs: KeyedProofs = PROOFS, spec: dict[str, Any] | None = None) -> Harness:
    harness = Harness.of(rules, spec)
    harness.proofs = proofs
    harness.patched = frozenset(patched_key(each.target) for each in harness.rule.patches)
    return harness


def add_settings(harness: Harness, at: ObjectKey, *managers: str) -> None:
    entry = {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": FIELDS}
    managed = [{**entry, "manager": name} for name in managers]
    harness.add(config("settings", {"theirs": "x"}, namespace=at.namespace, managedFields=managed))


def forged(child: str = "x") -> str:
    return f"{PATCH_MANAGER}{Owner.of(app()).part_of}:{child}"


def copied(child: str = "mark") -> str:
    """The name that the operator has chosen for another object."""
    return manager_of(Owner.of(app(), PROOFS), child, key("another"))


def data(harness: Harness, at: ObjectKey = NEAR) -> dict[str, str]:
    return dict(harness.objects[at]["data"])


@pytest.mark.parametrize("at", [NEAR, FAR], ids=["same namespace", "other namespace"])
@pytest.mark.parametrize("rules", [RULES, WIDE, WITHOUT], ids=["near", "wide", "without patch"])
@pytest.mark.parametrize("name", [forged(), forged("mark"), copied(), f"{forged('mark')}:{'a' * 26}"])
def test_a_forged_manager_gives_no_work_no_finalizer_and_holds_no_deletion(rules: str, at: ObjectKey, name: str):
    harness = harness_of(rules, spec={"on": False})
    add_settings(harness, at, name)
    harness.settle()
    assert harness.ready()[:2] == ("True", "Ready")
    before = dict(harness.objects[at])
    if rules == WITHOUT:
        assert harness.finalizers == []
    harness.writes.clear()
    harness.end()
    if harness.resource is not None:
        harness.settle()
    assert harness.resource is None
    assert harness.objects[at] == before
    assert not [each for each in harness.writes if each.startswith("ServerSideApply")]


@pytest.mark.slow
def test_thousands_of_forged_managers_make_no_writes_and_cost_little():
    harness = harness_of(WIDE, UPGRADING)
    add_settings(harness, NEAR, *(forged(f"x{number}") for number in range(3000)))
    add_settings(harness, FAR, *(forged(f"x{number}") for number in range(3000)))
    assert harness.resource is not None
    account = Account()
    planned = plan(harness.rule, harness.resource, harness.observed(), account=account)
    assert [action.key for action in planned.actions] == [CR, NEAR]
    assert account.share < 0.1


@pytest.mark.slow
def test_each_manager_is_charged():
    def share(managers: int) -> float:
        harness = harness_of()
        add_settings(harness, NEAR, *(forged(f"x{number}") for number in range(managers)))
        assert harness.resource is not None
        account = Account()
        plan(harness.rule, harness.resource, harness.observed(), account=account)
        return account.share

    assert share(3000) > 10 * share(0)


def test_fields_by_a_manager_with_proof_are_released_also_by_rules_that_have_no_patch_or_less_reach():
    for rules in (WITHOUT, RULES.replace("settings", "others")):
        harness = harness_of(WIDE)
        harness.add_as("kubectl-create", config("settings", {"theirs": "x"}))
        harness.settle()
        assert data(harness) == {"theirs": "x", "ours": "1"}
        (manager,) = managers_on(harness.objects[NEAR])
        assert manager.is_proven(NEAR, PROOFS)
        assert not manager.is_proven(FAR, PROOFS)
        harness.project = Harness.of(rules).project
        harness.settle()
        assert data(harness) == {"theirs": "x"}


@pytest.mark.parametrize("proofs", [UPGRADING, ROTATED])
def test_managers_of_earlier_versions_and_keys_keep_their_fields_and_names(proofs: KeyedProofs):
    harness = harness_of(WIDE)
    harness.proofs = None if proofs is UPGRADING else PROOFS
    harness.add_as("kubectl-create", config("settings", {"theirs": "x"}))
    harness.settle()
    before = [each.name for each in managers_on(harness.objects[NEAR])]
    harness.proofs, count = proofs, len(harness.writes)
    harness.settle()
    assert len(harness.writes) == count, "nothing is to be done"
    edit_and_settle(harness, {"value": "2"})
    assert data(harness) == {"theirs": "x", "ours": "2"}
    assert [each.name for each in managers_on(harness.objects[NEAR])] == before
    harness.end()
    harness.settle()
    assert data(harness) == {"theirs": "x"}


@pytest.mark.parametrize(("rules", "at"), [(RULES, FAR), (RULES.replace("settings", "others"), NEAR), (WITHOUT, NEAR)])
def test_managers_without_proof_count_only_on_objects_that_the_rules_may_patch(rules: str, at: ObjectKey):
    harness = harness_of(rules, UPGRADING, {"on": False})
    add_settings(harness, at, forged())
    assert not [each for each in harness.plan().actions if each.key == at]


def test_more_managers_without_proof_than_an_object_can_have_are_forged():
    for count, released in ((MOST_UNPROVEN, MOST_UNPROVEN), (MOST_UNPROVEN + 1, 0)):
        harness = harness_of(RULES, UPGRADING, {"on": False})
        add_settings(harness, NEAR, *(forged(f"x{number}") for number in range(count)))
        assert len([each for each in harness.plan().actions if each.key == NEAR]) == released


def test_the_longest_name_of_a_manager_is_accepted_by_the_api_server():
    name = manager_of(Owner.of(app(), PROOFS), "x" * MAX_PATCH_ID, NEAR)
    assert len(name) <= 128
    manager = FieldsManager.named(name)
    assert manager is not None
    assert manager.is_proven(NEAR, PROOFS)


@pytest.mark.parametrize(
    "change",
    [str.upper, lambda it: it[:-1], lambda it: it + "a", lambda it: it[:-1] + chr(ord(it[-1]) + 1), lambda _: "é" * 26],
)
def test_a_proof_has_one_spelling(change: Any):
    manager = FieldsManager.named(manager_of(Owner.of(app(), PROOFS), "mark", NEAR))
    assert manager is not None
    spelt = FieldsManager.named(f"{forged('mark')}:{change(manager.proof)}")
    assert spelt is not None
    assert not spelt.is_proven(NEAR, PROOFS)


@pytest.mark.parametrize("name", ["ruleop", "ruleop:", "ruleop:x", "ruleop:a:b:c:d", "kubectl:a:b"])
def test_other_names_are_no_managers_of_fields(name: str):
    assert FieldsManager.named(name) is None
