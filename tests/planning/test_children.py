"""Which children are desired, in which order they are written, and which values other children can read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import Kind
from ruleop.planning import Failed, Failure, Served, State, choose_rule
from ruleop.planning.child.existing import Existing
from tests.exploration import examples
from tests.planning.harness import Harness, app, config, key, project
from tests.planning.settled import edit_and_settle, settled

PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"


def plain(name: str, data: str = "{}") -> str:
    return PLAIN.replace("NAME", name) + f"data: {data}\n"


def states(harness: Harness) -> dict[str, State]:
    return {child.id: child.state for child in harness.plan().children}


def waits(harness: Harness) -> list[tuple[str, str]]:
    return [(wait.child, wait.for_what) for wait in harness.plan().waits]


# -- when, waitFor, dependsOn ------------------------------------------------------------------------------------------


def test_a_child_whose_when_is_false_is_not_created_and_is_pruned():
    harness = settled("children: {a: {template: a.yaml, when: spec.on}}", {"on": True}, a=plain("a"))
    harness.edit({"on": False})
    assert states(harness) == {"a": State.UNWANTED}
    harness.settle()
    assert harness.names() == []
    assert harness.ready() == ("True", "Ready", "")


def test_a_when_with_unavailable_values_changes_nothing():
    body = """
    children: {a: {template: a.yaml, when: other.data.go == "1"}}
    observe: {other: {version: v1, kind: ConfigMap, name: other}}
    """
    harness = Harness.of(body, a=plain("a"))
    harness.add(config("other", {"go": "1"}))
    harness.settle()
    harness.delete(key("other"))
    assert waits(harness) == [("a", "other (ConfigMap/shop/other)")]
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]
    assert harness.ready() == ("False", "Waiting", "a waits for other (ConfigMap/shop/other)")
    assert harness.condition("Reconciling")["status"] == "True"
    assert harness.condition("Stalled")["status"] == "False"


def test_a_child_whose_waitfor_is_false_waits_and_an_existing_object_is_kept():
    harness = settled(
        "children: {a: {template: a.yaml, waitFor: spec.go}}",
        {"go": False, "v": "1"},
        a=plain("a", "{v: '{{ spec.v }}'}"),
    )
    assert harness.names() == []
    assert waits(harness) == [("a", "waitFor: spec.go")]
    edit_and_settle(harness, {"go": True, "v": "1"})
    edit_and_settle(harness, {"go": False, "v": "2"})
    assert harness.objects[key("a")]["data"] == {"v": "1"}


def test_an_error_in_when_or_waitfor_has_its_position():
    for body in (
        "children: {a: {template: a.yaml, when: spec.nope}}",
        "children: {a: {template: a.yaml, waitFor: spec.nope}}",
    ):
        (problem,) = Harness.of(body, a=plain("a")).plan().problems
        assert problem.reason == "RenderFailed"
        assert "spec.nope is not set" in problem.message
        assert str(problem.site).startswith("watches.yaml:4")


DEPENDS = """
children:
  db: {template: db.yaml}
  web: {template: web.yaml, dependsOn: [db]}
"""
DB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: []}}}
"""


def test_a_dependency_must_be_ready_for_the_creation_but_not_for_later_changes():
    harness = Harness.of(DEPENDS, {"v": "1"}, db=DB, web=plain("web", "{v: '{{ spec.v }}'}"))
    harness.settle(controllers=False)
    assert harness.names() == ["Deployment/db"]
    assert waits(harness) == [("web", "db to be ready")]
    harness.settle()
    assert harness.names() == ["ConfigMap/web", "Deployment/db"]
    harness.change(key("db", "Deployment", group="apps"), {"status": {"availableReplicas": 0}})
    harness.edit({"v": "2"})
    harness.step()
    assert harness.objects[key("web")]["data"] == {"v": "2"}


@pytest.mark.parametrize(
    ("gate", "value", "creation_waits", "change_waits"),
    [
        (", waitFor: ready.db", "", True, True),
        (", dependsOn: [db]", "", True, False),
        ("", "{{ db.status.availableReplicas }}", True, True),
        ("", "{{ ready.db }}", False, False),
        ("", "{{ live.db.status.availableReplicas | default('') }}", False, False),
    ],
    ids=["waitFor", "dependsOn", "mention", "ready", "live"],
)
def test_the_gates_of_docs_rules_order(gate, value, creation_waits, change_waits):
    body = f"children: {{web: {{template: web.yaml{gate}}}, db: {{template: db.yaml}}}}"
    harness = Harness.of(body, {"v": "1"}, db=DB, web=plain("web", f'{{v: "{{{{ spec.v }}}}", more: "{value}"}}'))
    assert harness.plan().actions[0].key.name == ("web" if "live" in value else "db")
    harness.settle(controllers=False)
    assert ("ConfigMap/web" not in harness.names()) is creation_waits
    harness.settle()
    assert "ConfigMap/web" in harness.names()
    harness.change(key("db", "Deployment", group="apps"), {"status": {"availableReplicas": None}})
    harness.edit({"v": "2"})
    harness.step()
    assert (harness.objects[key("web")]["data"]["v"] == "1") is change_waits


def test_an_undesired_dependency_is_satisfied():
    body = DEPENDS.replace("db.yaml}", "db.yaml, when: 'false'}")
    harness = settled(body, db=DB, web=plain("web"))
    assert harness.names() == ["ConfigMap/web"]


def test_a_child_waits_for_unavailable_values_and_reports_their_paths():
    body = "children: {db: {template: db.yaml}, web: {template: web.yaml}, free: {template: free.yaml}}"
    web = plain("web", "{k: '{{ db.status.availableReplicas }}'}")
    harness = Harness.of(body, db=DB, web=web, free=plain("free"))
    harness.settle(controllers=False)
    assert harness.names() == ["ConfigMap/free", "Deployment/db"]
    assert waits(harness) == [("web", "db.status.availableReplicas")]
    assert str(harness.plan().waits[0].site).startswith("templates/web.yaml:4")
    harness.settle()
    assert harness.objects[key("web")]["data"] == {"k": "1"}


def test_children_are_written_in_the_order_of_their_references():
    harness = Harness.of(
        "children: {z: {template: z.yaml}, a: {template: a.yaml}}",
        z=plain("z", "{k: '{{ a.metadata.name }}'}"),
        a=plain("a"),
    )
    assert [action.key.name for action in harness.plan().actions] == ["a", "z"]
    assert [action.needs for action in harness.plan().actions] == [frozenset(), frozenset({"a"})]


def test_live_never_waits_and_includes_the_child_itself():
    count = plain(
        "a", "{k: \"{{ (live.a.data.k | default('0') | int + 1) if spec.up else live.a.data.k | default('0') }}\"}"
    )
    harness = settled("children: {a: {template: a.yaml}}", {"up": False}, a=count)
    assert harness.objects[key("a")]["data"] == {"k": "0"}
    harness.edit({"up": True})
    harness.step()
    assert harness.objects[key("a")]["data"] == {"k": "1"}


def test_ready_is_available_to_later_children():
    body = "children: {web: {template: web.yaml}, db: {template: db.yaml}}"
    harness = Harness.of(body, db=DB, web=plain("web", "{db: '{{ ready.db }}'}"))
    harness.settle(controllers=False)
    assert harness.objects[key("web")]["data"] == {"db": "false"}
    harness.settle()
    assert harness.objects[key("web")]["data"] == {"db": "true"}


def test_a_let_is_evaluated_once_and_available_everywhere():
    body = """
    let: {full: "{{ metadata.name }}-{{ spec.x }}"}
    children: {a: {template: a.yaml}}
    status: {full: "{{ full }}"}
    """
    harness = settled(body, {"x": "y"}, a=plain("a", "{v: '{{ full }}'}"))
    assert harness.objects[key("a")]["data"] == {"v": "web-y"}
    assert harness.status["full"] == "web-y"


def test_an_error_in_a_let_fails_only_its_readers():
    body = """
    let: {bad: "{{ spec.nope }}"}
    children: {b: {template: b.yaml}%s}
    """
    harness = settled(body % "", b=plain("b"))
    assert harness.names() == ["ConfigMap/b"]
    harness = settled(body % ", a: {template: a.yaml}", a=plain("a", "{v: '{{ bad }}'}"), b=plain("b"))
    assert harness.condition()["reason"] == "RenderFailed"
    assert "spec.nope is not set" in harness.condition()["message"]


# -- failing -----------------------------------------------------------------------------------------------------------

MENTIONS = "children: {a: {template: a.yaml}, b: {template: b.yaml}, c: {template: c.yaml}}"


def mentioning() -> Harness:
    a = plain("a", "{v: '{{ spec.v }}'}")
    b = plain("b", "{k: '{{ a.metadata.name }}', w: '{{ spec.w }}'}")
    return Harness.of(MENTIONS, {"v": "1", "w": "1"}, a=a, b=b, c=plain("c", "{w: '{{ spec.w }}'}"))


def test_an_error_in_one_child_stops_all_writes_of_the_cr():
    harness = mentioning()
    harness.settle()
    harness.edit({"w": "2"})
    assert states(harness) == {"a": State.FAILED, "b": State.WAITING, "c": State.PROGRESSING}
    assert waits(harness) == [("b", "a to be written")]
    harness.settle()
    assert harness.objects[key("b")]["data"]["w"] == "1"
    assert harness.objects[key("c")]["data"]["w"] == "1"
    assert harness.ready()[:2] == ("False", "RenderFailed")
    assert harness.condition("Stalled")["status"] == "True"


def test_a_child_in_sync_stays_ready_although_a_child_that_it_reads_fails():
    harness = mentioning()
    harness.settle()
    harness.edit({"w": "1"})
    assert states(harness) == {"a": State.FAILED, "b": State.READY, "c": State.READY}


def test_a_failed_write_skips_its_readers_in_this_pass():
    harness = mentioning()
    harness.settle()
    harness.refuse[key("a")] = Failed(Failure.OTHER, "no luck")
    harness.edit({"v": "2", "w": "2"})
    harness.step()
    assert harness.objects[key("b")]["data"]["w"] == "1"
    assert harness.objects[key("c")]["data"]["w"] == "2"
    harness.refuse.clear()
    harness.settle()
    assert harness.objects[key("b")]["data"]["w"] == "2"


def test_a_rejected_child_delays_only_its_readers():
    harness = mentioning()
    harness.settle()
    harness.edit({"v": "2", "w": "1"})
    harness.refuse[key("a")] = Failed(Failure.IMMUTABLE, "no")
    harness.step()
    harness.edit({"v": "2", "w": "2"})
    assert states(harness) == {"a": State.FAILED, "b": State.WAITING, "c": State.PROGRESSING}
    assert waits(harness) == [("b", "a to be written")]
    harness.step()
    assert harness.objects[key("b")]["data"]["w"] == "1"
    assert harness.objects[key("c")]["data"]["w"] == "2"


def test_a_waiting_child_delays_only_readers_of_its_values():
    body = "children: {a: {template: a.yaml, waitFor: spec.go}, b: {template: b.yaml}}"
    harness = settled(
        body,
        {"go": True, "w": "1"},
        a=plain("a"),
        b=plain("b", "{k: \"{{ a.metadata.name | default('none') }}\", w: '{{ spec.w }}'}"),
    )
    edit_and_settle(harness, {"go": False, "w": "2"})
    assert harness.objects[key("b")]["data"] == {"k": "a", "w": "2"}


def test_values_of_a_rejected_child_are_waited_for():
    harness = Harness.of(
        "children: {a: {template: a.yaml}, b: {template: b.yaml}}",
        a=plain("a"),
        b=plain("b", "{k: '{{ a.metadata.name }}'}"),
    )
    harness.add(config("a"))
    assert states(harness) == {"a": State.REFUSED, "b": State.WAITING}
    assert waits(harness) == [("b", "a.metadata.name")]


def test_two_children_with_the_same_identity_are_both_rejected():
    for body in (
        "children: {x: {template: a.yaml}, w: {template: b.yaml}, z: {template: c.yaml}}",
        "children: {w: {template: b.yaml}, x: {template: a.yaml}, z: {template: c.yaml}}",
    ):
        harness = settled(body, a=plain("same", "{v: a}"), b=plain("same", "{v: b}"), c=plain("free"))
        assert harness.names() == []
        assert {child.id: child.state for child in harness.plan().children}["x"] is State.FAILED
        assert {child.id: child.state for child in harness.plan().children}["w"] is State.FAILED
        assert "ConfigMap/shop/same is rendered twice, by the children" in harness.condition()["message"]


def test_an_identity_does_not_include_the_version():
    one, two = (
        f"apiVersion: autoscaling/{version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: a}}\nspec: {{}}\n"
        for version in ("v1", "v2")
    )
    harness = Harness.of("children: {x: {template: a.yaml}, w: {template: b.yaml}}", a=one, b=two)
    assert "rendered twice" in harness.plan().problems[0].message


# -- forEach and many documents ----------------------------------------------------------------------------------------

EACH = "children: {x: {template: x.yaml, forEach: spec.items%s}}"
NAMED = plain("n-{{ item }}", "{i: '{{ index }}'}")


def test_each_item_of_a_list_has_an_object_and_a_removed_item_is_pruned():
    harness = settled(EACH % "", {"items": ["a", "b"]}, x=NAMED)
    assert harness.names() == ["ConfigMap/n-a", "ConfigMap/n-b"]
    assert harness.objects[key("n-b")]["data"] == {"i": "1"}
    edit_and_settle(harness, {"items": ["b"]})
    assert harness.names() == ["ConfigMap/n-b"]


@pytest.mark.parametrize(
    "entries", ["spec.items", "spec.items | dictsort", "spec.items | dict2items | sort(attribute='key')"]
)
def test_foreach_over_a_mapping_yields_keys_and_values_sorted_by_key(entries: str):
    harness = settled(
        EACH.replace("spec.items", f'"{entries}"') % "",
        {"items": {"b": {"v": "2"}, "a": {"v": "1"}}},
        x=plain("{{ item.key }}", "{v: '{{ item.value.v }}{{ index }}'}"),
    )
    assert {name.name: obj["data"]["v"] for name, obj in harness.objects.items()} == {"a": "10", "b": "21"}


@pytest.mark.parametrize("count", [0, 3])
def test_foreach_over_a_range_yields_its_numbers(count: int):
    harness = settled(
        "children: {x: {template: x.yaml, forEach: range(spec.n), as: number}}", {"n": count}, x=plain("n-{{ number }}")
    )
    assert len(harness.objects) == count
    assert harness.ready()[0] == "True"


def test_an_empty_foreach_creates_nothing():
    harness = settled(
        EACH.replace("spec.items", "'{{ spec.items if spec.on }}'") % "", {"items": ["a"], "on": True}, x=NAMED
    )
    edit_and_settle(harness, {"items": ["a"], "on": False})
    assert harness.names() == []


def test_a_list_with_failed_and_waiting_items_is_failed_and_reports_the_waits():
    body = "children: {x: {template: x.yaml, forEach: spec.items, waitFor: item.go}}"
    harness = Harness.of(
        body,
        {"items": [{"name": "a", "go": True}, {"go": True}, {"name": "c", "go": False}]},
        x=plain("{{ item.name }}"),
    )
    assert states(harness) == {"x": State.FAILED}
    harness.edit({"items": [{"name": "c", "go": False}, {"go": True}]})
    assert states(harness) == {"x": State.FAILED}
    assert [wait.child for wait in harness.plan().waits] == ["x"]


@pytest.mark.parametrize("value", ["text", 7, True])
def test_foreach_rejects_other_values_than_lists_and_mappings(value: object):
    (problem,) = Harness.of(EACH % "", {"items": value}, x=NAMED).plan().problems
    assert "forEach" in problem.message
    assert str(problem.site).startswith("watches.yaml:4")


def test_an_error_in_a_lazy_filter_is_a_failure_of_the_item():
    harness = Harness.of(
        "children: {x: {template: x.yaml, forEach: \"spec.items | map('required', 'no')\"}}", {"items": [None]}, x=NAMED
    )
    assert harness.plan().problems[0].reason == "RenderFailed"


def test_the_number_of_objects_of_a_cr_is_limited():
    harness = Harness.of("children: {x: {template: x.yaml, forEach: range(5001)}}", x=NAMED)
    (problem,) = harness.plan().problems
    assert "more items than the 5,000" in problem.message


NESTED = """
    children:
      x:
        template: x.yaml
        forEach: {team: spec.teams, env: 'team.envs | default([])', number: range(env.value.n)}
"""
TEAMS = [{"name": "red", "envs": {"prod": {"n": 2}, "dev": {"n": 1}}}, {"name": "blue", "envs": {}}, {"name": "idle"}]


def nested(teams: Any, name: str = "{{ team.name }}-{{ env.key }}-{{ number }}") -> Harness:
    return Harness.of(NESTED, {"teams": teams}, x=plain(name, "{i: '{{ index }}', count: '{{ env.value.n }}'}"))


def test_loops_in_loops_combine_their_items_in_order():
    harness = nested(TEAMS)
    harness.settle()
    data = {name.name: obj["data"] for name, obj in harness.objects.items()}
    assert data == {
        "red-dev-0": {"i": "0", "count": "1"},
        "red-prod-0": {"i": "1", "count": "2"},
        "red-prod-1": {"i": "2", "count": "2"},
    }
    edit_and_settle(harness, {"teams": [{"name": "blue", "envs": {"prod": {"n": 1}}}, *TEAMS[1:]]})
    assert harness.names() == ["ConfigMap/blue-prod-0"]


def test_an_item_of_loops_in_loops_is_named_by_its_positions_and_keys():
    harness = nested([TEAMS[0]], name="{{ team.name if number == 0 else team.nmae }}-{{ env.key }}")
    (problem,) = harness.plan().problems
    assert problem.message.startswith("item team[0], env[prod], number[1] of forEach: {{ team.name if")
    assert states(harness) == {"x": State.FAILED}


def test_an_inner_loop_that_cannot_be_evaluated_stops_its_child_and_deletes_nothing():
    harness = nested(TEAMS)
    harness.settle()
    before = harness.names()
    harness.edit({"teams": [{"name": "green", "envs": {"prod": {}}}]})
    (problem,) = harness.plan().problems
    assert "spec.teams[0].envs.prod.n is not set" in problem.message
    harness.settle()
    assert harness.names() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loops", "limit"),
    [
        ("{a: range(71), b: range(71)}", "more items than the 5,000"),
        ("{a: range(5001), b: '[]'}", "more items than the 5,000"),
        ("{a: range(2), b: range(5001)}", "more items than the 5,000"),
        ("{a: range(5000), b: range(5000), c: '[]'}", "the templates do too much work"),
    ],
)
def test_the_limits_count_all_combinations_of_loops(loops: str, limit: str):
    harness = Harness.of(f"children: {{x: {{template: x.yaml, forEach: {loops}}}}}", x=plain("{{ a }}-{{ b }}"))
    (problem,) = harness.plan().problems
    assert limit in problem.message


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3))
@settings(deadline=None, max_examples=examples(40))
def test_loops_in_loops_have_the_items_of_one_loop_over_their_rows(rows: list[list[int]]):
    one, two = (
        Harness.of(
            f"children: {{x: {{template: x.yaml, forEach: {loops}}}}}",
            {"rows": rows},
            x=plain("n-{{ index }}", f"{{v: '{{{{ {value} }}}}'}}"),
        )
        for loops, value in (("{row: spec.rows, cell: row}", "cell"), ("spec.rows | flatten", "item"))
    )
    one.settle()
    two.settle()
    assert {name: obj["data"]["v"] for name, obj in one.objects.items()} == {
        name: obj["data"]["v"] for name, obj in two.objects.items()
    }


def test_the_limit_counts_all_children_of_the_cr(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ruleop.planning.child.children.MAX_OBJECTS", 3)
    body = "children: {x: {template: x.yaml, forEach: range(2)}, w: {template: w.yaml, forEach: range(2)}}"
    planned = Harness.of(body, x=plain("x-{{ item }}"), w=plain("w-{{ item }}")).plan()
    assert [problem.child for problem in planned.problems] == ["w"]
    assert "more than 3 objects" in planned.problems[0].message


def test_every_key_is_evaluated_for_each_item():
    body = """
    reach: cluster
    children:
      x:
        template: x.yaml
        forEach: spec.items
        when: item.on
        waitFor: item.go
        namespace: "{{ item.ns }}"
        deletion: "{{ item.keep }}"
    """
    items = [
        {"name": "a", "on": True, "go": True, "ns": "one", "keep": "orphan"},
        {"name": "b", "on": False, "go": True, "ns": "one", "keep": "delete"},
        {"name": "c", "on": True, "go": False, "ns": "one", "keep": "delete"},
        {"name": "d", "on": True, "go": True, "ns": "two", "keep": "delete"},
    ]
    harness = settled(body, {"items": items}, x=plain("{{ item.name }}"))
    assert [str(each) for each in sorted(harness.objects)] == ["ConfigMap/one/a", "ConfigMap/two/d"]
    assert waits(harness) == [("x", "waitFor: item.go")]
    assert harness.claim(key("a", namespace="one")).orphan
    assert not harness.claim(key("d", namespace="two")).orphan


def test_readers_of_a_list_with_a_waiting_item_wait():
    body = (
        "children: {x: {template: x.yaml, forEach: spec.items, waitFor: item != 'b' or spec.go}, w: {template: w.yaml}}"
    )
    names = "{k: \"{{ x | map(attribute='metadata.name') | join(',') }}\"}"
    harness = settled(body, {"items": ["a", "b"], "go": False}, x=plain("{{ item }}"), w=plain("w", names))
    assert harness.names() == ["ConfigMap/a"]
    assert ("w", "x") in waits(harness)
    edit_and_settle(harness, {"items": ["a", "b"], "go": True})
    assert harness.objects[key("w")]["data"] == {"k": "a,b"}


def test_a_failed_item_fails_its_child_and_nothing_of_the_child_is_pruned():
    harness = settled(EACH % "", {"items": [{"name": "a"}, {"name": "b"}]}, x=plain("{{ item.name }}"))
    edit_and_settle(harness, {"items": [{"name": "a"}, {"other": "c"}]})
    assert harness.names() == ["ConfigMap/a", "ConfigMap/b"]
    assert harness.condition()["reason"] == "RenderFailed"


EACH_AND_DB = "children: {db: {template: db.yaml}, x: {template: x.yaml, forEach: spec.items}, old: {template: old.yaml, when: spec.old | default(false)}}"


def each_and_db(items, **spec):
    return Harness.of(
        EACH_AND_DB,
        {"items": items, "v": "1", **spec},
        db=plain("db", "{v: '{{ spec.v }}'}"),
        x=plain("{{ item.name }}"),
        old=plain("old"),
    )


def test_duplicate_names_of_two_items_fail_only_their_child():
    harness = each_and_db([{"name": "a"}], old=True)
    harness.settle()
    edit_and_settle(harness, {"items": [{"name": "a"}, {"name": "b"}, {"name": "b"}, {"name": "c"}], "v": "2"})
    assert harness.names() == ["ConfigMap/a", "ConfigMap/c", "ConfigMap/db"], "not b, and nobody could desire `old`"
    assert harness.objects[key("db")]["data"] == {"v": "2"}
    assert states(harness) == {"db": State.READY, "x": State.FAILED, "old": State.UNWANTED}
    assert harness.ready()[:2] == ("False", "RenderFailed")
    assert "ConfigMap/shop/b is rendered twice, by this child" in harness.condition()["message"]
    assert harness.condition("Stalled")["status"] == "True"
    edit_and_settle(harness, {"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "v": "2"})
    assert harness.names() == ["ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "ConfigMap/db"]
    assert harness.ready()[0] == "True"


def test_an_item_with_the_name_of_another_child_fails_only_these_two_children():
    body = EACH_AND_DB.replace("children: {", "children: {w: {template: w.yaml}, ")
    texts = {
        "db": plain("db", "{v: '{{ spec.v }}'}"),
        "x": plain("{{ item.name }}"),
        "old": plain("old"),
        "w": plain("w", "{v: '{{ spec.v }}'}"),
    }
    harness = settled(body, {"items": [], "v": "1"}, **texts)
    edit_and_settle(harness, {"items": [{"name": "db"}], "v": "2"})
    assert harness.objects[key("db")]["data"] == {"v": "1"}
    assert harness.objects[key("w")]["data"] == {"v": "2"}
    assert states(harness)["db"] is State.FAILED


def test_an_item_that_cannot_be_rendered_fails_its_child_and_the_other_items_are_written():
    harness = each_and_db([{"name": "a"}], old=True)
    harness.settle()
    edit_and_settle(harness, {"items": [{"nam": "x"}, {"name": "b"}, {"name": "No Name"}], "v": "2"})
    assert harness.names() == ["ConfigMap/a", "ConfigMap/b", "ConfigMap/db", "ConfigMap/old"]
    assert harness.objects[key("db")]["data"] == {"v": "2"}
    assert harness.ready()[:2] == ("False", "RenderFailed")
    assert "item 0 of forEach (and 1 more): " in harness.condition()["message"]
    assert "spec.items[0].name is not set" in harness.condition()["message"]


def test_readers_of_a_list_with_a_failed_item_wait_for_it():
    body = "children: {x: {template: x.yaml, forEach: spec.items}, w: {template: w.yaml}}"
    names = "{k: \"{{ x | map(attribute='metadata.name') | join(',') }}\"}"
    harness = settled(body, {"items": [{"name": "a"}, {}]}, x=plain("{{ item.name }}"), w=plain("w", names))
    assert harness.names() == ["ConfigMap/a"]
    assert states(harness) == {"x": State.FAILED, "w": State.WAITING}


def test_an_error_in_foreach_itself_fails_the_whole_cr():
    harness = each_and_db([{"name": "a"}])
    harness.settle()
    edit_and_settle(harness, {"v": "2"})
    assert harness.objects[key("db")]["data"] == {"v": "1"}
    assert harness.ready()[:2] == ("False", "RenderFailed")


def test_an_item_that_exceeds_a_limit_stops_the_cr_and_later_items_are_not_rendered():
    body = "children: {db: {template: db.yaml}, x: {template: x.yaml, forEach: spec.items}}"
    much = "{v: \"{{ 'x' * item }}\"}"
    harness = Harness.of(body, {"items": [1, 10**9, 10**9]}, db=plain("db"), x=plain("n-{{ index }}", much))
    (problem,) = harness.plan().problems
    assert "characters" in problem.message
    assert "item 1" not in problem.message
    assert harness.plan().actions == ()


MANY = """
children: {x: {template: x.yaml}, w: {template: w.yaml}}
"""
DOCUMENTS = """
{% if spec.on %}
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {v: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: one}
{% endif %}
"""


def test_an_object_of_a_template_with_several_documents_is_found_by_name():
    w = plain(
        "w", "{v: \"{{ x['ConfigMap/one'].data.v }}{{ x['Secret/one'].kind }}{{ x | length }}{{ x['one'].kind }}\"}"
    )
    harness = settled(MANY, {"on": True}, x=DOCUMENTS, w=w)
    assert harness.objects[key("w")]["data"] == {"v": "1Secret2ConfigMap"}


def test_a_template_without_documents_is_an_empty_list():
    harness = settled(MANY, {"on": False}, x=DOCUMENTS, w=plain("w", "{k: '{{ x | length }}'}"))
    assert harness.objects[key("w")]["data"] == {"k": "0"}
    assert states(harness)["x"] is State.READY


def test_an_empty_template_is_like_a_false_when():
    one = "{% if spec.on %}\n" + plain("a") + "{% endif %}\n"
    harness = settled("children: {a: {template: a.yaml}}", {"on": True}, a=one)
    harness.edit({"on": False})
    assert states(harness) == {"a": State.UNWANTED}
    harness.settle()
    assert harness.names() == []


def test_reading_an_undesired_child_is_an_error_unless_default_is_used():
    body = "children: {a: {template: a.yaml, when: spec.on}%s, c: {template: c.yaml}}"
    b, c = (
        plain("b", "{k: '{{ a.metadata.name }}'}"),
        plain("c", "{k: \"{{ a.metadata.name | default('no') }}{{ a is defined }}\"}"),
    )
    harness = settled(body % "", {"on": False}, a=plain("a"), c=c)
    assert harness.objects[key("c")]["data"] == {"k": "nofalse"}
    harness = settled(body % ", b: {template: b.yaml}", {"on": False}, a=plain("a"), b=b, c=c)
    assert "`when` of the child a is false" in harness.condition()["message"]
    assert states(harness)["b"] is State.FAILED


# -- served kinds ------------------------------------------------------------------------------------------------------

CERTIFICATE = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\nspec: {}\n"


def test_children_of_an_unserved_kind_wait_and_others_do_not():
    harness = Harness.of("children: {c: {template: c.yaml}, a: {template: a.yaml}}", c=CERTIFICATE, a=plain("a"))
    harness.served["Certificate"] = Served.UNSERVED
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]
    assert waits(harness) == [("c", "the kind cert-manager.io/v1 Certificate to be served by the cluster")]
    harness.served.clear()
    harness.settle()
    assert "Certificate/c" in harness.names()


CHOICE = """
    children:
      x: {template: x.yaml}
      w: {object: {apiVersion: v1, kind: "{{ 'Secret' if spec.secret else 'ConfigMap' }}", metadata: {name: w}}}
"""
CHOSEN = "apiVersion: v1\nkind: {{ 'Secret' if spec.secret else 'ConfigMap' }}\nmetadata: {name: x}\n"


def test_another_kind_of_a_choice_is_created_before_the_old_object_is_removed():
    harness = settled(CHOICE, {"secret": False}, x=CHOSEN)
    assert harness.names() == ["ConfigMap/w", "ConfigMap/x"]
    harness.edit({"secret": True})
    actions = [(type(action).__name__, action.key.kind) for action in harness.plan().actions]
    assert actions[:2] == [("Create", "Secret"), ("Create", "Secret")]
    harness.settle()
    assert harness.names() == ["Secret/w", "Secret/x"]


def test_a_version_is_chosen_by_what_the_cluster_serves():
    choice = (
        "apiVersion: {{ 'cert-manager.io/v1' if has_kind('cert-manager.io/v1', 'Certificate') else "
        "'cert-manager.io/v1alpha2' }}\nkind: Certificate\nmetadata: {name: c}\nspec: {}\n"
    )
    harness = Harness.of("children: {c: {template: c.yaml, optional: true}}", c=choice)
    harness.served["cert-manager.io/v1 Certificate"] = Served.UNSERVED
    harness.settle()
    assert [obj["apiVersion"] for obj in harness.objects.values()] == ["cert-manager.io/v1alpha2"]
    harness.served = {"cert-manager.io/v1alpha2 Certificate": Served.UNSERVED}
    harness.settle()
    assert harness.names() == ["Certificate/c"]
    harness.served = {"Certificate": Served.UNSERVED}
    assert states(harness) == {"c": State.UNWANTED}


def test_a_child_in_a_namespace_that_is_not_watched_waits():
    body = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}, b: {template: b.yaml}}"
    harness = Harness.of(body, a=plain("a"), b=plain("b"))
    info = harness.info(Kind("", "v1", "ConfigMap"))
    harness.infos["ConfigMap"] = replace(info, places={"shop": Served.SYNCED})
    harness.settle()
    assert harness.names() == ["ConfigMap/b"]
    assert waits(harness) == [("a", "the namespace far to be watched: add it to --namespaces")]
    harness.infos["ConfigMap"] = replace(info, places={"shop": Served.SYNCED, "far": Served.FORBIDDEN})
    (problem,) = harness.plan().problems
    assert problem.message == "cannot list configmaps in namespace far: needs get, list, watch, create, patch, delete"
    harness.infos["ConfigMap"] = replace(info, places={"shop": Served.SYNCED, "far": Served.SYNCED})
    harness.settle()
    assert harness.names() == ["ConfigMap/a", "ConfigMap/b"]


def test_a_missing_permission_in_another_namespace_has_no_effect():
    harness = Harness.of("reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}", a=plain("a"))
    info = harness.info(Kind("", "v1", "ConfigMap"))
    harness.infos["ConfigMap"] = replace(
        info, state=Served.FORBIDDEN, places={"shop": Served.FORBIDDEN, "far": Served.SYNCED}
    )
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]


def test_an_optional_child_of_an_unserved_kind_is_not_desired():
    body = """
    children:
      c: {template: c.yaml, optional: true}
      a: {template: a.yaml}
    """
    harness = Harness.of(
        body,
        c=CERTIFICATE,
        a=plain("a", "{k: \"{{ has_kind('cert-manager.io/v1', 'Certificate') }}{{ c is defined }}\"}"),
    )
    harness.served["Certificate"] = Served.UNSERVED
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"k": "falsefalse"}
    assert harness.ready()[0] == "True"
    assert (
        next(child for child in harness.plan().children if child.id == "c").message
        == "the cluster does not serve its kind"
    )
    harness.served.clear()
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"k": "truetrue"}


def test_a_forbidden_kind_fails_its_children_and_prunes_nothing():
    body = "children: {a: {template: a.yaml}, s: {template: s.yaml, when: spec.on}}"
    harness = settled(body, {"on": True}, a=plain("a"), s="apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    harness.served["Secret"] = Served.FORBIDDEN
    assert states(harness) == {"a": State.READY, "s": State.FAILED}
    assert harness.plan().actions == ()
    harness.settle()
    message = (
        "s: templates/s.yaml:1: cannot list secrets in all namespaces: needs get, list, watch, create, patch, delete"
    )
    assert harness.ready() == ("False", "Forbidden", message)
    assert harness.condition("Stalled")["status"] == "True"


def test_observed_objects_are_selected_and_waited_for_until_their_kind_is_listed():
    body = """
    children: {a: {template: a.yaml}}
    observe:
      pods: {version: v1, kind: Pod, selector: {matchLabels: {app: "{{ metadata.name }}"}, matchExpressions: [{key: gone, operator: DoesNotExist}]}}
      nodes: {version: v1, kind: Node, selector: {matchExpressions: [{key: zone, operator: In, values: [a, b]}, {key: x, operator: NotIn, values: [z]}, {key: zone, operator: Exists}]}}
      one: {version: v1, kind: Service, name: one}
    status:
      pods: "{{ pods | map(attribute='metadata.name') }}"
      nodes: "{{ nodes | map(attribute='metadata.name') }}"
      ip: "{{ one.spec.clusterIP }}"
    """
    harness = Harness.of(body, a=plain("a", "{k: '{{ pods | length }}'}"))
    for name, labels in {
        "p2": {"app": "web"},
        "p1": {"app": "web"},
        "p3": {"app": "x"},
        "p4": {"app": "web", "gone": ""},
    }.items():
        harness.add(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": labels}}
        )
    for name, labels in {
        "n1": {"zone": "a"},
        "n2": {"zone": "c"},
        "n3": {"zone": "b", "x": "z"},
        "n4": {"zone": "b", "x": "w"},
    }.items():
        harness.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"k": "2"}
    assert harness.status["pods"] == ["p1", "p2"]
    assert harness.status["nodes"] == ["n1", "n4"]
    assert "ip" not in harness.status
    harness.add(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "one", "namespace": "shop"},
            "spec": {"clusterIP": "10.0.0.1"},
        }
    )
    harness.settle()
    assert harness.status["ip"] == "10.0.0.1"
    for state, why in (
        (Served.UNSERVED, "pods (Pod is not served by the cluster)"),
        (Served.PENDING, "pods (Pod is not listed yet)"),
    ):
        harness.served["Pod"] = state
        assert waits(harness) == [("a", why)]
    harness.served["Pod"] = Served.FORBIDDEN
    harness.settle()
    assert harness.ready()[:2] == ("False", "Forbidden")
    assert harness.ready()[2].endswith("cannot list pods in all namespaces: needs list, watch")
    assert "pods" not in harness.status


def test_an_error_in_the_name_of_an_observe_fails_its_readers():
    body = """
    children: {a: {template: a.yaml}}
    observe: {one: {version: v1, kind: ConfigMap, name: "{{ spec.nope }}"}}
    """
    (problem,) = Harness.of(body, a=plain("a", "{v: '{{ one.data.x }}'}")).plan().problems
    assert "spec.nope is not set" in problem.message


def test_an_unused_observe_is_not_evaluated():
    body = """
    let: {names: "{{ pods | map(attribute='metadata.name') | join(',') }}"}
    children: {a: {template: a.yaml}}
    observe: {pods: {version: v1, kind: Pod, selector: {app: x}}}
    """
    harness = Harness.of(body, a=plain("a", "{v: '{{ names }}'}"))
    harness.served["Pod"] = Served.UNSERVED
    assert [wait.for_what for wait in harness.plan().waits] == ["pods (Pod is not served by the cluster)"]
    harness.served.clear()
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": ""}


def test_observed_objects_come_without_managed_fields():
    body = """
    children: {a: {template: a.yaml}}
    observe: {one: {version: v1, kind: ConfigMap, name: one, namespace: other}}
    reach: cluster
    """
    harness = Harness.of(body, a=plain("a", "{k: '{{ one.metadata.managedFields is defined }}{{ one.data.v }}'}"))
    harness.add({**config("one", {"v": "1"}), "metadata": {"name": "one", "namespace": "other", "managedFields": [{}]}})
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"k": "false1"}


# -- readiness ---------------------------------------------------------------------------------------------------------


def test_ready_when_overrides_the_built_in_rule():
    body = "children: {a: {template: a.yaml, readyWhen: this.data.state == 'up'}}"
    harness = settled(body, a=plain("a"))
    expected = "ConfigMap/a: readyWhen: this.data.state is not available yet"
    assert harness.ready() == ("False", "Progressing", expected)
    assert harness.plan().children[0].message == "ConfigMap/a: readyWhen: this.data.state is not available yet"
    harness.change(key("a"), {"data": {"state": "down"}})
    assert harness.plan().children[0].message == "ConfigMap/a: readyWhen is false"
    harness.change(key("a"), {"data": {"state": "up"}})
    harness.settle()
    assert harness.ready()[0] == "True"


def test_a_failed_ready_when_is_reported_and_not_ready():
    harness = settled("children: {a: {template: a.yaml, readyWhen: spec.nope}}", a=plain("a"))
    assert harness.ready()[:2] == ("False", "RenderFailed")
    assert states(harness) == {"a": State.PROGRESSING}


def test_a_permanently_failed_child_stalls_the_cr_and_others_are_still_pruned():
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {}\n"
    harness = settled(
        "children: {j: {template: j.yaml}, a: {template: a.yaml, when: spec.on}}", {"on": True}, j=job, a=plain("a")
    )
    harness.change(key("j", "Job", group="batch"), {"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    edit_and_settle(harness, {"on": False}, controllers=False)
    assert harness.ready() == ("False", "ChildFailed", "j: Job/j: failed")
    assert harness.condition("Stalled")["status"] == "True"
    assert harness.names() == ["Job/j"]


# -- a Namespace that is a child ---------------------------------------------------------------------------------------


def test_objects_in_a_namespace_that_is_a_child_wait_for_the_namespace():
    body = """
    reach: cluster
    children:
      inside: {template: inside.yaml, namespace: "{{ metadata.name }}-ns"}
      ns: {template: ns.yaml}
    """
    harness = Harness.of(
        body, inside=plain("inside"), ns="apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ metadata.name }}-ns'}\n"
    )
    planned = harness.step()
    assert [action.key.kind for action in planned.actions] == ["App", "Namespace"]
    assert waits(harness) == [("inside", "ns to be ready")]
    assert states(harness)["inside"] is State.WAITING
    harness.settle()
    assert [str(each) for each in sorted(harness.objects)] == ["ConfigMap/web-ns/inside", "Namespace/web-ns"]
    assert harness.ready()[0] == "True"


TEAM = """
reach: cluster
children:
  quota: {forEach: "{{ spec.teams }}", as: team, template: inside.yaml, namespace: "{{ team }}"}
  own: {template: own.yaml}
  ns: {forEach: "{{ spec.teams }}", as: team, template: ns.yaml}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ team }}', labels: {of: '{{ spec.labels[team] }}'}}\n"


def test_objects_in_a_namespace_whose_item_fails_wait_for_it():
    spec = {"teams": ["a", "b"], "labels": {"a": "x", "b": "not valid"}}
    harness = settled(TEAM, spec, inside=plain("inside"), own=plain("own"), ns=NAMESPACE)
    written = ["ConfigMap/a/inside", "ConfigMap/shop/own", "Namespace/a"]
    assert [str(each) for each in sorted(harness.objects)] == written
    assert ("quota", "ns to be written") in waits(harness)
    assert harness.ready()[1] == "RenderFailed"
    harness.resource["spec"]["labels"]["b"] = "valid"  # type: ignore[index]
    harness.settle()
    assert [str(each) for each in sorted(harness.objects)] == [
        "ConfigMap/a/inside",
        "ConfigMap/b/inside",
        *written[1:],
        "Namespace/b",
    ]


def test_a_namespace_that_exists_is_not_waited_for_while_its_item_fails():
    spec = {"teams": ["a"], "labels": {"a": "x"}}
    harness = settled(TEAM, spec, inside=plain("inside"), own=plain("own"), ns=NAMESPACE)
    harness.objects.pop(next(key for key in harness.objects if key.namespace == "a"))
    harness.resource["spec"]["labels"]["a"] = "not valid"  # type: ignore[index]
    harness.settle()
    assert [str(each) for each in sorted(harness.objects)] == [
        "ConfigMap/a/inside",
        "ConfigMap/shop/own",
        "Namespace/a",
    ]


def test_the_order_in_the_file_does_not_matter_without_dependencies():
    texts = {"a": plain("a"), "b": plain("b"), "c": plain("c")}
    ends = []
    for order in ("abc", "cab", "bca"):
        harness = settled("children:\n" + "".join(f"  {each}: {{template: {each}.yaml}}\n" for each in order), **texts)
        ends.append(harness.masked())
    assert ends[0] == ends[1] == ends[2]


def test_the_first_matching_watch_is_chosen_by_selector_namespace_and_any_version():
    text = """
    - {group: example.com, version: v1, kind: App, name: gold, selector: {tier: gold}, children: {a: {template: a.yaml}}}
    - {group: example.com, version: v1, kind: App, name: shop, namespaces: [shop], children: {a: {template: a.yaml}}}
    """
    rules = project("", head=text.replace("\n    ", "\n").strip() + "\n#", a=plain("a")).rules
    assert choose_rule(rules, app(labels={"tier": "gold"})).name == "gold"
    assert choose_rule(rules, app()).name == "shop"
    assert choose_rule(rules, app(namespace="x")) is None
    assert choose_rule(rules, {**app(), "apiVersion": "example.com/v2"}).name == "shop"
    assert choose_rule(rules, {**app(), "kind": "Other"}) is None


def test_an_existing_object_with_a_deletion_timestamp_is_terminating():
    live = config("a", deletionTimestamp="2026-01-01T00:00:00Z")
    assert Existing(key("a"), live, None, "a").terminating  # type: ignore[arg-type]
