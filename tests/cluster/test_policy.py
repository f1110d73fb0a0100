"""`ruleop generate policy` on a real API server: it refuses what the operator would call Invalid, with its message."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ruleop.authoring.generate.crds import installed_crds
from ruleop.authoring.generate.policies import policies, policy_objects
from ruleop.language.rules.checking import build_with_sources, load_with_sources
from ruleop.language.rules.loading import Loaded
from ruleop.language.rules.operator_choices import Choices
from tests.authoring.generate.policy_rules import CRD, METADATA, RULES, SPECS, project, verdict, widget
from tests.cluster.server import Client, RefusedError
from tests.docs.messages import ROOT
from tests.exploration import examples

pytestmark = pytest.mark.real_server("the server in memory enforces no admission policies")

GROUP = "/apis/admissionregistration.k8s.io/v1"


def install(server: Client, objects: Iterable[Mapping[str, Any]], path: str, example: Mapping[str, Any]) -> None:
    """Makes policies, and waits until the server enforces them: until a last policy refuses the name that it is for.
    The server knows all that were made before then."""
    found = list(objects)
    marker = f"marker-{example['kind'].lower()}"
    rule: dict[str, Any] = json.loads(json.dumps(found[0]))
    rule["metadata"]["name"] = marker
    rule["spec"].pop("matchConditions")
    rule["spec"]["validations"] = [{"expression": f"object.metadata.name != '{marker}'", "message": "marked"}]
    binding = {**found[1], "metadata": {"name": marker}, "spec": {**found[1]["spec"], "policyName": marker}}
    for each in (*found, rule, binding):
        binds = each["kind"].endswith("Binding")
        server.post(f"{GROUP}/validatingadmission{'policybindings' if binds else 'policies'}", each)
    marked = {**example, "metadata": {**example["metadata"], "name": marker}}
    deadline = time.monotonic() + 60
    while "marked" not in answer(server, path, marked):
        assert time.monotonic() < deadline, "the policies are not enforced"
        time.sleep(0.05)


def answer(server: Client, path: str, resource: Mapping[str, Any]) -> str:
    """The message of a refusal; empty if the resource is admitted."""
    try:
        server.post(f"{path}?dryRun=All", resource)
    except RefusedError as error:
        return error.message
    return ""


def decided(message: str) -> tuple[str, str]:
    """A verdict in the words of `verdict`, and the message of the rule."""
    if not message:
        return "holds", ""
    found = re.search(r"denied request: (.*)", message, re.DOTALL)
    assert found, message
    failed = re.match(r"expression '.*' resulted in error: ", found[1], re.DOTALL)
    return ("fails", "") if failed else ("broken", found[1])


@pytest.fixture(scope="module")
def widgets(server: Client) -> str:
    path = server.define(yaml.safe_load(CRD))
    install(server, policy_objects(policies(project())[0], Choices()), path, widget({}, 0))
    return path


def with_doubles(value: Any) -> Any:
    """Integers in the form of doubles, which the schema admits and the server stores as integers."""
    if isinstance(value, dict):
        return {name: with_doubles(member) for name, member in value.items()}
    if isinstance(value, list):
        return [with_doubles(each) for each in value]
    return float(value) if type(value) is int and abs(value) < 2**53 else value


def test_the_server_decides_random_resources_as_the_operator(server: Client, widgets: str) -> None:
    loaded = project()
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=examples(1500),
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(number=st.sampled_from(range(len(RULES))), spec=SPECS, metadata=METADATA, doubles=st.booleans())
    def check(number: int, spec: Any, metadata: Any, doubles: bool) -> None:
        resource = widget(spec, number, **metadata)
        expected, message = verdict(loaded.project, loaded.project.rules[number], resource)
        sent = {**resource, "spec": with_doubles(spec)} if doubles and spec is not None else resource
        found = decided(answer(server, widgets, sent))
        assert found == (expected, message if expected == "broken" else ""), RULES[number]
        outcomes[expected] += 1

    check()
    assert min(outcomes[each] for each in ("holds", "broken", "fails")) > 15, outcomes


def instance(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "db.example.com/v1",
        "kind": "Postgres",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"version": "17", "storage": "1Gi", **spec},
    }


@pytest.mark.parametrize(
    ("memory", "parameters"),
    [("1Gi", {}), ("256Mi", {"port": 1}), ("255Mi", {}), ("1Mi", {"port": 1}), ("1Gi", {"work_mem": "4MB"})],
)
def test_the_rules_of_an_example_are_those_of_the_operator(
    server: Client, postgres: tuple[Loaded, str], memory: str, parameters: dict[str, Any]
) -> None:
    loaded, path = postgres
    resource = instance(memory=memory, parameters=parameters)
    expected, message = verdict(loaded.project, loaded.project.rules[0], resource)
    found, said = decided(answer(server, path, resource))
    assert found == expected
    # join is not in CEL
    assert said == ("" if expected == "holds" else re.sub(r"must not set .*", "must not set ...", message))


@pytest.fixture(scope="module")
def postgres(server: Client) -> tuple[Loaded, str]:
    loaded = load_with_sources(ROOT / "examples/postgres", environ={})
    (crd,) = installed_crds(loaded)
    path = server.define(dict(crd))
    install(server, policy_objects(policies(loaded)[0], Choices()), path, instance())
    return loaded, path


# -- which requests are checked ----------------------------------------------------------------------------------------

WATCH = """
- group: sites.example.com
  version: v1
  kind: Site
  validate: [{rule: "spec.page != 'bad'", message: "{{ spec.page }} in {{ metadata.namespace }}"}]
  children: {}
"""
VERSION = """{served: true, storage: %s, name: %s, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object,
  properties: {spec: {type: object, properties: {page: {type: string}}},
  status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}"""
SITES = f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: sites.sites.example.com}}
spec:
  group: sites.example.com
  scope: Namespaced
  names: {{kind: Site, plural: sites, singular: site, listKind: SiteList}}
  versions: [{VERSION % ("true", "v1")}, {VERSION % ("false", "v1alpha1")}]
"""


def site(name: str, page: str, version: str = "v1", **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, **metadata}
    return {"apiVersion": f"sites.example.com/{version}", "kind": "Site", "metadata": meta, "spec": {"page": page}}


@pytest.fixture(scope="module")
def sites(server: Client) -> str:
    """A policy for the namespace default, with a Site that broke its rule before."""
    path = server.define(yaml.safe_load(SITES))
    server.post(path, site("old", "bad", finalizers=["example.com/held"]))
    loaded = build_with_sources({"watches.yaml": WATCH, "crds/sites.yaml": SITES}, root="", environ={})
    objects = policy_objects(policies(loaded)[0], Choices(namespaces=("default",)))
    install(server, objects, path, site("a", "good"))
    return path


def test_a_resource_that_was_broken_before_can_be_changed_and_deleted(server: Client, sites: str) -> None:
    old = f"{sites}/old"
    server.merge(old, {"metadata": {"annotations": {"a": "b"}}}, "tests")
    server.merge(f"{old}/status", {"status": {"ready": True}}, "tests")
    with pytest.raises(RefusedError, match="bad in default"):
        server.post(sites, site("new", "bad"))
    server.merge(old, {"spec": {"page": "good"}}, "tests")
    with pytest.raises(RefusedError, match="denied request: bad in default"):
        server.merge(old, {"spec": {"page": "bad"}}, "tests")
    server.delete(old)
    server.merge(old, {"spec": {"page": "bad"}, "metadata": {"finalizers": []}}, "tests")
    with pytest.raises(RefusedError, match="not found"):
        server.get(old)


def test_every_version_of_the_kind_is_checked(server: Client, sites: str) -> None:
    path = sites.replace("/v1/", "/v1alpha1/")
    assert decided(answer(server, path, site("a", "bad", "v1alpha1"))) == ("broken", "bad in default")
    assert answer(server, path, site("a", "good", "v1alpha1")) == ""


def test_other_namespaces_are_not_checked(server: Client, sites: str) -> None:
    path = sites.replace("/default/", "/kube-system/")
    assert answer(server, path, site("a", "bad")) == ""
