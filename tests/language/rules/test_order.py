"""The order of children, and cycles."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.language.rules.order import topological
from tests.exploration import examples
from tests.language.rules.projects import Row, rows, rule, said, table, watch

ROWS = rows("""
== cycle of one
children:
  a: {template: a.yaml, waitFor: a.status.x}
  b: {template: a.yaml, waitFor: ready.b}
  c: {template: a.yaml, dependsOn: [c]}
  d: {template: a.yaml, waitFor: live.d.x}
>> watches.yaml:5:36: "a" reads itself: read the existing object with `live.a`
>> watches.yaml:6:36: "b" reads itself: read the existing object with `live.b`
>> watches.yaml:7:39: "c" depends on itself: remove it from its `dependsOn`

== cycle of three
children:
  z: {template: a.yaml, dependsOn: [a]}
  a: {template: a.yaml, waitFor: b.status.x}
  b: {template: a.yaml, dependsOn: [c]}
  c: {template: a.yaml, waitFor: "ready.a and b"}
finalize:
  f: {template: a.yaml, dependsOn: [g]}
  g: {template: a.yaml, dependsOn: [f]}
>> watches.yaml:6:36: a cycle: "a" reads "b" (watches.yaml:6:36), "b" depends on "c" (watches.yaml:7:39), "c" reads "a" (watches.yaml:8:37); break it by reading the existing object with `live.<id>`, which does not wait
>> watches.yaml:10:39: a cycle: "f" depends on "g" (watches.yaml:10:39), "g" depends on "f" (watches.yaml:11:39); break it by reading the existing object with `live.<id>`, which does not wait

== cycle of deletions
deletionOrder: reverse
children:
  a: {template: a.yaml, deleteAfter: [a, x]}
  b: {template: a.yaml, dependsOn: [a], deleteAfter: [a]}
finalize:
  f: {template: a.yaml, deleteAfter: [a]}
>> watches.yaml:6:41: "a" cannot be deleted after itself
>> watches.yaml:6:44: no child has the id "x" (the ids are "a" and "b")
>> watches.yaml:7:57: "b" cannot be deleted after "a", which is deleted after "b"
>> watches.yaml:9:41: "f" is removed when its work is done: `deleteAfter` is for `children`

== cycle in templates
children:
  a: {template: a.yaml}
  b: {template: b.yaml}
-- templates/a.yaml
apiVersion: v1
kind: Service
metadata: {name: a}
x: {{ b.x }}
-- templates/b.yaml
apiVersion: v1
kind: Service
metadata: {name: a}
w: 1
x: {% for i in a.list %}{{ i.x }}{% endfor %}
>> templates/a.yaml:4:7: a cycle: "a" reads "b" (templates/a.yaml:4:7), "b" reads "a" (templates/b.yaml:5:16); break it by reading the existing object with `live.<id>`, which does not wait
""")


@table(*ROWS)
def test_errors_in_dependencies_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


def orders(body: str) -> tuple[str, ...]:
    return rule(body).order.children


def test_children_are_ordered_by_references_and_dependencies_and_then_by_the_file() -> None:
    assert orders("children:\n  c: {template: a.yaml}\n  b: {template: a.yaml}\n  a: {template: a.yaml}") == (
        "c",
        "b",
        "a",
    )
    assert orders(
        "children:\n  c: {template: a.yaml, dependsOn: [a]}\n  b: {template: a.yaml}\n  a: {template: a.yaml}"
    ) == ("b", "a", "c")
    assert orders(
        "children:\n  c: {template: a.yaml, waitFor: ready.b}\n  b: {template: a.yaml, waitFor: a.x}\n  a: {template: a.yaml}"
    ) == (
        "a",
        "b",
        "c",
    )


def test_a_child_is_deleted_after_those_that_depend_on_it_and_those_that_it_names() -> None:
    def after(head: str) -> dict[str, set[str]]:
        found = rule(f"""
        {head}
        children:
          a: {{template: a.yaml}}
          b: {{template: a.yaml, waitFor: a.x}}
          c: {{template: a.yaml, dependsOn: [b]}}
          d: {{template: a.yaml, waitFor: live.a.x, deleteAfter: [e]}}
          e: {{template: a.yaml}}
        """)
        return {child.id: set(child.deletion.after) for child in found.children.values() if child.deletion.in_order}

    assert after("") == {"d": {"e"}}
    assert after("deletionOrder: reverse") == {"a": {"b", "c"}, "b": {"c"}, "d": {"e"}}


def test_reading_through_live_does_not_order_children() -> None:
    found = rule(
        "children:\n  a: {template: a.yaml, waitFor: live.b.x and live.a.x}\n  b: {template: a.yaml, waitFor: live.a.x}"
    )
    assert found.order.children == ("a", "b")
    assert found.children["a"].inputs.mentions == frozenset()


def test_mentions_of_a_child_are_its_reads_except_through_live() -> None:
    found = rule(
        """
        observe:
          pods: {version: v1, kind: Pod, selector: {a: b}}
          jobs: {version: v1, kind: Pod, selector: {a: c}}
        let: {number: "{{ pods | length }}", twice: "{{ number * 2 }}"}
        children:
          a: {template: a.yaml}
          b: {template: a.yaml, when: jobs | length > 1, waitFor: ready.a}
          c: {object: {apiVersion: v1, kind: Service, metadata: {name: "{{ twice }}", labels: {x: "{{ b.metadata.name }}"}}}, dependsOn: [a]}
        finalize:
          d: {template: a.yaml, waitFor: live.a.x and b.x, when: pods}
          e: {template: a.yaml, waitFor: d.x}
          f: {template: a.yaml, forEach: live.a.data}
        """
    )
    mentions = {name: set(child.inputs.mentions) for name, child in (found.children | found.finalize).items()}
    assert mentions == {"a": set(), "b": {"a"}, "c": {"b"}, "d": set(), "e": {"d"}, "f": set()}


def test_the_reads_of_a_condition_include_those_through_lets_live_and_ready() -> None:
    found = rule(
        """
        observe:
          pods: {version: v1, kind: Pod, selector: {a: b}}
          jobs: {version: v1, kind: Pod, selector: {a: c}}
        let: {number: "{{ pods | length }}", twice: "{{ number * 2 }}"}
        children: {a: {template: a.yaml}, b: {template: a.yaml}}
        conditions:
          - {type: None, status: spec.x}
          - {type: Let, status: twice > 1, message: "{{ jobs | length }}"}
          - {type: Ready2, status: ready.a and live.b.x}
          - {type: Both, status: jobs | length > 1 or a is defined}
        """
    )
    assert [set(each.reads) for each in found.status.conditions] == [set(), {"pods"}, {"a", "b"}, {"jobs", "a"}]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    names = draw(st.permutations([f"n{number}" for number in range(draw(st.integers(1, 7)))]))
    return {name: draw(st.lists(st.sampled_from(names), max_size=3)) for name in names}


@given(graphs())
def test_an_order_respects_every_link_and_omits_exactly_keys_on_or_after_a_cycle(graph: dict[str, list[str]]) -> None:
    order = topological(graph)
    place = {name: number for number, name in enumerate(order)}
    assert len(place) == len(order)
    for name in order:
        assert all(place[target] < place[name] for target in graph[name])
    for name in set(graph) - set(order):
        assert set(graph[name]) - set(order), "left out, though all that it waits for is there"


@given(graphs())
def test_ties_are_in_the_order_of_the_file(graph: dict[str, list[str]]) -> None:
    order, file = topological(graph), list(graph)
    for number, name in enumerate(order):
        free = [other for other in order[number:] if set(graph[other]) <= set(order[:number])]
        assert name == min(free, key=file.index)


@settings(max_examples=examples(40), deadline=None)
@given(graphs())
def test_cycles_are_reported_if_and_only_if_they_exist(graph: dict[str, list[str]]) -> None:
    body = "children:\n" + "".join(
        f"  {name}: {{template: a.yaml, dependsOn: {targets}}}\n" for name, targets in graph.items()
    )
    lines = said(watch(body.replace("'", "")))
    assert bool(lines) == (len(topological(graph)) < len(graph))
    on_a_cycle = {name for name in graph if name in reachable(graph, graph[name])}
    named = set()
    for line in lines:
        for source, target in re.findall(r'"(n\d)" depends on "(n\d)"', line):
            assert target in graph[source]
            named.add(source)
        named |= set(re.findall(r'"(n\d)" depends on itself', line))
    assert named <= on_a_cycle
    assert bool(named) == bool(on_a_cycle)


def reachable(graph: dict[str, list[str]], start: list[str]) -> set[str]:
    seen: set[str] = set()
    pending = list(start)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += graph[name]
    return seen
