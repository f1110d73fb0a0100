"""What is watched follows what is served, also for kinds that only the inventory remembers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from ruleop.engine.feeds import Need
from ruleop.engine.inventory import Entry
from ruleop.engine.manager import Controller, Manager
from ruleop.engine.options import Options
from ruleop.kinds import GroupKind, Kind
from ruleop.planning.marks import PART_OF
from ruleop.rules import build_project

RULES = "- {group: example.com, version: v1, kind: App, children: {c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}}"
APP, OLD = GroupKind("example.com", "App"), GroupKind("old.example.com", "Old")


class Feeds:
    def __init__(self) -> None:
        self.feeds: dict[Need, object] = {}

    def want(self, needs: object) -> None:
        self.feeds = {need: SimpleNamespace(need=need) for need in needs}


def test_a_remembered_kind_is_watched_as_soon_as_it_is_served():
    project = build_project({"watches.yaml": RULES}, root="rules", environ={})
    manager = Manager(project, Path("rules"), Options())
    served: dict[GroupKind, object] = {}
    manager.discovery = SimpleNamespace(get=served.get)
    manager.inventory = SimpleNamespace(of=lambda _watched: Entry(frozenset({OLD}), finalizer=False))
    manager.feeds = Feeds()
    manager.world = SimpleNamespace(forget=lambda: None)
    manager.controllers[APP] = Controller(project.rules[0].kind, project.rules, SimpleNamespace(), SimpleNamespace())
    manager._watch()
    assert OLD not in manager.world.children_of
    served[OLD] = SimpleNamespace(info=SimpleNamespace(kind=Kind("old.example.com", "v2", "Old")))
    manager._watch()
    assert manager.world.children_of[OLD].need == Need(Kind("old.example.com", "v2", "Old"), labels=PART_OF)
    assert manager.world.children_of[OLD].need in manager.controllers[APP].needs
