"""Convergence: after any sequence of events, the objects are those that a new CR with the same spec would have.

The events are random edits by users, controllers and other clients, some during a pass and some while the operator is
stopped.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ruleop.kubernetes.kinds import ObjectKey
from tests.projects.cluster import Refused
from tests.projects.samples import READY, begun
from tests.projects.simulation import Simulation

KEYS = {
    "name",
    "containerPort",
    "port",
    "protocol",
    "mountPath",
    "path",
    "apiVersion",
    "kind",
    "roleRef",
    "selector",
    "matchLabels",
    "clusterIP",
}
STAY = ("PersistentVolumeClaim/", "Secret/")  # objects that are kept when they are no longer desired
ONCE = (
    "Job/all-migrate-",
    "Job/team-migrate-",
)  # runs before the last one stay, and one that somebody deletes is not made again

EXTRA = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}, "data": {"a": "b"}}
PORTS = {"ports": [{"port": 80}]}


EDITS: dict[str, list[dict[str, Any]]] = {
    "App": [
        {"deployment": {"replicas": 5}},
        {"deployment": {"name": "other"}},
        {"service": {"name": "s"}},
        {"deployment": {"image": "n:2"}},
    ],
    "wordpress": [
        {"replicas": 2},
        {"debug": True},
        {"debug": False},
        {"extraEnv": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {
            "extraEnv": [
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "A", "value": "1"},
            ]
        },
        {"extraEnv": []},
        {"extraLabels": {"team": None, "x": "y"}},
        {"passwordSecret": "mine"},
        {"passwordSecret": None},
        {"persistence": {"enabled": False}},
        {"persistence": {"enabled": True}},
        {"persistence": {"keep": False}},
        {"ingress": None},
        {"ingress": {"host": "h", "tls": False, "annotations": {"a": "b"}}},
        {"php": {"ini": {"memory_limit": None, "x": 1}}},
        {"db": {"resources": {"requests": {"cpu": "2000m", "memory": "1Gi"}, "limits": {"cpu": 4}}}},
        {"db": {"resources": None}},
    ],
    "postgres": [
        {"version": "18.2"},
        {"memory": "2Gi"},
        {"cpu": "1"},
        {"cpu": "1000m"},
        {"parameters": {"max_connections": None, "work_mem": "8MB"}},
        {"passwordSecret": "mine"},
        {"passwordSecret": None},
        {"keepData": False},
        {"hibernate": True},
        {"hibernate": False},
        {"protect": False},
        {"monitoring": False},
        {"monitoring": True},
        {"clients": [{"labels": {"app": "else"}}]},
        {"clients": None},
        {"backups": [{"name": "nightly", "schedule": "@daily", "claim": "c", "keep": 3}]},
        {"backups": []},
        {"memory": "1Gi"},
    ],
    "chart": [
        {"auth": {"enabled": True, "username": "a", "password": "given"}},
        {"auth": {"password": None}},
        {"auth": {"existingPasswordSecret": "mine"}},
        {"auth": {"existingPasswordSecret": None, "enabled": False}},
        {"autoscaling": {"enabled": True}},
        {"autoscaling": {"enabled": False}},
        {"metrics": {"enabled": False}},
        {"metrics": {"enabled": True, "serviceMonitor": {"namespace": "monitoring"}}},
        {"metrics": {"serviceMonitor": {"namespace": None}}},
        {"extraDeploy": []},
        {"sidecars": [{"name": "side", "image": "side"}], "extraEnvVars": [{"name": "A", "value": "1"}]},
        {"sidecars": [], "extraEnvVars": []},
        {"service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.0/24"]}},
        {"service": None},
        {"networkPolicy": {"allowExternalEgress": False}},
        {"commonLabels": {"team": None}, "podLabels": {"a": "b"}},
        {"diagnosticMode": {"enabled": True}},
        {"diagnosticMode": None, "persistence": {"enabled": True}},
    ],
    "kafka": [
        {"replicas": 1},
        {"replicas": 2},
        {"replicas": 5},
        {"memory": "8Gi"},
        {"config": {"a": "b"}},
        {"config": {"num.partitions": None}},
    ],
    "tenant": [
        {"size": "large"},
        {"admins": []},
        {"admins": ["alice@example.com", "zoe"]},
        {"members": {"dave@example.com": "edit"}},
        {"members": {"dave@example.com": None, "eve": "admin"}},
        {"sharedNamespaces": ["tools"]},
        {"sharedNamespaces": []},
        {"labels": {"cost-center": None, "a": "b"}},
        {"quota": {"pods": "7", "requests.cpu": "3000m"}},
        {"keepNamespace": True},
        {"keepNamespace": False},
    ],
    "shop": [
        {"port": 9090},
        {"cpu": "2000m"},
        {"image": "i:2"},
        {"tls": False},
        {"tls": True},
        {"autoscaling": None},
        {"autoscaling": {"min": 2, "max": 4}},
        {"settings": {"domain": "else", "x": "y"}},
        {"settings": {"domain": None}},
    ],
    "backup": [
        {"suspend": True},
        {"schedule": "@daily"},
        {"restore": {"requestId": "r2", "from": "f"}},
        {"restore": None},
        {"deletePolicy": "Keep"},
        {"database": "d"},
    ],
    "bundle": [
        {"persistent": True},
        {"persistent": False},
        {"sources": ["two"]},
        {"sources": ["one", "two"]},
        {"marked": "one"},
        {"marked": None},
        {"note": "other"},
        {"note": None},
        {"teams": [{"name": "red", "environments": ["dev"]}, {"name": "blue", "environments": ["dev", "prod"]}]},
        {"teams": [{"name": "red"}]},
        {"teams": []},
        {"extras": [EXTRA, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "extra"}, "spec": PORTS}]},
        {"extras": [{**EXTRA, "data": {"a": "c"}}]},
        {"extras": []},
        {"version": "2"},
        {"version": "3"},
        {"group": "y"},
        {"group": "none"},
        {"group": None},
    ],
    "console": [
        {"version": "2.0"},
        {"version": "1.0"},
        {"replicas": 3},
        {"workers": 0},
        {"database": {"secret": "mine"}},
        {"database": {"secret": None}},
        {"hostname": None},
        {"hostname": "h"},
        {"extraSettings": {"A": "b", "LOG_LEVEL": None}},
    ],
}
"""Of the specs of examples, one of which an edit applies."""

SEEDS = int(os.environ.get("LIVES", "4"))
"""The environment variable LIVES sets the number of seeds."""


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("project", EDITS)
def test_any_sequence_of_events_ends_in_the_state_of_a_new_cr(project: str, seed: int) -> None:
    draw = random.Random(f"{project} {seed}")  # noqa: S311 - reproducible
    cluster, resource = begun(project)
    if draw.random() < 0.7:
        cluster.converge(8)
    for _ in range(draw.randint(3, 12)):
        what = draw.choice(["edit", "edit", "edit", "delete", "drift", "settle", "work", "reconcile", "restart"])
        ours = [name for name in cluster.names if cluster[name]["metadata"].get("labels", {}).get("ruleop.dev/part-of")]
        if what == "edit":
            cluster.edit(resource, {"spec": draw.choice(EDITS[project])})
        elif what == "delete" and ours:
            cluster.delete(draw.choice(ours))
        elif what == "drift" and ours:
            drift(cluster, draw.choice(ours), draw)
        elif what == "settle":
            cluster.settle(*draw.sample(cluster.names, draw.randint(1, len(cluster.names))))
        elif what == "work":
            cluster.work(cluster.key(resource))
        elif what == "reconcile":
            cluster.reconcile()
        elif what == "restart":
            cluster._histories.clear()
    cluster.converge(8)
    fresh, _ = begun(project, cluster[resource]["spec"])
    fresh.converge(8)
    assert cluster.ready(resource) == fresh.ready(resource) == READY
    extra = set(cluster.names) - set(fresh.names)
    assert {name for name in fresh.names if not name.startswith(ONCE)} <= set(cluster.names)
    assert all(name.startswith((*STAY, *ONCE)) for name in extra)
    for name in set(fresh.names) & set(cluster.names) - {resource}:
        assert comparable(cluster, name) == comparable(fresh, name)
    cluster.delete(resource)
    cluster.converge(8)
    fresh.delete(resource)
    fresh.converge(8)
    assert [name for name in cluster.names if not name.startswith(STAY)] == [
        name for name in fresh.names if not name.startswith(STAY)
    ]


def drift(cluster: Simulation, name: str, draw: random.Random) -> None:
    """Another client changes one value that the operator has written."""
    assert cluster.last is not None
    key = cluster.key(name)
    rendered = next((obj for _, _, obj in cluster.last.rendered if ObjectKey.of(obj) == key), None)
    places = list(leaves(rendered or {}))
    if not places:
        return
    path = draw.choice(places)

    def change(obj: dict[str, Any]) -> None:
        here: Any = obj
        for step in path[:-1]:
            here = here[step]
        value = here[path[-1]]
        here[path[-1]] = (
            (not value) if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}x"
        )

    with contextlib.suppress(Refused, KeyError, IndexError, AssertionError):  # the server rejects this value
        cluster.change(name, change)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in KEYS and not (not path and name == "metadata") and name != "stringData":
                yield from leaves(each, (*path, name))
    elif isinstance(value, list):
        if all(isinstance(each, dict) for each in value):
            for index, each in enumerate(value):
                yield from leaves(each, (*path, index))
    elif value is not None:
        yield path


def comparable(cluster: Simulation, name: str) -> Any:
    """An object without fields that differ between clusters."""
    obj = copy.deepcopy(cluster.bare(name))
    obj.pop("status", None)
    if obj["kind"] == "Secret":
        obj.pop("data", None)
    if obj["kind"] == "Job":  # create-only
        obj.pop("spec")
    spec = obj.get("spec", {})
    for field in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        spec.pop(field, None)
    for port in spec.get("ports", ()):
        port.pop("nodePort", None)
    if obj["kind"] == "Deployment" and any(each.startswith("HorizontalPodAutoscaler") for each in cluster.names):
        spec.pop("replicas")
    text = re.sub(r"198\.18\.\d+\.\d+", "IP", json.dumps(obj))
    text = re.sub(r'"checksum/(credentials|database)": "[0-9a-f]+"', '"checksum": ""', text)
    return json.loads(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text))
