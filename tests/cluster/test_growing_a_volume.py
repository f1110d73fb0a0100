"""Both recipes of docs/operations.md for growing the volumes of a StatefulSet, followed by hand on the real control
plane.

No kubelet and no storage run here: that a claim asks for more is as far as it goes. What matters is that no pod and no
claim is lost, and that the StatefulSet, made again by ruleop, takes them over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.conftest import NewCluster
from tests.cluster.databases import Database, operating
from tests.cluster.operator import eventually

pytestmark = pytest.mark.real_server("kubectl is typed by the administrator")

SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ metadata.name }}"}
spec:
  replicas: {{ spec.replicas }}
  serviceName: {{ metadata.name }}
  selector: {matchLabels: {db: "{{ metadata.name }}"}}
  template:
    metadata: {labels: {db: "{{ metadata.name }}"}}
    spec:
      containers: [{name: db, image: "postgres:18", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ spec.storage }}"}}}
"""
BY_HAND = "children:\n  db: {template: set.yaml}"
BY_RULE = """
children:
  db:
    template: set.yaml
    apply: {ignore: [spec.volumeClaimTemplates]}
  data:
    forEach: range(spec.replicas)
    adopt: orphans
    deletion: orphan
    waitFor: live.db is defined
    object:
      apiVersion: v1
      kind: PersistentVolumeClaim
      metadata: {name: "data-{{ metadata.name }}-{{ item }}", labels: {db: "{{ metadata.name }}"}}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ spec.storage }}"}}}
"""


@pytest.fixture(scope="module")
def plane(new_cluster: NewCluster) -> Iterator[ControlPlane]:
    with new_cluster() as plane:
        plane.api().merge("/apis/storage.k8s.io/v1/storageclasses/kwok-volume", {"allowVolumeExpansion": True})
        yield plane
        plane.check()


def started(plane: ControlPlane, folder: Path, rules: str, namespace: str) -> Iterator[Database]:
    with operating(plane, folder, rules, set=SET) as operator:
        database = Database(operator, namespace, "db", {"replicas": 2, "storage": "1Gi"})
        database.wait_until_ready()
        yield database
        operator.check()
        database.admin.delete(database.path)


@pytest.fixture
def by_hand(plane: ControlPlane, tmp_path: Path) -> Iterator[Database]:
    yield from started(plane, tmp_path, BY_HAND, "by-hand")


@pytest.fixture
def by_rule(plane: ControlPlane, tmp_path: Path) -> Iterator[Database]:
    yield from started(plane, tmp_path, BY_RULE, "by-rule")


def found(database: Database, resource: str) -> dict[str, dict[str, Any]]:
    prefix = "/apis/apps/v1" if resource == "statefulsets" else "/api/v1"
    items = database.admin.get(f"{prefix}/namespaces/{database.namespace}/{resource}")["items"]
    return {each["metadata"]["name"]: each for each in items}


def uids(database: Database, resource: str) -> dict[str, str]:
    return {name: each["metadata"]["uid"] for name, each in found(database, resource).items()}


def sizes(database: Database) -> dict[str, str]:
    claims = found(database, "persistentvolumeclaims")
    return {name: each["spec"]["resources"]["requests"]["storage"] for name, each in claims.items()}


def owner(obj: dict[str, Any]) -> str | None:
    return next((each["uid"] for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)


def grow(database: Database, size: str, **more: Any) -> None:
    database.admin.merge(database.path, {"spec": {"storage": size, **more}}, "somebody")


@pytest.mark.newest("the words of the refusal")
def test_volumes_of_a_stateful_set_grow_by_the_manual_recipe(plane: ControlPlane, by_hand: Database) -> None:
    def kubectl(*arguments: str) -> str:
        return plane.kubectl("--namespace=by-hand", *arguments)

    pods, claims, before = uids(by_hand, "pods"), uids(by_hand, "persistentvolumeclaims"), uids(by_hand, "statefulsets")
    assert set(pods) == {"db-0", "db-1"}
    assert sizes(by_hand) == {"data-db-0": "1Gi", "data-db-1": "1Gi"}

    # 1. The new size in the CR: rejected by the API server, and the CR says which change.
    grow(by_hand, "2Gi")
    said = eventually(
        "the refusal", lambda: by_hand.ready() if by_hand.ready().get("reason") == "ApplyFailed" else None
    )["message"]
    assert (
        "; rejected change: spec.volumeClaimTemplates[data].spec.resources.requests.storage: 1Gi → 2Gi; `apply.onImmutable"
        in said
    )
    # 2. Each claim.
    patch = json.dumps({"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    for claim in claims:
        kubectl("patch", "pvc", claim, f"--patch={patch}")
    # 3. The StatefulSet without its pods; ruleop makes it again.
    kubectl("delete", "statefulset", "db", "--cascade=orphan")

    by_hand.wait_until_ready()
    after = uids(by_hand, "statefulsets")
    assert after["db"] != before["db"]
    eventually(
        "the pods to be taken over", lambda: {owner(pod) for pod in found(by_hand, "pods").values()} == {after["db"]}
    )
    assert uids(by_hand, "pods") == pods, "none was deleted"
    assert uids(by_hand, "persistentvolumeclaims") == claims
    assert sizes(by_hand) == {"data-db-0": "2Gi", "data-db-1": "2Gi"}
    # A replica more has the new size from its first day.
    grow(by_hand, "2Gi", replicas=3)
    eventually("the third", lambda: sizes(by_hand).get("data-db-2") == "2Gi")


def test_volumes_of_a_stateful_set_grow_by_the_recipe_with_a_rule(by_rule: Database) -> None:
    pods, claims, before = uids(by_rule, "pods"), uids(by_rule, "persistentvolumeclaims"), uids(by_rule, "statefulsets")
    assert sizes(by_rule) == {"data-db-0": "1Gi", "data-db-1": "1Gi"}
    grow(by_rule, "2Gi")
    eventually("the claims to ask for more", lambda: set(sizes(by_rule).values()) == {"2Gi"})
    by_rule.wait_until_ready()
    grow(by_rule, "2Gi", replicas=3)
    eventually("the third", lambda: sizes(by_rule).get("data-db-2") == "2Gi")
    eventually("its pod", lambda: set(uids(by_rule, "pods")) == {"db-0", "db-1", "db-2"})
    by_rule.wait_until_ready()
    assert uids(by_rule, "statefulsets") == before
    assert {name: uids(by_rule, "persistentvolumeclaims")[name] for name in claims} == claims
    assert {name: uids(by_rule, "pods")[name] for name in pods} == pods
    # Fewer replicas keep the claims, as those of a StatefulSet without a retention policy are kept.
    grow(by_rule, "2Gi", replicas=1)
    eventually("one pod", lambda: set(uids(by_rule, "pods")) == {"db-0"})
    by_rule.wait_until_ready()
    assert set(sizes(by_rule)) == {"data-db-0", "data-db-1", "data-db-2"}
