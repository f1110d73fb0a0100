"""Which children are wanted, when, in which order, and what others see of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ruleop.kinds import Kind
from ruleop.planning import Failed, Failure, Served, State, choose_rule
from ruleop.planning.child_plan import Existing
from tests.planning.world import World, app, config, key, project

PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"


def plain(name: str, data: str = "{}") -> str:
    return PLAIN.replace("NAME", name) + f"data: {data}\n"


def states(world: World) -> dict[str, State]:
    return {child.id: child.state for child in world.plan().children}


def waits(world: World) -> list[tuple[str, str]]:
    return [(wait.child, wait.for_what) for wait in world.plan().waits]


# -- when, waitFor, dependsOn ------------------------------------------------------------------------------------------------------------


def test_a_child_whose_when_is_false_is_not_created_and_is_pruned():
    world = World.of("children: {a: {template: a.yaml, when: spec.on}}", {"on": True}, a=plain("a"))
    world.settle()
    world.edit({"on": False})
    assert states(world) == {"a": State.UNWANTED}
    world.settle()
    assert world.names() == []
    assert world.ready() == ("True", "Ready", "")


def test_a_when_with_missing_values_changes_nothing():
    body = """
    children: {a: {template: a.yaml, when: other.data.go == "1"}}
    observe: {other: {version: v1, kind: ConfigMap, name: other}}
    """
    world = World.of(body, a=plain("a"))
    world.add(config("other", {"go": "1"}))
    world.settle()
    world.delete(key("other"))
    assert waits(world) == [("a", "other (ConfigMap/shop/other)")]
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    assert world.ready() == ("False", "Waiting", "a waits for other (ConfigMap/shop/other)")
    assert world.condition("Reconciling")["status"] == "True"
    assert world.condition("Stalled")["status"] == "False"


def test_a_child_waits_while_waitfor_is_false_and_what_exists_stays_as_it_is():
    world = World.of(
        "children: {a: {template: a.yaml, waitFor: spec.go}}",
        {"go": False, "v": "1"},
        a=plain("a", "{v: '{{ spec.v }}'}"),
    )
    world.settle()
    assert world.names() == []
    assert waits(world) == [("a", "waitFor: spec.go")]
    world.edit({"go": True, "v": "1"})
    world.settle()
    world.edit({"go": False, "v": "2"})
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "1"}


def test_an_error_in_when_or_waitfor_has_its_place():
    for body in (
        "children: {a: {template: a.yaml, when: spec.nope}}",
        "children: {a: {template: a.yaml, waitFor: spec.nope}}",
    ):
        (problem,) = World.of(body, a=plain("a")).plan().problems
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


def test_a_dependency_has_to_be_ready_before_the_create_and_not_for_later_changes():
    world = World.of(DEPENDS, {"v": "1"}, db=DB, web=plain("web", "{v: '{{ spec.v }}'}"))
    world.settle(controllers=False)
    assert world.names() == ["Deployment/db"]
    assert waits(world) == [("web", "db to be ready")]
    world.settle()
    assert world.names() == ["ConfigMap/web", "Deployment/db"]
    world.change(key("db", "Deployment", group="apps"), {"status": {"availableReplicas": 0}})
    world.edit({"v": "2"})
    world.step()
    assert world.objects[key("web")]["data"] == {"v": "2"}


def test_an_undesired_dependency_is_satisfied():
    body = DEPENDS.replace("db.yaml}", "db.yaml, when: 'false'}")
    world = World.of(body, db=DB, web=plain("web"))
    world.settle()
    assert world.names() == ["ConfigMap/web"]


def test_a_child_waits_for_the_values_that_it_uses_and_says_which():
    body = "children: {db: {template: db.yaml}, web: {template: web.yaml}, free: {template: free.yaml}}"
    web = plain("web", "{k: '{{ db.status.availableReplicas }}'}")
    world = World.of(body, db=DB, web=web, free=plain("free"))
    world.settle(controllers=False)
    assert world.names() == ["ConfigMap/free", "Deployment/db"]
    assert waits(world) == [("web", "db.status.availableReplicas")]
    assert str(world.plan().waits[0].site).startswith("templates/web.yaml:4")
    world.settle()
    assert world.objects[key("web")]["data"] == {"k": "1"}


def test_children_are_written_in_the_order_of_their_references():
    world = World.of(
        "children: {z: {template: z.yaml}, a: {template: a.yaml}}",
        z=plain("z", "{k: '{{ a.metadata.name }}'}"),
        a=plain("a"),
    )
    assert [action.key.name for action in world.plan().actions] == ["a", "z"]
    assert [action.needs for action in world.plan().actions] == [frozenset(), frozenset({"a"})]


def test_live_never_waits_and_includes_the_child_itself():
    count = plain(
        "a", "{k: \"{{ (live.a.data.k | default('0') | int + 1) if spec.up else live.a.data.k | default('0') }}\"}"
    )
    world = World.of("children: {a: {template: a.yaml}}", {"up": False}, a=count)
    world.settle()
    assert world.objects[key("a")]["data"] == {"k": "0"}
    world.edit({"up": True})
    world.step()
    assert world.objects[key("a")]["data"] == {"k": "1"}


def test_ready_is_available_to_later_children():
    body = "children: {web: {template: web.yaml}, db: {template: db.yaml}}"
    world = World.of(body, db=DB, web=plain("web", "{db: '{{ ready.db }}'}"))
    world.settle(controllers=False)
    assert world.objects[key("web")]["data"] == {"db": "false"}
    world.settle()
    assert world.objects[key("web")]["data"] == {"db": "true"}


def test_a_let_is_evaluated_once_and_available_everywhere():
    body = """
    let: {full: "{{ metadata.name }}-{{ spec.x }}"}
    children: {a: {template: a.yaml}}
    status: {full: "{{ full }}"}
    """
    world = World.of(body, {"x": "y"}, a=plain("a", "{v: '{{ full }}'}"))
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "web-y"}
    assert world.status["full"] == "web-y"


def test_an_error_in_a_let_fails_only_its_readers():
    body = """
    let: {bad: "{{ spec.nope }}"}
    children: {b: {template: b.yaml}%s}
    """
    world = World.of(body % "", b=plain("b"))
    world.settle()
    assert world.names() == ["ConfigMap/b"]
    world = World.of(body % ", a: {template: a.yaml}", a=plain("a", "{v: '{{ bad }}'}"), b=plain("b"))
    world.settle()
    assert world.condition()["reason"] == "RenderFailed"
    assert "spec.nope is not set" in world.condition()["message"]


# -- failing -----------------------------------------------------------------------------------------------------------------------------

MENTIONS = "children: {a: {template: a.yaml}, b: {template: b.yaml}, c: {template: c.yaml}}"


def mentioning() -> World:
    a = plain("a", "{v: '{{ spec.v }}'}")
    b = plain("b", "{k: '{{ a.metadata.name }}', w: '{{ spec.w }}'}")
    return World.of(MENTIONS, {"v": "1", "w": "1"}, a=a, b=b, c=plain("c", "{w: '{{ spec.w }}'}"))


def test_an_error_in_one_child_stops_all_writes_of_the_cr():
    world = mentioning()
    world.settle()
    world.edit({"w": "2"})
    assert states(world) == {"a": State.FAILED, "b": State.WAITING, "c": State.PROGRESSING}
    assert waits(world) == [("b", "a to be written")]
    world.settle()
    assert world.objects[key("b")]["data"]["w"] == "1"
    assert world.objects[key("c")]["data"]["w"] == "1"
    assert world.ready()[:2] == ("False", "RenderFailed")
    assert world.condition("Stalled")["status"] == "True"


def test_a_child_in_sync_stays_ready_although_a_child_that_it_reads_fails():
    world = mentioning()
    world.settle()
    world.edit({"w": "1"})
    assert states(world) == {"a": State.FAILED, "b": State.READY, "c": State.READY}


def test_a_failed_write_skips_its_readers_in_this_pass():
    world = mentioning()
    world.settle()
    world.refuse[key("a")] = Failed(Failure.OTHER, "no luck")
    world.edit({"v": "2", "w": "2"})
    world.step()
    assert world.objects[key("b")]["data"]["w"] == "1"
    assert world.objects[key("c")]["data"]["w"] == "2"
    world.refuse.clear()
    world.settle()
    assert world.objects[key("b")]["data"]["w"] == "2"


def test_a_rejected_child_delays_only_its_readers():
    world = mentioning()
    world.settle()
    world.edit({"v": "2", "w": "1"})
    world.refuse[key("a")] = Failed(Failure.IMMUTABLE, "no")
    world.step()
    world.edit({"v": "2", "w": "2"})
    assert states(world) == {"a": State.FAILED, "b": State.WAITING, "c": State.PROGRESSING}
    assert waits(world) == [("b", "a to be written")]
    world.step()
    assert world.objects[key("b")]["data"]["w"] == "1"
    assert world.objects[key("c")]["data"]["w"] == "2"


def test_a_waiting_child_delays_only_readers_of_its_values():
    body = "children: {a: {template: a.yaml, waitFor: spec.go}, b: {template: b.yaml}}"
    world = World.of(
        body,
        {"go": True, "w": "1"},
        a=plain("a"),
        b=plain("b", "{k: \"{{ a.metadata.name | default('none') }}\", w: '{{ spec.w }}'}"),
    )
    world.settle()
    world.edit({"go": False, "w": "2"})
    world.settle()
    assert world.objects[key("b")]["data"] == {"k": "a", "w": "2"}


def test_values_of_a_rejected_child_are_not_there_yet():
    world = World.of(
        "children: {a: {template: a.yaml}, b: {template: b.yaml}}",
        a=plain("a"),
        b=plain("b", "{k: '{{ a.metadata.name }}'}"),
    )
    world.add(config("a"))
    assert states(world) == {"a": State.REFUSED, "b": State.WAITING}
    assert waits(world) == [("b", "a.metadata.name")]


def test_two_children_with_the_same_identity_are_both_rejected():
    for body in (
        "children: {x: {template: a.yaml}, w: {template: b.yaml}, z: {template: c.yaml}}",
        "children: {w: {template: b.yaml}, x: {template: a.yaml}, z: {template: c.yaml}}",
    ):
        world = World.of(body, a=plain("same", "{v: a}"), b=plain("same", "{v: b}"), c=plain("free"))
        world.settle()
        assert world.names() == []
        assert {child.id: child.state for child in world.plan().children}["x"] is State.FAILED
        assert {child.id: child.state for child in world.plan().children}["w"] is State.FAILED
        assert "ConfigMap/shop/same is rendered twice, by the children" in world.condition()["message"]


def test_an_identity_does_not_include_the_version():
    one, two = (
        f"apiVersion: autoscaling/{version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: a}}\nspec: {{}}\n"
        for version in ("v1", "v2")
    )
    world = World.of("children: {x: {template: a.yaml}, w: {template: b.yaml}}", a=one, b=two)
    assert "rendered twice" in world.plan().problems[0].message


# -- forEach and many documents ----------------------------------------------------------------------------------------------------------

EACH = "children: {x: {template: x.yaml, forEach: spec.items%s}}"
NAMED = plain("n-{{ item }}", "{i: '{{ index }}'}")


def test_each_item_of_a_list_has_an_object_and_a_removed_item_is_pruned():
    world = World.of(EACH % "", {"items": ["a", "b"]}, x=NAMED)
    world.settle()
    assert world.names() == ["ConfigMap/n-a", "ConfigMap/n-b"]
    assert world.objects[key("n-b")]["data"] == {"i": "1"}
    world.edit({"items": ["b"]})
    world.settle()
    assert world.names() == ["ConfigMap/n-b"]


@pytest.mark.parametrize(
    "entries", ["spec.items", "spec.items | dictsort", "spec.items | dict2items | sort(attribute='key')"]
)
def test_foreach_over_a_mapping_has_key_and_value_sorted_by_key(entries: str):
    world = World.of(
        EACH.replace("spec.items", f'"{entries}"') % "",
        {"items": {"b": {"v": "2"}, "a": {"v": "1"}}},
        x=plain("{{ item.key }}", "{v: '{{ item.value.v }}{{ index }}'}"),
    )
    world.settle()
    assert {name.name: obj["data"]["v"] for name, obj in world.objects.items()} == {"a": "10", "b": "21"}


@pytest.mark.parametrize("count", [0, 3])
def test_foreach_over_a_range_has_its_numbers(count: int):
    world = World.of(
        "children: {x: {template: x.yaml, forEach: range(spec.n), as: number}}", {"n": count}, x=plain("n-{{ number }}")
    )
    world.settle()
    assert len(world.objects) == count
    assert world.ready()[0] == "True"


def test_an_empty_foreach_creates_nothing():
    world = World.of(
        EACH.replace("spec.items", "'{{ spec.items if spec.on }}'") % "", {"items": ["a"], "on": True}, x=NAMED
    )
    world.settle()
    world.edit({"items": ["a"], "on": False})
    world.settle()
    assert world.names() == []


def test_an_item_may_be_left_out_of_a_list_that_waits_elsewhere_and_a_failed_item_keeps_its_state():
    body = "children: {x: {template: x.yaml, forEach: spec.items, waitFor: item.go}}"
    world = World.of(
        body,
        {"items": [{"name": "a", "go": True}, {"go": True}, {"name": "c", "go": False}]},
        x=plain("{{ item.name }}"),
    )
    assert states(world) == {"x": State.FAILED}
    world.edit({"items": [{"name": "c", "go": False}, {"go": True}]})
    assert states(world) == {"x": State.FAILED}
    assert [wait.child for wait in world.plan().waits] == ["x"]


@pytest.mark.parametrize("value", ["text", 7, True])
def test_foreach_rejects_other_values_than_lists_and_mappings(value: object):
    (problem,) = World.of(EACH % "", {"items": value}, x=NAMED).plan().problems
    assert "forEach" in problem.message
    assert str(problem.site).startswith("watches.yaml:4")


def test_an_error_in_a_lazy_filter_is_a_failure_of_the_item():
    world = World.of(
        "children: {x: {template: x.yaml, forEach: \"spec.items | map('required', 'no')\"}}", {"items": [None]}, x=NAMED
    )
    assert world.plan().problems[0].reason == "RenderFailed"


def test_the_number_of_objects_of_a_cr_is_limited():
    world = World.of("children: {x: {template: x.yaml, forEach: range(5001)}}", x=NAMED)
    (problem,) = world.plan().problems
    assert "more items than the 5,000" in problem.message


def test_the_limit_counts_all_children_of_the_cr(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ruleop.planning.children.MAX_OBJECTS", 3)
    body = "children: {x: {template: x.yaml, forEach: range(2)}, w: {template: w.yaml, forEach: range(2)}}"
    planned = World.of(body, x=plain("x-{{ item }}"), w=plain("w-{{ item }}")).plan()
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
    world = World.of(body, {"items": items}, x=plain("{{ item.name }}"))
    world.settle()
    assert [str(each) for each in sorted(world.objects)] == ["ConfigMap/one/a", "ConfigMap/two/d"]
    assert waits(world) == [("x", "waitFor: item.go")]
    assert world.claim(key("a", namespace="one")).orphan
    assert not world.claim(key("d", namespace="two")).orphan


def test_a_list_with_a_waiting_item_is_not_there_yet():
    body = (
        "children: {x: {template: x.yaml, forEach: spec.items, waitFor: item != 'b' or spec.go}, w: {template: w.yaml}}"
    )
    names = "{k: \"{{ x | map(attribute='metadata.name') | join(',') }}\"}"
    world = World.of(body, {"items": ["a", "b"], "go": False}, x=plain("{{ item }}"), w=plain("w", names))
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    assert ("w", "x") in waits(world)
    world.edit({"items": ["a", "b"], "go": True})
    world.settle()
    assert world.objects[key("w")]["data"] == {"k": "a,b"}


def test_an_item_that_fails_fails_its_child_and_nothing_of_it_is_pruned():
    world = World.of(EACH % "", {"items": [{"name": "a"}, {"name": "b"}]}, x=plain("{{ item.name }}"))
    world.settle()
    world.edit({"items": [{"name": "a"}, {"other": "c"}]})
    world.settle()
    assert world.names() == ["ConfigMap/a", "ConfigMap/b"]
    assert world.condition()["reason"] == "RenderFailed"


EACH_AND_DB = "children: {db: {template: db.yaml}, x: {template: x.yaml, forEach: spec.items}, old: {template: old.yaml, when: spec.old | default(false)}}"


def each_and_db(items, **spec):
    return World.of(
        EACH_AND_DB,
        {"items": items, "v": "1", **spec},
        db=plain("db", "{v: '{{ spec.v }}'}"),
        x=plain("{{ item.name }}"),
        old=plain("old"),
    )


def test_a_name_of_two_items_fails_only_its_child():
    world = each_and_db([{"name": "a"}], old=True)
    world.settle()
    world.edit({"items": [{"name": "a"}, {"name": "b"}, {"name": "b"}, {"name": "c"}], "v": "2"})
    world.settle()
    assert world.names() == ["ConfigMap/a", "ConfigMap/c", "ConfigMap/db", "ConfigMap/old"], (
        "not b, and nothing is pruned"
    )
    assert world.objects[key("db")]["data"] == {"v": "2"}
    assert states(world) == {"db": State.READY, "x": State.FAILED, "old": State.UNWANTED}
    assert world.ready()[:2] == ("False", "RenderFailed")
    assert "ConfigMap/shop/b is rendered twice, by this child" in world.condition()["message"]
    assert world.condition("Stalled")["status"] == "True"
    world.edit({"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "v": "2"})
    world.settle()
    assert world.names() == ["ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "ConfigMap/db"]
    assert world.ready()[0] == "True"


def test_an_item_with_the_name_of_another_child_stops_only_these_two():
    body = EACH_AND_DB.replace("children: {", "children: {w: {template: w.yaml}, ")
    texts = {
        "db": plain("db", "{v: '{{ spec.v }}'}"),
        "x": plain("{{ item.name }}"),
        "old": plain("old"),
        "w": plain("w", "{v: '{{ spec.v }}'}"),
    }
    world = World.of(body, {"items": [], "v": "1"}, **texts)
    world.settle()
    world.edit({"items": [{"name": "db"}], "v": "2"})
    world.settle()
    assert world.objects[key("db")]["data"] == {"v": "1"}
    assert world.objects[key("w")]["data"] == {"v": "2"}
    assert states(world)["db"] is State.FAILED


def test_an_item_that_cannot_be_rendered_fails_its_child_and_the_other_items_and_children_are_written():
    world = each_and_db([{"name": "a"}], old=True)
    world.settle()
    world.edit({"items": [{"nam": "x"}, {"name": "b"}, {"name": "No Name"}], "v": "2"})
    world.settle()
    assert world.names() == ["ConfigMap/a", "ConfigMap/b", "ConfigMap/db", "ConfigMap/old"]
    assert world.objects[key("db")]["data"] == {"v": "2"}
    assert world.ready()[:2] == ("False", "RenderFailed")
    assert "item 0 of forEach (and 1 more): " in world.condition()["message"]
    assert "spec.items[0].name is not set" in world.condition()["message"]


def test_readers_of_a_list_with_a_failed_item_wait_for_it():
    body = "children: {x: {template: x.yaml, forEach: spec.items}, w: {template: w.yaml}}"
    names = "{k: \"{{ x | map(attribute='metadata.name') | join(',') }}\"}"
    world = World.of(body, {"items": [{"name": "a"}, {}]}, x=plain("{{ item.name }}"), w=plain("w", names))
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    assert states(world) == {"x": State.FAILED, "w": State.WAITING}


def test_an_error_in_foreach_itself_fails_the_whole_cr():
    world = each_and_db([{"name": "a"}])
    world.settle()
    world.edit({"v": "2"})
    world.settle()
    assert world.objects[key("db")]["data"] == {"v": "1"}
    assert world.ready()[:2] == ("False", "RenderFailed")


def test_an_item_that_exceeds_a_limit_stops_the_cr_and_no_other_item_is_tried():
    body = "children: {db: {template: db.yaml}, x: {template: x.yaml, forEach: spec.items}}"
    much = "{v: \"{{ 'x' * item }}\"}"
    world = World.of(body, {"items": [1, 10**9, 10**9]}, db=plain("db"), x=plain("n-{{ index }}", much))
    (problem,) = world.plan().problems
    assert "characters" in problem.message
    assert "item 1" not in problem.message
    assert world.plan().actions == ()


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
    world = World.of(MANY, {"on": True}, x=DOCUMENTS, w=w)
    world.settle()
    assert world.objects[key("w")]["data"] == {"v": "1Secret2ConfigMap"}


def test_a_template_without_documents_is_an_empty_list():
    world = World.of(MANY, {"on": False}, x=DOCUMENTS, w=plain("w", "{k: '{{ x | length }}'}"))
    world.settle()
    assert world.objects[key("w")]["data"] == {"k": "0"}
    assert states(world)["x"] is State.READY


def test_an_empty_template_is_like_a_false_when():
    one = "{% if spec.on %}\n" + plain("a") + "{% endif %}\n"
    world = World.of("children: {a: {template: a.yaml}}", {"on": True}, a=one)
    world.settle()
    world.edit({"on": False})
    assert states(world) == {"a": State.UNWANTED}
    world.settle()
    assert world.names() == []


def test_reading_an_undesired_child_is_an_error_unless_default_is_used():
    body = "children: {a: {template: a.yaml, when: spec.on}%s, c: {template: c.yaml}}"
    b, c = (
        plain("b", "{k: '{{ a.metadata.name }}'}"),
        plain("c", "{k: \"{{ a.metadata.name | default('no') }}{{ a is defined }}\"}"),
    )
    world = World.of(body % "", {"on": False}, a=plain("a"), c=c)
    world.settle()
    assert world.objects[key("c")]["data"] == {"k": "nofalse"}
    world = World.of(body % ", b: {template: b.yaml}", {"on": False}, a=plain("a"), b=b, c=c)
    world.settle()
    assert "`when` of the child a is false" in world.condition()["message"]
    assert states(world)["b"] is State.FAILED


# -- what the cluster serves -------------------------------------------------------------------------------------------------------------

CERTIFICATE = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\nspec: {}\n"


def test_children_of_an_unserved_kind_wait_and_others_do_not():
    world = World.of("children: {c: {template: c.yaml}, a: {template: a.yaml}}", c=CERTIFICATE, a=plain("a"))
    world.served["Certificate"] = Served.UNSERVED
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    assert waits(world) == [("c", "the kind cert-manager.io/v1 Certificate to be served by the cluster")]
    world.served.clear()
    world.settle()
    assert "Certificate/c" in world.names()


def test_a_child_in_a_namespace_that_is_not_watched_waits():
    body = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}, b: {template: b.yaml}}"
    world = World.of(body, a=plain("a"), b=plain("b"))
    info = world.info(Kind("", "v1", "ConfigMap"))
    world.infos["ConfigMap"] = replace(info, places={"shop": Served.SYNCED})
    world.settle()
    assert world.names() == ["ConfigMap/b"]
    assert waits(world) == [("a", "the namespace far to be watched: add it to --namespaces")]
    world.infos["ConfigMap"] = replace(info, places={"shop": Served.SYNCED, "far": Served.FORBIDDEN})
    (problem,) = world.plan().problems
    assert problem.message == "cannot list configmaps in namespace far: needs get, list, watch, create, patch, delete"
    world.infos["ConfigMap"] = replace(info, places={"shop": Served.SYNCED, "far": Served.SYNCED})
    world.settle()
    assert world.names() == ["ConfigMap/a", "ConfigMap/b"]


def test_a_missing_permission_in_another_namespace_has_no_effect():
    world = World.of("reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}", a=plain("a"))
    info = world.info(Kind("", "v1", "ConfigMap"))
    world.infos["ConfigMap"] = replace(
        info, state=Served.FORBIDDEN, places={"shop": Served.FORBIDDEN, "far": Served.SYNCED}
    )
    world.settle()
    assert world.names() == ["ConfigMap/a"]


def test_an_optional_child_of_an_unserved_kind_is_not_desired():
    body = """
    children:
      c: {template: c.yaml, optional: true}
      a: {template: a.yaml}
    """
    world = World.of(
        body,
        c=CERTIFICATE,
        a=plain("a", "{k: \"{{ has_kind('cert-manager.io/v1', 'Certificate') }}{{ c is defined }}\"}"),
    )
    world.served["Certificate"] = Served.UNSERVED
    world.settle()
    assert world.objects[key("a")]["data"] == {"k": "falsefalse"}
    assert world.ready()[0] == "True"
    assert (
        next(child for child in world.plan().children if child.id == "c").message
        == "the cluster does not serve its kind"
    )
    world.served.clear()
    world.settle()
    assert world.objects[key("a")]["data"] == {"k": "truetrue"}


def test_a_forbidden_kind_fails_its_children_and_prunes_nothing():
    body = "children: {a: {template: a.yaml}, s: {template: s.yaml, when: spec.on}}"
    world = World.of(body, {"on": True}, a=plain("a"), s="apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    world.settle()
    world.served["Secret"] = Served.FORBIDDEN
    assert states(world) == {"a": State.READY, "s": State.FAILED}
    assert world.plan().actions == ()
    world.settle()
    message = (
        "s: templates/s.yaml:1: cannot list secrets in all namespaces: needs get, list, watch, create, patch, delete"
    )
    assert world.ready() == ("False", "Forbidden", message)
    assert world.condition("Stalled")["status"] == "True"


def test_observed_resources_are_not_there_yet_before_their_kind_is_listed():
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
    world = World.of(body, a=plain("a", "{k: '{{ pods | length }}'}"))
    for name, labels in {
        "p2": {"app": "web"},
        "p1": {"app": "web"},
        "p3": {"app": "x"},
        "p4": {"app": "web", "gone": ""},
    }.items():
        world.add(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": labels}}
        )
    for name, labels in {
        "n1": {"zone": "a"},
        "n2": {"zone": "c"},
        "n3": {"zone": "b", "x": "z"},
        "n4": {"zone": "b", "x": "w"},
    }.items():
        world.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    world.settle()
    assert world.objects[key("a")]["data"] == {"k": "2"}
    assert world.status["pods"] == ["p1", "p2"]
    assert world.status["nodes"] == ["n1", "n4"]
    assert "ip" not in world.status
    world.add(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "one", "namespace": "shop"},
            "spec": {"clusterIP": "10.0.0.1"},
        }
    )
    world.settle()
    assert world.status["ip"] == "10.0.0.1"
    for state, why in (
        (Served.UNSERVED, "pods (Pod is not served by the cluster)"),
        (Served.PENDING, "pods (Pod is not listed yet)"),
    ):
        world.served["Pod"] = state
        assert waits(world) == [("a", why)]
    world.served["Pod"] = Served.FORBIDDEN
    world.settle()
    assert world.ready()[:2] == ("False", "Forbidden")
    assert world.ready()[2].endswith("cannot list pods in all namespaces: needs get, list, watch")
    assert "pods" not in world.status


def test_an_observed_name_that_fails_fails_its_readers():
    body = """
    children: {a: {template: a.yaml}}
    observe: {one: {version: v1, kind: ConfigMap, name: "{{ spec.nope }}"}}
    """
    (problem,) = World.of(body, a=plain("a", "{v: '{{ one.data.x }}'}")).plan().problems
    assert "spec.nope is not set" in problem.message


def test_an_unused_observe_is_not_evaluated():
    body = """
    let: {names: "{{ pods | map(attribute='metadata.name') | join(',') }}"}
    children: {a: {template: a.yaml}}
    observe: {pods: {version: v1, kind: Pod, selector: {app: x}}}
    """
    world = World.of(body, a=plain("a", "{v: '{{ names }}'}"))
    world.served["Pod"] = Served.UNSERVED
    assert [wait.for_what for wait in world.plan().waits] == ["pods (Pod is not served by the cluster)"]
    world.served.clear()
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": ""}


def test_observed_objects_come_without_managed_fields():
    body = """
    children: {a: {template: a.yaml}}
    observe: {one: {version: v1, kind: ConfigMap, name: one, namespace: other}}
    reach: cluster
    """
    world = World.of(body, a=plain("a", "{k: '{{ one.metadata.managedFields is defined }}{{ one.data.v }}'}"))
    world.add({**config("one", {"v": "1"}), "metadata": {"name": "one", "namespace": "other", "managedFields": [{}]}})
    world.settle()
    assert world.objects[key("a")]["data"] == {"k": "false1"}


# -- readiness -----------------------------------------------------------------------------------------------------------------------------


def test_ready_when_overrides_the_built_in_rule():
    body = "children: {a: {template: a.yaml, readyWhen: this.data.state == 'up'}}"
    world = World.of(body, a=plain("a"))
    world.settle()
    assert world.ready() == ("False", "Progressing", "ConfigMap/a is not ready")
    assert world.plan().children[0].message == "ConfigMap/a is not ready: this.data.state is not available yet"
    world.change(key("a"), {"data": {"state": "down"}})
    assert world.plan().children[0].message == "ConfigMap/a is not ready: readyWhen is false"
    world.change(key("a"), {"data": {"state": "up"}})
    world.settle()
    assert world.ready()[0] == "True"


def test_a_failed_ready_when_is_reported_and_not_ready():
    world = World.of("children: {a: {template: a.yaml, readyWhen: spec.nope}}", a=plain("a"))
    world.settle()
    assert world.ready()[:2] == ("False", "RenderFailed")
    assert states(world) == {"a": State.PROGRESSING}


def test_a_child_that_failed_for_good_stalls_the_cr_and_still_lets_others_be_pruned():
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {}\n"
    world = World.of(
        "children: {j: {template: j.yaml}, a: {template: a.yaml, when: spec.on}}", {"on": True}, j=job, a=plain("a")
    )
    world.settle()
    world.change(key("j", "Job", group="batch"), {"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    world.edit({"on": False})
    world.settle(controllers=False)
    assert world.ready() == ("False", "ChildFailed", "j: Job/j has failed")
    assert world.condition("Stalled")["status"] == "True"
    assert world.names() == ["Job/j"]


# -- a Namespace that is a child ---------------------------------------------------------------------------------------------------------


def test_objects_in_a_namespace_that_is_a_child_wait_for_it():
    body = """
    reach: cluster
    children:
      inside: {template: inside.yaml, namespace: "{{ metadata.name }}-ns"}
      ns: {template: ns.yaml}
    """
    world = World.of(
        body, inside=plain("inside"), ns="apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ metadata.name }}-ns'}\n"
    )
    planned = world.step()
    assert [action.key.kind for action in planned.actions] == ["App", "Namespace"]
    assert waits(world) == [("inside", "ns to be ready")]
    assert states(world)["inside"] is State.WAITING
    world.settle()
    assert [str(each) for each in sorted(world.objects)] == ["ConfigMap/web-ns/inside", "Namespace/web-ns"]
    assert world.ready()[0] == "True"


def test_the_order_in_the_file_does_not_matter_without_dependencies():
    texts = {"a": plain("a"), "b": plain("b"), "c": plain("c")}
    ends = []
    for order in ("abc", "cab", "bca"):
        world = World.of("children:\n" + "".join(f"  {each}: {{template: {each}.yaml}}\n" for each in order), **texts)
        world.settle()
        ends.append(world.masked())
    assert ends[0] == ends[1] == ends[2]


def test_a_rule_of_another_version_of_the_kind_and_a_selector_choose_the_first_match():
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


def test_an_existing_object_knows_whether_it_is_being_deleted():
    live = config("a", deletionTimestamp="2026-01-01T00:00:00Z")
    assert Existing(key("a"), live, None, "a").terminating  # type: ignore[arg-type]
