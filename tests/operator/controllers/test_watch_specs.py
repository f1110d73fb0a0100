"""The watches follow the served kinds, also for kinds that only the inventory has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.language.rules.checking import build_project
from ruleop.operator.cache.cache import WatchedShare
from ruleop.operator.cache.informers import WatchSpec, child_need, observe_need, uses_has_kind
from ruleop.operator.controllers.controller_set import Controller, Controllers, ControllerSet
from ruleop.operator.controllers.inventory import InventoryEntry
from ruleop.operator.passes.status import StatusSchemas
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.operator.wire.watch.store import StoreState

RULES = "- {group: example.com, version: v1, kind: App, children: {c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}}"
APP, OLD = GroupKind("example.com", "App"), GroupKind("old.example.com", "Old")


class Feeds:
    def __init__(self) -> None:
        self.informers: dict[WatchSpec, object] = {}

    def watch(self, needs: object) -> None:
        self.informers = {need: SimpleNamespace(need=need, state=StoreState.SYNCED) for need in needs}


def test_a_remembered_kind_is_watched_as_soon_as_it_is_served():
    project = build_project({"watches.yaml": RULES}, root="rules", environ={})
    served: dict[GroupKind, object] = {}
    controllers = Controllers(SimpleNamespace(invalidate=lambda: None, share=WatchedShare()))
    controllers.by_kind[APP] = Controller(project.rules[0].kind, project.rules, SimpleNamespace(), SimpleNamespace())
    controller_set = ControllerSet(
        controllers,
        informers=Feeds(),
        discovery=SimpleNamespace(get=served.get),
        schemas=SimpleNamespace(),
        inventory=SimpleNamespace(of=lambda _watched: InventoryEntry(frozenset({OLD}), finalizer=False)),
        status_schemas=StatusSchemas(),
        metrics=Metrics(),
        create_controller=SimpleNamespace(),
        max_concurrent=None,
        pause=30.0,
    )
    controller_set.update_watches()
    assert OLD not in controller_set.cache.children_of
    served[OLD] = SimpleNamespace(info=SimpleNamespace(kind=Kind("old.example.com", "v2", "Old")))
    controller_set.update_watches()
    assert controller_set.cache.children_of[OLD][0].need == child_need(Kind("old.example.com", "v2", "Old"))
    assert controller_set.cache.children_of[OLD][0].need in controllers.by_kind[APP].needs


CHILD = "children: {c: {template: c.yaml}}"


@pytest.mark.parametrize(
    ("keys", "text", "asks"),
    [
        ([CHILD], "", False),
        ([CHILD], "{{ 'has_kind' }}", False),
        ([CHILD], "{{ ASK }}", True),
        ([CHILD], "{% include 'part' %}", True),
        (["children: {c: {template: c.yaml, when: 'ASK'}}"], "", True),
        (["children: {c: {template: c.yaml, apply: {ignore: [{path: data.a, when: 'ASK'}]}}}"], "", True),
        (["finalize: {c: {template: c.yaml, readyWhen: 'ASK'}}"], "", True),
        ([CHILD, "let: {it: [{a: '{{ ASK }}'}]}"], "", True),
        ([CHILD, "status: {it: '{{ ASK }}'}"], "", True),
        ([CHILD, "conditions: [{type: It, status: 'ASK'}]"], "", True),
        ([CHILD, "observe: {it: {version: v1, kind: Pod, selector: {a: '{{ ASK }}'}}}"], "", True),
    ],
)
def test_every_use_of_has_kind_in_a_rule_is_found(keys, text, asks):
    files = {
        "watches.yaml": "\n  ".join(["- group: example.com", "version: v1", "kind: App", *keys]),
        "templates/c.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  a: {text}\n",
        "templates/part": "{{ ASK | string }}",
    }
    asking = {name: text.replace("ASK", "has_kind(metadata.name, spec.kind)") for name, text in files.items()}
    assert uses_has_kind(build_project(asking, root="rules", environ={}).rules) is asks


def test_objects_that_a_selector_of_a_patch_does_not_match_are_watched_too():
    (rule,) = build_project(
        {
            "watches.yaml": """
- group: example.com
  version: v1
  kind: App
  observe: {seen: {version: v1, kind: ConfigMap, selector: {tier: web}}}
  children: {c: {patch: {version: v1, kind: ConfigMap, selector: {tier: web}, fields: {data: {a: b}}}}}
"""
        },
        root="rules",
        environ={},
    ).rules
    seen, patched = rule.read_objects
    assert (observe_need(seen).labels, observe_need(patched).labels) == ("tier=web", "")


def observed(keys: str) -> WatchSpec:
    watch = (
        f"- {{group: example.com, version: v1, kind: App, observe: {{seen: {{version: v1, kind: ConfigMap, {keys}}}}}}}"
    )
    (rule,) = build_project({"watches.yaml": watch}, root="rules", environ={}).rules
    return observe_need(rule.observe["seen"])


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("{tier: web, team: '{{ spec.team }}'}", "tier=web,team"),
        ("'{{ spec.selector }}'", ""),
        (
            "{matchLabels: '{{ spec.labels }}', matchExpressions: [{key: tier, operator: In, values: [a, b]}]}",
            "tier in (a,b)",
        ),
        ("{matchExpressions: [{key: team, operator: In, values: '{{ spec.teams }}'}]}", "team"),
        ("{matchExpressions: [{key: team, operator: In, values: ['{{ spec.team }}', x]}]}", "team"),
        ("{matchExpressions: [{key: team, operator: NotIn, values: '{{ spec.teams }}'}]}", ""),
    ],
)
def test_the_constant_part_of_a_selector_narrows_the_watch(selector, labels):
    assert observed(f"selector: {selector}").labels == labels


def test_all_objects_of_a_kind_are_watched_without_a_selector():
    need = observed("namespace: '{{ metadata.namespace }}'")
    assert (need.labels, need.fields, need.namespace, need.metadata_only) == ("", "", "", True)
