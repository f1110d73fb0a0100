"""`versions` of a `schema` before the API server: fields that versions share survive a write in each, and a field that
one lacks is lost, so `schema` refuses it."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from ruleop.language.rules import ProjectErrors
from tests.authoring.checking.random_schemas import definition_of
from tests.cluster.server import CRDS, Client

FIELDS = {"size": "integer | default=1", "page": {"title": "string", "tags": "[]string"}, "labels": "map[string]string"}
SPEC = {"size": 3, "page": {"title": "a", "tags": ["b"]}, "labels": {"c": "d"}}
EXTRA = {"extra": "string"}


class Kind:
    """A kind of two versions, v1 and v1beta1."""

    def __init__(self, server: Client, document: dict[str, Any]) -> None:
        self.server = server
        names = {"kind": f"R{uuid.uuid4().hex[:12]}"}
        self.kind, self.plural = names["kind"], names["kind"].lower()
        self.name = f"{self.plural}.random.example.com"
        spec = {**document["spec"], "names": {**names, "plural": self.plural}}
        server.define({**document, "metadata": {"name": self.name}, "spec": spec}, is_published=False)

    def path(self, version: str, name: str = "") -> str:
        return f"/apis/random.example.com/{version}/namespaces/default/{self.plural}{name}"

    def create(self, version: str, spec: Any) -> None:
        api_version = f"random.example.com/{version}"
        obj = {"apiVersion": api_version, "kind": self.kind, "metadata": {"name": "a"}, "spec": spec}
        self.server.post(self.path(version), obj)

    def spec(self, version: str) -> Any:
        return self.server.get(self.path(version, "/a"))["spec"]

    def resize(self, version: str) -> None:
        """A write of one field."""
        self.server.merge(self.path(version, "/a"), {"spec": {"size": 7}}, "test")


@pytest.fixture
def made(server: Client, request: pytest.FixtureRequest) -> Iterator[Any]:
    found: list[Kind] = []

    def make(document: dict[str, Any]) -> Kind:
        found.append(Kind(server, document))
        return found[-1]

    yield make
    for each in found:
        server.delete(f"{CRDS}/{each.name}")


def versions(stored: str) -> dict[str, Any]:
    other = {"spec": FIELDS, "stored": stored == "v1beta1", "deprecated": True}
    return {"spec": FIELDS, "versions": {"v1beta1": other}}


@pytest.mark.parametrize("stored", ["v1", "v1beta1"])
@pytest.mark.parametrize("written", ["v1", "v1beta1"])
def test_a_resource_is_the_same_in_each_version(made: Any, stored: str, written: str) -> None:
    definition, mistakes = definition_of(versions(stored))
    assert mistakes == []
    kind = made(definition.document)
    kind.create(written, SPEC)
    assert kind.spec("v1") == kind.spec("v1beta1") == SPEC
    for version in ("v1", "v1beta1"):
        kind.resize(version)
        assert kind.spec("v1") == kind.spec("v1beta1") == {**SPEC, "size": 7}


@pytest.mark.parametrize("lacking", ["v1", "v1beta1"])
@pytest.mark.parametrize("stored", ["v1", "v1beta1"])
def test_a_field_that_a_version_lacks_is_lost_by_a_write_in_it_and_a_mistake(
    made: Any, stored: str, lacking: str
) -> None:
    document = copy.deepcopy(dict(definition_of(versions(stored))[0].document))
    having = "v1beta1" if lacking == "v1" else "v1"
    (version,) = [each for each in document["spec"]["versions"] if each["name"] == having]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["extra"] = {"type": "string"}
    kind = made(document)
    kind.create(having, {**SPEC, "extra": "x"})
    kind.resize(lacking)
    assert kind.spec(having) == {**SPEC, "size": 7}

    schema = versions(stored)
    if having == "v1":
        schema["spec"] = FIELDS | EXTRA
    else:
        schema["versions"]["v1beta1"]["spec"] = FIELDS | EXTRA
    with pytest.raises(ProjectErrors, match='the field "extra"'):
        definition_of(schema)
