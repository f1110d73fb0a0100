"""Fields of all objects that a selector matches: which objects count, and what happens to those that no longer do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Failed, Failure, History, Served
from ruleop.planning.child.kinds import patched
from ruleop.planning.model.managers import managers_on
from tests.planning.harness import Harness, config, key
from tests.planning.settled import edit_and_settle
from tests.planning.test_patched_fields import namespace

RULES = """
reach: cluster
children:
  mark:
    when: spec.on | default(true)
    patch:
      version: v1
      kind: Namespace
      selector: {tier: "{{ spec.tier }}"}
      fields: {metadata: {labels: {team: "{{ spec.team }}"}}}
"""
IN_NAMESPACE = """
children:
  mark:
    patch: {version: v1, kind: ConfigMap, selector: {tier: web}, fields: {data: {team: red}}}
"""
SPEC = {"tier": "web", "team": "red"}


def space(name: str) -> ObjectKey:
    return ObjectKey("", "Namespace", "", name)


def harness_of(rules: str = RULES, spec: dict[str, Any] | None = None, **tiers: str) -> Harness:
    harness = Harness.of(rules, SPEC if spec is None else spec)
    for name, tier in (tiers or {"a": "web", "b": "web", "c": "db"}).items():
        harness.add_as("kubectl-create", namespace(name, tier=tier))
    harness.settle()
    return harness


def teams(harness: Harness) -> dict[str, str | None]:
    """The field that the rule sets, by the name of the object."""
    return {
        found.name: (obj["metadata"].get("labels") or {}).get("team") or (obj.get("data") or {}).get("team")
        for found, obj in sorted(harness.objects.items())
    }


def test_all_objects_that_match_get_the_fields_and_no_others():
    harness = harness_of()
    assert teams(harness) == {"a": "red", "b": "red", "c": None}
    assert harness.ready()[:2] == ("True", "Ready")
    assert harness.plan(History.NONE).quiet


def test_none_that_matches_is_nothing_to_do():
    harness = harness_of(c="db")
    assert harness.ready()[:2] == ("True", "Ready")
    assert [each for each in harness.writes if each != "status"] == ["add finalizer"]


def test_an_object_that_begins_to_match_gets_the_fields_and_one_that_stops_loses_them():
    harness = harness_of()
    harness.change_as("somebody", space("a"), {"metadata": {"labels": {"tier": "db"}}})
    harness.change_as("somebody", space("c"), {"metadata": {"labels": {"tier": "web"}}})
    harness.settle()
    assert teams(harness) == {"a": None, "b": "red", "c": "red"}
    assert not list(managers_on(harness.objects[space("a")]))


@pytest.mark.parametrize("spec", [{**SPEC, "tier": "db"}, {**SPEC, "on": False}])
def test_an_edit_of_the_custom_resource_gives_up_what_it_no_longer_selects(spec: dict[str, Any]):
    harness = harness_of()
    edit_and_settle(harness, spec)
    assert teams(harness) == {"a": None, "b": None, "c": "red" if "on" not in spec else None}


@pytest.mark.parametrize("rules", ["children: {}", RULES.replace("tier: ", "other: ")])
def test_an_edit_of_the_rules_gives_up_what_they_no_longer_select(rules: str):
    harness = harness_of()
    harness.project = Harness.of(rules).project
    harness.settle()
    assert set(teams(harness).values()) == {None}


def test_a_deleted_custom_resource_releases_all_fields():
    harness = harness_of()
    harness.end()
    harness.settle()
    assert harness.resource is None
    assert set(teams(harness).values()) == {None}


def test_an_object_in_conflict_is_named_and_does_not_stop_the_others():
    harness = harness_of(a="db", b="web", c="web")
    harness.change_as("somebody", space("a"), {"metadata": {"labels": {"tier": "web", "team": "theirs"}}})
    harness.add_as("kubectl-create", namespace("d", tier="web"))
    harness.settle()
    assert teams(harness) == {"a": "theirs", "b": "red", "c": "red", "d": "red"}
    _, reason, message = harness.ready()
    assert (reason, message) == (
        "FieldConflict",
        'mark: watches.yaml:12:38: Namespace/a: metadata.labels.team is held by "somebody"; `force: true` would take it',
    )
    harness.change_as("somebody", space("b"), {"metadata": {"labels": {"tier": "db"}}})
    harness.settle()
    assert teams(harness)["b"] is None
    harness.change_as("somebody", space("a"), {"metadata": {"labels": {"tier": "db"}}})
    harness.settle()
    assert harness.ready()[:2] == ("True", "Ready")


def test_an_object_that_vanishes_meanwhile_is_skipped():
    harness = harness_of()
    harness.edit({**SPEC, "team": "blue"})
    harness.refuse[space("a")] = Failed(Failure.CONFLICT, "gone")
    harness.step()
    harness.refuse.clear()
    del harness.objects[space("a")]
    harness.settle()
    assert teams(harness) == {"b": "blue", "c": None}
    assert harness.ready()[:2] == ("True", "Ready")


def test_more_than_the_limit_are_reported_and_nothing_is_changed_until_there_are_less(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(patched, "MAX_SELECTED", 2)
    harness = harness_of(RULES + "  other: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}}\n")
    harness.add_as("kubectl-create", namespace("d", tier="web"))
    harness.settle()
    message = "mark: watches.yaml:6:5: the selector matches more than 2 objects of the kind Namespace: narrow it"
    assert harness.ready() == ("False", "TooManyObjects", message)
    assert teams(harness) == {"a": "red", "b": "red", "c": None, "d": None, "other": None}
    edit_and_settle(harness, {**SPEC, "team": "blue"})
    assert teams(harness)["a"] == "red"
    harness.change_as("somebody", space("a"), {"metadata": {"labels": {"tier": "db"}}})
    harness.settle()
    assert teams(harness) == {"a": None, "b": "blue", "c": None, "d": "blue", "other": None}


def test_the_objects_of_the_custom_resource_itself_do_not_count():
    rules = (
        IN_NAMESPACE
        + """
  own: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: own, labels: {tier: web}}}}
"""
    )
    harness = Harness.of(rules)
    harness.add_as("kubectl-create", config("theirs", labels={"tier": "web"}))
    harness.settle()
    assert teams(harness) == {"own": None, "theirs": "red"}
    assert harness.ready()[:2] == ("True", "Ready")


def test_without_namespaces_only_objects_in_the_namespace_of_the_custom_resource_match():
    far = "reach: cluster\n" + IN_NAMESPACE.replace("fields", "namespaces: all, fields")
    for rules, there in ((IN_NAMESPACE, None), (far, "red")):
        harness = Harness.of(rules)
        for place in ("shop", "far"):
            harness.add_as("kubectl-create", config("a", labels={"tier": "web"}, namespace=place))
        harness.settle()
        data = {found.namespace: (obj.get("data") or {}).get("team") for found, obj in harness.objects.items()}
        assert data == {"shop": "red", "far": there}


def test_items_have_selectors_of_their_own():
    rules = """
    reach: cluster
    children:
      mark:
        forEach: spec.tiers
        patch:
          version: v1
          kind: Namespace
          selector: {matchExpressions: [{key: tier, operator: In, values: ["{{ item.key }}"]}]}
          fields: {metadata: {labels: {team: "{{ item.value }}"}}}
    """
    harness = harness_of(rules, {"tiers": {"web": "red", "db": "blue"}})
    assert teams(harness) == {"a": "red", "b": "red", "c": "blue"}
    assert len([each for each in harness.plan().watches if each.requirements]) == 2


def test_two_children_that_select_the_same_object_are_reported_and_do_not_stop_others():
    two = RULES + RULES.partition("children:\n")[2].replace("mark:\n", "second:\n", 1)
    two += "  other: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}}\n"
    harness = harness_of(two)
    assert "is rendered twice, by the children mark and second" in harness.ready()[2]
    assert key("other") in harness.objects
    assert teams(harness)["a"] is None


def test_templates_read_the_list_of_the_objects():
    harness = harness_of(RULES + "status: {names: \"{{ mark | map(attribute='metadata.name') | list }}\"}\n")
    assert harness.status["names"] == ["a", "b"]


def test_the_watched_targets_are_the_selector_and_the_objects_that_have_fields_but_do_not_match():
    harness = harness_of()
    (target,) = harness.plan().watches
    assert (target.kind.kind, target.name, target.labels) == ("Namespace", None, (("tier", "web"),))
    harness.held_until = "2026-01-01T00:00:30Z"
    harness.edit({**SPEC, "tier": "db"})
    harness.step()
    assert [target.name for target in harness.plan().watches] == [None, "a", "b"]


@pytest.mark.parametrize(
    ("state", "reason", "message"),
    [
        (
            Served.FORBIDDEN,
            "Forbidden",
            "mark: watches.yaml:6:5: cannot list namespaces: needs get, list, watch, patch",
        ),
        (Served.PENDING, "Waiting", "mark waits for the kind v1 Namespace to be listed"),
        (Served.UNSERVED, "Waiting", "mark waits for the kind v1 Namespace to be served by the cluster"),
    ],
)
def test_a_kind_that_cannot_be_listed_is_not_an_empty_selection(state: Served, reason: str, message: str):
    harness = harness_of()
    harness.served["Namespace"] = state
    edit_and_settle(harness, {**SPEC, "tier": "db"})
    assert harness.ready()[1] == reason
    assert harness.ready()[2] == message
    assert teams(harness) == {"a": "red", "b": "red", "c": None}


def test_a_cluster_scoped_custom_resource_names_the_namespace():
    with pytest.raises(Exception, match='the child "mark" needs a namespace because its CR is cluster-scoped'):
        Harness.of("reach: cluster\n" + IN_NAMESPACE, head="- group: example.com\n  version: v1\n  kind: Global\n")


@pytest.mark.parametrize("crash_after", [0, 1, 2, 3])
def test_a_crash_at_any_write_leaves_no_other_result(crash_after: int):
    harness = Harness.of(RULES, SPEC)
    for name in ("a", "b"):
        harness.add_as("kubectl-create", namespace(name, tier="web"))
    harness.step(crash_after=crash_after)
    harness.settle()
    assert teams(harness) == {"a": "red", "b": "red"}
    harness.end()
    harness.step(crash_after=min(crash_after, 1))
    harness.history = History.NONE
    harness.settle()
    assert harness.resource is None
    assert teams(harness) == {"a": None, "b": None}


NAMES = st.sampled_from(["a", "b", "c", "d"])
TIERS = st.sampled_from(["web", "db"])
STEPS = st.one_of(
    st.tuples(st.just("label"), NAMES, TIERS),
    st.tuples(st.just("remove"), NAMES, st.none()),
    st.tuples(st.just("select"), st.none(), TIERS),
    st.tuples(st.just("switch"), st.none(), st.booleans()),
)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_after_any_changes_exactly_the_objects_that_match_have_the_fields_and_in_the_end_none(
    steps: list[tuple[str, Any, Any]], settles: list[bool]
):
    harness = Harness.of(RULES, SPEC)
    spec: dict[str, Any] = dict(SPEC)
    tiers: dict[str, str] = {}
    for (what, name, value), settle in zip(steps, settles, strict=False):
        if what == "label" and name not in tiers:
            harness.add_as("kubectl-create", namespace(name, tier=value))
        elif what == "label":
            harness.change_as("somebody", space(name), {"metadata": {"labels": {"tier": value}}})
        elif what == "remove":
            harness.objects.pop(space(name), None)
            tiers.pop(name, None)
        else:
            spec = {**spec, "tier" if what == "select" else "on": value}
            harness.edit(spec)
        if what == "label":
            tiers[name] = value
        if settle:
            harness.settle()
            matching = {name for name, tier in tiers.items() if spec.get("on", True) and tier == spec["tier"]}
            assert teams(harness) == {name: "red" if name in matching else None for name in tiers}
            assert harness.plan(History.NONE).quiet
    harness.end()
    if harness.resource is not None:
        harness.settle()
    assert set(teams(harness).values()) <= {None}
    assert not any(list(managers_on(obj)) for obj in harness.objects.values())
