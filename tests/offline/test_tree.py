"""The tree of a custom resource: its children, and the objects of others that have its fields."""

from __future__ import annotations

from ruleop.authoring.report.tree import tree_lines, view_row
from ruleop.authoring.report.views import view_of_objects


def test_a_tree_has_children_and_patched_objects_with_the_namespaces_of_others():
    team = {"kind": "Team", "metadata": {"name": "red", "namespace": "shop"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "far"}}
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
        for name in ("b", "a")
    ]
    node = view_of_objects(team, [secret, maps[0]], [maps[1], {"kind": "Namespace", "metadata": {"name": "shop"}}])
    assert ["".join(span.text for span in line) for line in tree_lines([view_row(node)])] == [
        "Team shop/red  without a condition Ready",
        "├─   has its fields  ConfigMap/a",
        "├─   ready           ConfigMap/b",
        "├─   has its fields  Namespace/shop",
        "└─   ready           Secret/far/key",
    ]
