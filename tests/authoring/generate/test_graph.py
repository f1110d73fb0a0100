"""The graph of a rule is what planning does, and its picture can be read."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.generate.graph import (
    GAP,
    RESOURCE,
    STATUS,
    Box,
    GraphNode,
    Layout,
    Point,
    RuleGraph,
    dot,
    laid_out,
    mermaid,
    rule_graph,
    svg,
)
from ruleop.cli.program import program
from tests.authoring.generate.projects import project
from tests.docs.messages import ROOT

WATCHES = """\
- group: example.com
  version: v1
  kind: Team
  reach: cluster
  schema: {scope: Cluster, spec: {members: "[]string", audit: boolean}}
  let: {zone: "{{ settings.data.zone }}"}
  observe:
    settings: {version: v1, kind: ConfigMap, name: settings, namespace: platform}
  children:
    account:
      forEach: spec.members
      as: member
      namespace: "{{ metadata.name }}"
      object: {apiVersion: v1, kind: ServiceAccount, metadata: {name: "{{ member }}"}}
    home:
      object: {apiVersion: v1, kind: Namespace, metadata: {name: "{{ metadata.name }}"}}
    log:
      when: zone != '<"a&b">' and spec.audit
      namespace: platform
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "log-{{ metadata.name }}"}, data: {home: "{{ home.metadata.name }}"}}
    report:
      dependsOn: [log]
      namespace: platform
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "r-{{ metadata.name }}"}, data: {log: "{{ log.metadata.name }}"}}
  finalize:
    purge:
      namespace: platform
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "purge-{{ metadata.name }}"}}
    leave:
      forEachOf: account
      namespace: platform
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "leave-{{ member }}"}}
  status:
    fixed: 1
    zone: "{{ zone }}"
    log: {name: "{{ log.metadata.name }}"}
  conditions:
    - {type: Logged, status: ready.log}
"""


def graph(watches: str = WATCHES) -> RuleGraph:
    loaded = project(watches=watches)
    return rule_graph(loaded.watches[0], loaded)


def test_edges_lead_from_what_comes_first_to_what_depends_on_it() -> None:
    assert {(edge.source, edge.target, edge.why) for edge in graph().edges} == {
        (RESOURCE, "home", "creates"),
        (RESOURCE, "purge", "creates"),
        ("account", "leave", "reads"),
        ("home", "account", "waits"),  # objects in a Namespace that is a child
        ("home", "log", "reads"),
        ("settings", "log", "observes"),  # through `let`, in `when`
        ("log", "report", "waits"),  # dependsOn is stronger than reading
        ("settings", STATUS, "reports"),
        ("log", STATUS, "reports"),
    }


def test_nodes_have_the_conditions_and_loops_of_children() -> None:
    nodes = {node.name: node for node in graph().nodes}
    assert nodes["account"].lines == ("account", "ServiceAccount", "for each member in spec.members")
    assert (nodes["account"].repeated, nodes["account"].conditional) == (True, False)
    assert nodes["log"].lines[2] == "when zone != '<\"a&b\">' and spec.audit"
    assert nodes["log"].conditional
    assert nodes["purge"].lines[2] == "on deletion"
    assert nodes["leave"].lines[2] == "at the end of each of account"
    assert nodes["settings"].lines == ("settings", "ConfigMap", "one object")
    assert nodes[STATUS].lines == ("status", "fixed", "zone ← settings", "log ← log", "Logged ← log")


def test_long_texts_and_long_statuses_are_cut_in_the_picture() -> None:
    fields = "".join(f"    field{number}: {number}\n" for number in range(20))
    node = graph(WATCHES.replace("    fixed: 1\n", fields)).nodes[-1]
    assert (len(node.lines), node.lines[-1]) == (14, "and 11 more")
    assert GraphNode("a", "child", ("a" * 100,)).shown == ("a" * 35 + "…",)


def test_mermaid_has_a_line_for_each_node_and_edge_and_no_special_character_in_a_text() -> None:
    found = graph()
    first, *lines, classes, of = mermaid([found, found]).splitlines()
    assert first == "flowchart LR"
    nodes = [line for line in lines if '"' in line]
    assert len(nodes) == 2 * len(found.nodes)
    assert all(re.fullmatch(r'  r\dn\d+[\[(/]+"(?:[\w ./:,()=+←…]|<br/>|#\d+;)+"[\])/]+', line) for line in nodes)
    assert "#60;#34;a#38;b#34;#62;" in mermaid([found])
    edges = [line for line in lines if '"' not in line]
    assert len(edges) == 2 * len(found.edges)
    assert all(re.fullmatch(r"  r(\d)n\d+ (-->|==>|-\.->) r\1n\d+", line) for line in edges)
    assert classes.startswith("  classDef conditional ")
    assert re.fullmatch(r"  class r0n\d+,r1n\d+ conditional", of)


def test_graphviz_gets_quoted_labels() -> None:
    text = dot([graph()])
    assert text.startswith("digraph rules {\n")
    assert '[label="log\\nConfigMap\\nwhen zone != \'<\\"a&b\\">\' and spec.aud…", fillcolor=white, style=' in text
    assert text.count(" -> ") == len(graph().edges)


def test_the_picture_is_xml_with_the_texts_of_the_graph() -> None:
    root = ET.fromstring(svg([graph()]))  # noqa: S314 - of this project
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[: len(texts) - 4] == [line for node in graph().nodes for line in node.shown]
    assert texts[-4:] == [
        "written after what it reads",
        "created when that is ready",
        "reads an object of others",
        "is part of the status",
    ]
    style = root.findtext("{http://www.w3.org/2000/svg}style") or ""
    assert "@media (prefers-color-scheme: dark)" in style


def test_text_is_as_wide_as_was_measured_and_fits_into_its_box() -> None:
    node = GraphNode("a", "child", ("a", "日本語 and a \x1b[31m control character", "i" * 36))
    root = ET.fromstring(svg([RuleGraph((node,), ())]))  # noqa: S314 - of this project
    box = root.findall(".//{*}rect[@rx='6']")[0]
    texts = root.findall(".//{*}text")
    assert [text.text for text in texts] == list(node.shown)
    for text in texts:
        end = float(text.attrib["x"]) + float(text.attrib["textLength"])
        assert end < float(box.attrib["x"]) + float(box.attrib["width"])
        assert float(text.attrib["y"]) < float(box.attrib["y"]) + float(box.attrib["height"])


# -- the layout of any graph -------------------------------------------------------------------------------------------

sizes = st.lists(st.tuples(st.integers(20, 300), st.integers(20, 200)), min_size=1, max_size=10)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Point], list[tuple[str, str]], str]:
    """Boxes, edges without a cycle, and perhaps a box that nothing follows."""
    boxes = {f"n{number}": size for number, size in enumerate(draw(sizes))}
    pairs = list(itertools.combinations(boxes, 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    order = draw(st.permutations(list(boxes)))
    last = draw(st.sampled_from(["", list(boxes)[-1]]))
    return {name: boxes[name] for name in order}, edges, last


def columns_of(layout: Layout) -> dict[int, tuple[int, int]]:
    """Where each column begins and ends."""
    return {box.column: (box.x, box.x + box.width) for box in layout.boxes.values()}


@given(graphs())
def test_boxes_keep_their_distance_and_their_sizes(drawn: tuple[dict[str, Point], list[tuple[str, str]], str]) -> None:
    boxes, edges, last = drawn
    layout = laid_out(boxes, edges, last)
    for name, (width, height) in boxes.items():
        box = layout.boxes[name]
        assert (box.width >= width, box.height) == (True, height)
        assert 0 <= box.x <= layout.width - box.width
        assert -1 <= box.y <= layout.height - box.height + 1
    for one, other in itertools.combinations(layout.boxes.values(), 2):
        above, below = sorted((one, other), key=lambda box: box.y)
        assert one.column != other.column or above.y + above.height + GAP - 2 <= below.y
        assert one.column == other.column or one.x + one.width < other.x or other.x + other.width < one.x


@given(graphs())
def test_each_edge_leads_to_the_right_and_crosses_no_box(
    drawn: tuple[dict[str, Point], list[tuple[str, str]], str],
) -> None:
    boxes, edges, last = drawn
    layout = laid_out(boxes, edges, last)
    columns = columns_of(layout)
    assert layout.routes.keys() == set(edges)
    for (source, target), points in layout.routes.items():
        first, end = layout.boxes[source], layout.boxes[target]
        assert first.column < end.column
        assert points[0][0] == first.x + first.width
        assert points[-1][0] == end.x
        assert [x for x, _ in points] == sorted(x for x, _ in points)
        # A curve is in the gap between two columns; what is left is level, and between the boxes of a column.
        between = [
            edge for number in range(first.column, end.column) for edge in (columns[number][1], columns[number + 1][0])
        ]
        assert [x for x, _ in points] == between
        for (x1, y1), (x2, y2) in zip(points[1:-1:2], points[2:-1:2], strict=True):
            assert y1 == y2
            assert not any(box.x < x2 and x1 < box.x + box.width and _touches(box, y1) for box in layout.boxes.values())


def _touches(box: Box, y: int) -> bool:
    return box.y - 1 <= y <= box.y + box.height + 1


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_the_edges_does_not_matter(drawn, random) -> None:
    boxes, edges, last = drawn
    shuffled = random.sample(edges, len(edges))
    assert laid_out(boxes, shuffled, last) == laid_out(boxes, edges, last)


@given(graphs())
def test_a_box_without_followers_can_be_right_of_all_others(drawn) -> None:
    boxes, edges, last = drawn
    if last:
        column = laid_out(boxes, edges, last).boxes[last].column
        assert all(box.column < column for name, box in laid_out(boxes, edges, last).boxes.items() if name != last)


def test_a_box_that_follows_none_is_beside_the_first_that_follows_it() -> None:
    layout = laid_out(dict.fromkeys("abcd", (50, 30)), [("a", "b"), ("b", "c"), ("d", "c")])
    assert {name: box.column for name, box in layout.boxes.items()} == {"a": 0, "b": 1, "c": 2, "d": 1}


def test_two_edges_that_need_not_cross_do_not() -> None:
    layout = laid_out(dict.fromkeys("abcd", (50, 30)), [("a", "d"), ("b", "c")])
    assert (layout.boxes["a"].y < layout.boxes["b"].y) == (layout.boxes["d"].y < layout.boxes["c"].y)


def test_the_same_graph_gives_the_same_bytes() -> None:
    one, same = graph(), graph()
    turned = RuleGraph(same.nodes, tuple(reversed(same.edges)))
    assert svg([one]) == svg([same])
    assert sorted(svg([turned]).splitlines()) == sorted(svg([one]).splitlines())


def test_a_rule_may_have_nothing_but_its_kind() -> None:
    assert svg([RuleGraph((GraphNode(RESOURCE, "resource", ("App",)),), ())]).count("<rect") == 2


# -- the command -------------------------------------------------------------------------------------------------------


def generated(*arguments: str, status: int = 0) -> str:
    ran = CliRunner().invoke(program, ["generate", "graph", "-C", str(ROOT), *arguments])
    assert ran.exit_code == status, ran.output
    return ran.output


def test_the_rules_of_one_kind_can_be_drawn() -> None:
    assert generated().count("([") == 2
    assert generated("--kind", "App").count("([") == 1
    assert 'no rule is of the kind "Memcache" (did you mean "Memcached"?)' in generated("--kind", "Memcache", status=2)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["mermaid", "dot", "svg"])
def test_a_file_that_was_generated_is_replaced_and_no_other(tmp_path: Path, output: str) -> None:
    write = ("-o", output, "--out", str(tmp_path))
    assert "written" in generated(*write)
    assert "not current" not in generated(*write, "--check")
    assert "not current" in generated(*write, "--kind", "App", "--check", status=1)
    assert "written" in generated(*write, "--kind", "App")
    (file,) = tmp_path.iterdir()
    file.write_text("by hand")
    assert "was not made by" in generated(*write, status=2)
