"""No value of the Memcached chart is dead: each changes what a custom resource becomes, and a rule test sets each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from ruleop.authoring.checking.refused_objects import with_violations
from ruleop.kubernetes.kinds import Kind
from ruleop.planning import Plan, choose_rule
from tests.docs.messages import ROOT
from tests.patching import patched
from tests.projects.rendering import document, loaded, planned
from tests.projects.samples import foreign

CHART = ROOT / "examples/memcached-chart"
MONITOR = Kind("monitoring.coreos.com", "v1", "ServiceMonitor")
LABELS = {"a": "b"}
DIGEST = "sha256:" + "0" * 64
EVERYTHING = {
    "auth": {"enabled": True, "username": "pages", "existingPasswordSecret": "mine"},
    "autoscaling": {"enabled": True},
    "volumePermissions": {"enabled": True},
    "startupProbe": {"enabled": True},
    "nodeAffinityPreset": {"type": "soft", "key": "zone", "values": ["a"]},
    "service": {"type": "LoadBalancer"},
    "networkPolicy": {"allowExternal": False, "allowExternalEgress": False, "ingressNSMatchLabels": LABELS},
    "metrics": {"startupProbe": {"enabled": True}},
}
PRIVILEGED = {
    "containerSecurityContext": {"allowPrivilegeEscalation": True},
    "metrics": {"containerSecurityContext": {"allowPrivilegeEscalation": True}},
}
CONTEXTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("replicated", EVERYTHING),
    ("secured", {"resources": None}),
    ("replicated", {"podAffinityPreset": "soft", "diagnosticMode": {"enabled": True}, **PRIVILEGED}),
)
"""Samples with changes of their spec; a value has an effect in one of them at least."""

VALUES: Mapping[str, Any] = {
    "affinity": {"nodeAffinity": {}},
    "args": ["-v"],
    "architecture": "high-availability",
    "containerSecurityContext.allowPrivilegeEscalation": True,
    "extraDeploy": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "extra"}}],
    "extraVolumeMounts": [{"name": "empty-dir", "mountPath": "/more"}],
    "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}],
    "lifecycleHooks": {"preStop": {"exec": {"command": ["stop"]}}},
    "metrics.serviceMonitor.namespace": "monitoring",
    "networkPolicy.extraEgress": [{"ports": [{"port": 1}]}],
    "networkPolicy.extraIngress": [{"ports": [{"port": 1}]}],
    "persistence.selector": {"matchLabels": LABELS},
    "persistence.size": "2Gi",
    "podSecurityContext.sysctls": [{"name": "a", "value": "b"}],
    "service.clusterIP": "10.96.0.9",
    "metrics.service.clusterIP": "10.96.0.9",
    "service.extraPorts": [{"name": "more", "port": 1}],
    "service.loadBalancerIP": "192.0.2.1",
    "service.loadBalancerSourceRanges": ["192.0.2.0/24"],
    "service.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
    "service.trafficDistribution": "PreferClose",
    "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "updateStrategy.type": "OnDelete",
}
"""Values that the type alone does not give."""

BY_ENDING: Mapping[str, Any] = {
    "Probe": {"exec": {"command": ["ask"]}},
    "accessModes": ["ReadWriteOncePod"],
    "capabilities.drop": ["NET_RAW"],
    "digest": DIGEST,
    "extraEnvVars": [{"name": "A", "value": "b"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "initContainers": [{"name": "more", "image": "more"}],
    "interval": "5s",
    "maxUnavailable": 2,
    "minAvailable": 2,
    "maxSurge": 2,
    "elabelings": [{"action": "drop"}],
    "resources": {"limits": {"cpu": 1}},
    "scrapeTimeout": "5s",
    "seLinuxOptions": {"level": "s0"},
    "seccompProfile.type": "Unconfined",
    "sidecars": [{"name": "more", "image": "more"}],
    "supplementalGroups": [7],
}


@cache
def schema() -> Mapping[str, Any]:
    [crd] = loaded(CHART).crds
    version = crd.version("v1")
    assert version is not None
    found: Mapping[str, Any] = version.schema["properties"]["spec"]
    return found


def leaves(node: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The values of the chart: a mapping whose type belongs to Kubernetes is one of them."""
    properties = node.get("properties")
    if path and (properties is None or not _of_the_chart(path)):
        yield ".".join(path), node
        return
    for name, below in (properties or {}).items():
        yield from leaves(below, (*path, name))


def _of_the_chart(path: tuple[str, ...]) -> bool:
    """Whether the schema of the watch names the fields of the mapping there."""
    given = watch_schema()
    fields: Any = given["spec"]
    for name in path:
        fields = fields[name]
        fields = given["types"].get(fields, fields) if isinstance(fields, str) else fields
    return isinstance(fields, dict)


@cache
def watch_schema() -> Any:
    return yaml.safe_load((CHART / "watches.yaml").read_text(encoding="utf-8"))["watches"][0]["schema"]


PATHS = {path: node for path, node in leaves(schema()) if node.get("minimum", 0) != node.get("maximum")}
"""Without those that Kubernetes allows one value, such as the successThreshold of a livenessProbe."""


def others(path: str, node: Mapping[str, Any]) -> list[Any]:
    """Valid values of which at least one is not what a context has."""
    by_ending = (value for ending, value in BY_ENDING.items() if path.endswith(ending))
    found = VALUES.get(path, next(by_ending, None))
    if found is not None:
        return [found]
    if "enum" in node:
        return [*filter(None, node["enum"])]
    match node["type"]:
        case "boolean":
            return [False, True]
        case "integer":
            return [node.get("default", 0) + 1]
        case "string":
            return ["another"]
        case "array":
            return [["another"]]
    return [{"another": "value"}]


def plan_of(context: int, spec: Mapping[str, Any]) -> Plan:
    sample, more = CONTEXTS[context]
    cr = document(CHART / "examples" / f"{sample}.yaml")
    cr["spec"] = patched(patched(cr["spec"], more), spec)
    secrets = [
        foreign("Secret", name, data={"memcached-password": "cA=="})
        for name in ("carts-memcached", "pages-memcached", "mine", "another")
    ]
    found = planned(CHART, cr, secrets, served=[MONITOR])
    rule = choose_rule(loaded(CHART).rules, cr)
    assert rule is not None
    assert [each.message for each in with_violations(found, rule, loaded(CHART)).problems] == []
    return found


@cache
def effect_of(context: int) -> Any:
    return effect(plan_of(context, {}))


def effect(plan: Plan) -> Any:
    assert plan.status is not None
    return [obj for _, _, obj in plan.rendered], plan.status.status


@pytest.mark.parametrize("path", PATHS)
def test_a_value_has_an_effect(path: str) -> None:
    specs = []
    for spec in others(path, PATHS[path]):
        for name in reversed(path.split(".")):
            spec = {name: spec}  # noqa: PLW2901 - from the inside to the outside
        specs.append(spec)
    assert any(effect(plan_of(each, spec)) != effect_of(each) for each in contexts(path) for spec in specs)


def contexts(path: str) -> tuple[int, ...]:
    """Those that may have the value: some values exclude each other."""
    if path in {"updateStrategy.rollingUpdate.maxSurge", "architecture"}:
        return (1,)
    return (2,) if path.endswith("privileged") else (0, 2, 1)


@pytest.mark.slow
def test_each_value_is_set_by_a_rule_test() -> None:
    files = [*sorted((CHART / "tests").glob("*.test.yaml")), *sorted((CHART / "examples").glob("*.yaml"))]
    given = {
        path for file in files for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) for path in set_by(each)
    }
    assert [path for path in PATHS if path not in given] == []


def set_by(node: Any, path: tuple[str, ...] | None = None) -> Iterator[str]:
    """The paths below each `spec` of the data."""
    if path:
        yield ".".join(path)
    if isinstance(node, dict):
        for name, value in node.items():
            if path is not None:
                yield from set_by(value, (*path, name))
            yield from set_by(value, () if name == "spec" else None)
    elif isinstance(node, list):
        for item in node:
            yield from set_by(item)
