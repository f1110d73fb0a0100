"""The tree of a custom resource: its children, and the objects of others that have its fields."""

from __future__ import annotations

from ruleop.authoring.report.tree import tree_lines, view_row
from ruleop.authoring.report.views import view_of_objects


def test_a_long_title_leaves_no_gap_in_the_columns_below():
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    long = {"kind": "Memcached", "metadata": {"name": "memcached-of-the-shop", "namespace": "shop"}, **ready}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "shop"}}
    lines = tree_lines([view_row(view_of_objects(long, [child])), view_row(view_of_objects({**long, "kind": "A"}, []))])
    assert ["".join(span.text for span in line) for line in lines] == [
        "Memcached shop/memcached-of-the-shop  ready",
        "└─   ready  ConfigMap/b",
        "A shop/memcached-of-the-shop  ready",
    ]


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
