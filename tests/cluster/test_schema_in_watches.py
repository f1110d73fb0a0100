"""`schema` of a watch before the API server: it takes each CRD that is made of one, stores what ruleop says that it
stores, and kubectl explains and scales the kind."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import START_TIMEOUT, ControlPlane
from controlplane.fixtures import Kubectl
from controlplane.process import ControlPlaneError, wait_for
from hypothesis import HealthCheck, Phase, given, settings

from ruleop.authoring.checking.inferred_definitions import sound_definitions
from ruleop.authoring.generate.crds import crd_files
from ruleop.authoring.scaffold.from_sample import empty_project
from ruleop.authoring.scaffold.new_project import project_files, write_files
from ruleop.kubernetes.builtin.builtin_types import type_schemas
from ruleop.kubernetes.crd import default, prune
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import same
from ruleop.kubernetes.schema.validation import validate
from ruleop.language.rules.checking import load_with_sources
from tests.authoring.checking.random_schemas import definition_of, schemas
from tests.cluster.server import CRDS, Client, RefusedError
from tests.cluster.test_schema_crds import agree, field, written
from tests.kubernetes.schema.chance import Chance

# Without shrinking: each example defines a kind, of which a busy server needs seconds.
ON_A_SERVER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
)


def refusal(server: Client, document: Any) -> str:
    try:
        server.post(f"{CRDS}?dryRun=All&fieldValidation=Strict", document)
    except RefusedError as error:
        return error.message
    return ""


@settings(ON_A_SERVER, max_examples=40, derandomize=True)
@given(schemas())
def test_random_schemas_are_accepted(server: Client, schema: dict[str, Any]) -> None:
    definition, mistakes = definition_of(schema)
    assert mistakes == []
    assert refusal(server, definition.document) == ""


def test_every_type_of_the_api_can_be_a_field(server: Client) -> None:
    names = sorted(type_schemas())
    for start in range(0, len(names), 20):
        spec = {f"f{index}": {"$ref": name} for index, name in enumerate(names[start : start + 20])}
        definition, mistakes = definition_of({"spec": spec})
        assert mistakes == []
        assert refusal(server, definition.document) == "", names[start : start + 20]


@pytest.mark.real_server("the server in memory has the same functions as ruleop")
@pytest.mark.parametrize(
    ("field", "is_valid"),
    [
        ('string | default=ab validation="self.size() > 1"', True),
        ('string | default=a validation="self.size() > 1"', False),
        ("string | default=a immutable=true", True),
        ({"a": "integer | default=1", "b": 'integer | default=2 validation="self > 1"'}, True),
        ('Struct | default={"a": 1}', True),
        ('Struct | default={"a": 0}', False),
        ("Struct | default={}", False),
    ],
)
def test_a_default_that_breaks_a_rule_is_refused_here_and_by_the_server(
    server: Client, field: Any, is_valid: bool
) -> None:
    rules = [{"rule": "self.a > 0"}]
    struct = {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": rules}
    definition, mistakes = definition_of({"spec": {"field": field}, "types": {"Struct": struct}})
    assert (mistakes == [], refusal(server, definition.document) == "") == (is_valid, is_valid)


@pytest.mark.newest("the fields of its refusals")
@pytest.mark.real_server("the server in memory has the same functions as ruleop")
@settings(ON_A_SERVER, max_examples=6, derandomize=True)
@given(schemas())
def test_random_objects_are_stored_as_the_schema_declares(server: Client, schema: dict[str, Any]) -> None:
    chance = Chance(7)
    document = dict(definition_of(schema)[0].document)
    plural = f"r{uuid.uuid4().hex[:12]}"
    document["metadata"] = {"name": f"{plural}.random.example.com"}
    names = {"kind": plural.capitalize(), "plural": plural}
    document["spec"] = {**document["spec"], "names": names}
    version = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    path = f"{server.define(document, is_published=False)}?dryRun=All&fieldValidation=Ignore"
    try:
        for number in range(50):
            obj = {
                "apiVersion": "random.example.com/v1",
                "kind": names["kind"],
                "metadata": {"name": f"r{number}"},
                "spec": chance.value(version["properties"]["spec"], wild=0.02),
            }
            ours = default(prune(obj, version), version)
            found = {field(finding.path) for finding in validate(ours, version)}
            stored, error = _stored(server, path, obj)
            if error is not None:
                assert agree(found, error), (obj, sorted(found), error.message)
            else:
                assert not found, (obj, found)
                assert same(stored.get("spec"), written(ours.get("spec"))), (obj, stored, ours)
    finally:
        server.delete(f"{CRDS}/{document['metadata']['name']}")


def _stored(server: Client, path: str, obj: Any) -> tuple[Any, RefusedError | None]:
    try:
        return server.post(path, obj), None
    except RefusedError as error:
        return None, error


# -- kubectl -----------------------------------------------------------------------------------------------------------

SCALED: dict[str, Any] = {
    "spec": {"replicas": "integer | default=1 minimum=0 maximum=10 description='how many'", "image": "string"},
    "scale": {"replicas": ".spec.replicas", "status": ".status.replicas", "selector": ".status.selector"},
    "shortNames": ["scd"],
    "columns": [{"name": "Replicas", "jsonPath": ".spec.replicas"}],
    "plural": "scaleds",
}
STATUS = {"replicas": "{{ spec.replicas }}", "selector": "app={{ metadata.name }}"}


@pytest.fixture
def scaled(control_plane: ControlPlane, tmp_path: Path) -> Iterator[None]:
    definition, mistakes = definition_of(SCALED, group="scaled.example.com", status=STATUS)
    assert mistakes == []
    for name, text in crd_files([definition]).items():
        (tmp_path / name).write_text(text)
    control_plane.define(tmp_path)
    wait_for("the published schema", lambda: _is_published(control_plane, "scaleds"), START_TIMEOUT, [])
    yield
    control_plane.kubectl("delete", f"crd/{definition.crd.name}")


def _is_published(control_plane: ControlPlane, plural: str) -> bool:
    """The API server publishes schemas some time after it serves a kind."""
    try:
        return bool(control_plane.kubectl("explain", plural))
    except ControlPlaneError:
        return False


@pytest.mark.real_server("the stand-in for kubectl explains nothing; the stories of clients/ run kubectl itself")
@pytest.mark.usefixtures("scaled")
def test_kubectl_explains_and_scales_the_kind(kubectl: Kubectl) -> None:
    assert "how many" in kubectl("explain", "scaleds.spec.replicas")
    assert "selector" in kubectl("explain", "scaleds.status")
    manifest = {"apiVersion": "scaled.example.com/v1", "kind": "Random", "metadata": {"name": "a"}, "spec": {}}
    kubectl("create", "--filename=-", stdin=json.dumps(manifest))
    kubectl("scale", "scaleds/a", "--replicas=3")
    assert json.loads(kubectl("get", "scaleds/a", "--output=json"))["spec"] == {"replicas": 3}
    with pytest.raises(ControlPlaneError, match="should be less than or equal to 10"):
        kubectl("scale", "scaleds/a", "--replicas=11")
    header, row = kubectl("get", "scd").splitlines()
    assert header.split() == ["NAME", "REPLICAS", "READY", "AGE"]
    assert row.split()[:2] == ["a", "3"]


@pytest.mark.real_server("the stand-in for kubectl explains nothing; the stories of clients/ run kubectl itself")
def test_kubectl_explains_and_scales_the_kind_of_a_new_project(
    control_plane: ControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    write_files(tmp_path / "new", project_files(empty_project(Kind("new.example.com", "v1", "Webshop")), {}))
    files = crd_files(sound_definitions(load_with_sources(tmp_path / "new", environ={})))
    write_files(tmp_path / "crds", files)
    control_plane.define(tmp_path / "crds")
    try:
        wait_for("the published schema", lambda: _is_published(control_plane, "webshops"), START_TIMEOUT, [])
        assert "<integer>" in kubectl("explain", "webshops.spec.port")
        kubectl("create", f"--filename={tmp_path / 'new' / 'examples'}")
        kubectl("scale", "webshops/webshop-sample", "--replicas=3")
        assert json.loads(kubectl("get", "webshops/webshop-sample", "--output=json"))["spec"]["replicas"] == 3
        header, _ = kubectl("get", "webshops").splitlines()
        assert header.split() == ["NAME", "READYREPLICAS", "READY", "AGE"]
    finally:
        control_plane.kubectl("delete", "crd/webshops.new.example.com")
