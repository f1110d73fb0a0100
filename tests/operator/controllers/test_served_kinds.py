"""The state of a kind for a rule is that of the watches that the rule itself needs. Watches of other rules, or of
another version of the kind, do not count."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules.checking import load_project
from ruleop.operator.wire.watch.store import StoreState
from tests.definitions import definition
from tests.invariants.api_server import ApiServer
from tests.invariants.operator_harness import settled_operator, started_operator
from tests.projects.cluster import Cluster

READY = ("True", "Ready", "")
APP = """
- group: example.com
  version: v1
  kind: App
  children:
    keep:
      optional: true
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ metadata.name }}-keep"}, data: {v: "{{ spec.v }}"}}
    secret:
      object: {apiVersion: v1, kind: Secret, metadata: {name: "{{ metadata.name }}-secret"}, stringData: {v: "{{ spec.v }}"}}
"""
OTHER = """
- group: example.com
  version: v1
  kind: Other
  observe:
    configs: {version: v1, kind: ConfigMap, selector: {a: b}}
    secrets: {version: v1, kind: Secret, selector: {a: b}}
"""
BUDGET = """
- group: example.com
  version: v1
  kind: App
  children:
    new:
      optional: true
      object: {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: new}, spec: {minAvailable: 1}}
    old:
      optional: true
      when: not has_kind('policy/v1', 'PodDisruptionBudget')
      object: {apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: old}, spec: {minAvailable: 1}}
"""
SCALED = """
- group: example.com
  version: v1
  kind: KIND
  children:
    scaler:
      object:
        apiVersion: autoscaling/VERSION
        kind: HorizontalPodAutoscaler
        metadata: {name: "{{ metadata.name }}"}
        spec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: x, apiVersion: apps/v1}}
"""


@pytest.fixture
def server(tmp_path):
    """Serves the rules that it is given, with a CR."""
    (tmp_path / "crds").mkdir()
    for kind in ("App", "Other"):
        (tmp_path / f"crds/{kind}.yaml").write_text(definition(kind))

    def begin(rules, unserved=()):
        (tmp_path / "watches.yaml").write_text(rules)
        made = ApiServer(Cluster(tmp_path, home="default", unserved=unserved))
        made.cluster.add(
            {
                "apiVersion": "example.com/v1",
                "kind": "App",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"v": "1"},
            }
        )
        return made

    return begin


def others(harness):
    """The watches that only the other rule needs."""
    return [watcher for watcher in harness.watchers if watcher.store.source.labels == "a=b"]


def ready(server):
    return server.cluster.conditions("App/web")["Ready"]


async def test_a_kind_that_another_rule_has_not_listed_yet_is_created_after_a_restart(server):
    made = server(APP + OTHER)
    async with settled_operator(made):
        assert ready(made) == READY
    made.asked.clear()
    async with started_operator(made) as harness:
        harness.list_all(but=others(harness))
        await harness.until_quiet()
        assert made.writes() == []
        assert ready(made) == READY


@pytest.mark.parametrize("refused", [403, 404])
async def test_a_rule_that_is_added_while_the_operator_runs_changes_nothing_for_others(server, tmp_path, refused):
    """Neither while its watches list, nor if a permission is missing."""
    made = server(APP)
    async with settled_operator(made) as harness:
        (tmp_path / "watches.yaml").write_text(APP + OTHER)
        harness.manager.work.controller_set.reloaded(load_project(tmp_path, environ={}))
        assert [watcher.store.state for watcher in others(harness)] == [StoreState.PENDING] * 2
        for v, then in (("2", 0), ("3", refused)):
            for watcher in others(harness) if then else ():
                watcher.refused(then)
            made.asked.clear()
            made.cluster.edit("App/web", {"spec": {"v": v}})
            await harness.until_quiet()
            assert [str(each) for each in made.asked if each.writes and "status" not in each.resource] == [
                "patch configmaps web-keep",
                "patch secrets web-secret",
            ]
            assert ready(made) == READY


async def test_the_child_in_the_served_one_of_two_versions_is_created(server):
    made = server(BUDGET)
    async with settled_operator(made):
        assert "PodDisruptionBudget/new" in made.cluster
        assert "PodDisruptionBudget/old" not in made.cluster
        assert ready(made)[1] in {"Ready", "Progressing"}


async def test_a_version_that_is_not_served_makes_only_its_rule_wait(server):
    made = server(
        SCALED.replace("KIND", "App").replace("VERSION", "v2")
        + SCALED.replace("KIND", "Other").replace("VERSION", "v2beta2")
    )
    made.cluster.add(
        {
            "apiVersion": "example.com/v1",
            "kind": "Other",
            "metadata": {"name": "o", "namespace": "default"},
            "spec": {},
        }
    )
    async with settled_operator(made):
        assert ready(made) == READY
        waits = "scaler waits for the kind autoscaling/v2beta2 HorizontalPodAutoscaler to be served by the cluster"
        assert made.cluster.conditions("Other/o")["Ready"] == ("False", "Waiting", waits)


async def test_a_store_that_lost_its_permission_is_not_read_for_another_rule(server):
    """Its store keeps the objects that it had; a rule with permission sees the current ones."""
    mine = (
        APP
        + "  observe: {mine: {version: v1, kind: ConfigMap, selector: {a: b, c: d}}}\n  status: {seen: '{{ mine | length }}'}\n"
    )
    made = server(mine + OTHER)
    labels = {"a": "b", "c": "d"}
    made.cluster.add(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "default", "labels": labels},
        }
    )
    async with settled_operator(made) as harness:
        assert made.cluster["App/web"]["status"]["seen"] == 1
        for watcher in others(harness):
            watcher.refused(403)
        made.cluster.delete("ConfigMap/x")
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == 0


# -- has_kind ----------------------------------------------------------------------------------------------------------

UNNAMED = Kind("example.com", "v1", "Other")  # by any child or observe
ASKS = """
- group: example.com
  version: v1
  kind: App
  let: {there: "{{ has_kind('example.com/v1', 'Other') }}"}
  children:
    config: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {there: "{{ there | string }}"}}}
"""


async def test_a_rule_that_calls_has_kind_is_reconciled_when_the_served_kinds_change(server):
    made = server(ASKS, unserved=[UNNAMED])
    async with settled_operator(made) as harness:
        assert made.cluster["ConfigMap/c"]["data"] == {"there": "false"}
        for unserved, there in (([], "true"), ([UNNAMED], "false")):
            made.cluster.unserved = unserved
            await harness.manager.work.discovery_sync.refresh()
            await harness.until_quiet()
            assert made.cluster["ConfigMap/c"]["data"] == {"there": there}


async def test_other_rules_are_not_reconciled_when_the_served_kinds_change(server):
    made = server(APP, unserved=[UNNAMED])
    async with settled_operator(made) as harness:
        made.cluster.unserved = []
        await harness.manager.work.discovery_sync.refresh()
        (controller,) = harness.controllers
        assert not controller.workers.queue.statistics(now=0.0)["ready"]
