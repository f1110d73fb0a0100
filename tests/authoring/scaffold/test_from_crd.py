"""A project from a definition that exists: its children read the fields of the schema, and its example satisfies it."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.scaffold.from_crd import crd_projects
from ruleop.authoring.scaffold.from_sample import sample_project
from ruleop.authoring.scaffold.instance import instance, validate_value
from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.authoring.scaffold.new_project import project_files
from tests.authoring.scaffold.projects import planned, rendered
from tests.definitions import crd, fields, version
from tests.docs.messages import ROOT

DEFINITIONS = sorted([*ROOT.glob("examples/*/crds/*.yaml"), *ROOT.glob("tests/projects/*/crds/*.yaml")])


def definition(spec: Any = None, *, required: bool = True, **more: Any) -> dict[str, Any]:
    schema = fields(spec={"type": "object", **(spec or {})})
    if required:
        schema["required"] = ["spec"]
    return crd("Zone", "example.com", version("v1", schema), **more)


def of(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return definition({"properties": properties, "required": list(required)}, **more)


TEXT = {"type": "string"}


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_definition_becomes_a_project_without_mistakes(path: Path, tmp_path):
    projects = crd_projects([each for each in yaml.safe_load_all(path.read_text()) if each])
    for project in projects:
        planned(project, tmp_path / project.folder)


def test_a_child_reads_the_fields_of_the_spec(tmp_path):
    fields = {"title": TEXT, "size": {"type": "integer"}, "tags": {"type": "array", "items": TEXT}, "more": TEXT}
    [project] = crd_projects([of(fields, "title", "size", "tags")])
    data = rendered(planned(project, tmp_path))["ConfigMap/zone-sample"]["data"]
    assert data == {"title": "example", "size": "1", "tags": "[]", "more": ""}


def test_an_image_becomes_a_deployment_and_its_ready_replicas_a_field_that_the_status_has(tmp_path):
    obj = of({"image": TEXT, "replicas": {"type": "integer", "default": 2}}, "image")
    schema = obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    [without] = crd_projects([copy.deepcopy(obj)])
    schema["properties"]["status"] = {"type": "object", "properties": {"readyReplicas": {"type": "integer"}}}
    [project] = crd_projects([obj])
    assert rendered(planned(project, tmp_path))["Deployment/zone-sample"]["spec"]["replicas"] == 2
    assert ([*without.status], [*project.status]) == ([], ["readyReplicas"])


@pytest.mark.parametrize("amount", [TEXT, {**TEXT, "pattern": "^[0-9]+Gi$"}])
@pytest.mark.parametrize("amounts", ["properties", "additionalProperties"])
def test_resources_that_may_be_any_text_are_left_out_of_a_deployment(amount, amounts, tmp_path):
    limits = {"type": "object", amounts: {"memory": amount} if amounts == "properties" else amount}
    resources = {"type": "object", "default": {}, "properties": {"limits": limits}}
    [project] = crd_projects([of({"image": TEXT, "resources": resources}, "image")])
    [container] = rendered(planned(project, tmp_path))["Deployment/zone-sample"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert ("resources" in container) == ("pattern" in amount)


@pytest.mark.parametrize("required", [True, False])
def test_a_cluster_scoped_kind_has_a_child_in_a_namespace(required, tmp_path):
    obj = definition({"properties": {"size": {"type": "integer", "default": 3}}}, scope="Cluster", required=required)
    [project] = crd_projects([obj])
    config = rendered(planned(project, tmp_path))["ConfigMap/zone-sample"]
    assert config["data"] == {"size": "3"}
    assert yaml.safe_load(project_files(project, {})["watches.yaml"])[0]["reach"] == "cluster"


def test_the_definition_is_copied_with_the_fields_of_the_status_that_ruleop_writes():
    obj = of({"title": TEXT}, "title", conversion={"strategy": "None"})
    server = {
        "uid": "u",
        "managedFields": [],
        "annotations": {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    [project] = crd_projects([{**obj, "metadata": {**obj["metadata"], **server}, "status": {"x": 1}}])
    copied = yaml.safe_load(project_files(project, {})["crds/zones.example.com.yaml"])
    version = copied["spec"]["versions"][0]
    assert [*version["schema"]["openAPIV3Schema"]["properties"].pop("status")["properties"]] == [
        "conditions",
        "observedGeneration",
    ]
    assert version.pop("subresources") == {"status": {}}
    assert copied == {**obj, "metadata": {"name": "zones.example.com", "annotations": {"a": "b"}}}
    assert any("New in the copy" in note and "status.conditions" in note for note in project.notes)


def test_conditions_that_the_status_has_stay_as_they_are():
    obj = of({"title": TEXT}, "title")
    conditions = {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    status = {"type": "object", "properties": {"conditions": conditions, "observedGeneration": {"type": "integer"}}}
    version = obj["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = status
    version["subresources"] = {"status": {}}
    [project] = crd_projects([copy.deepcopy(obj)])
    assert project.definition == obj
    assert not any("New in the copy" in note for note in project.notes)


def test_the_stored_version_is_watched(tmp_path):
    obj = of({"title": TEXT}, "title")
    versions = obj["spec"]["versions"]
    versions.insert(0, {**versions[0], "name": "v1beta1", "storage": False})
    [project] = crd_projects([obj])
    assert project.kind.version == "v1"
    assert any("custom resources of other versions (v1beta1)" in note for note in project.notes)
    planned(project, tmp_path)


def test_several_definitions_are_several_rules(tmp_path):
    second = of({"name": TEXT}, "name")
    second["spec"]["names"] = {"kind": "Area", "plural": "areas"}
    second["metadata"]["name"] = "areas.example.com"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "x"}}
    first, *more = crd_projects([of({"title": TEXT}), second, role])
    files = project_files(first, {}, more)
    assert [each["kind"] for each in yaml.safe_load(files["watches.yaml"])] == ["Zone", "Area"]
    assert {"tests/zone.test.yaml", "tests/area.test.yaml", "examples/area-sample.yaml"} <= set(files)
    assert any("ClusterRole/x was left out" in note for note in first.notes)


def test_kinds_of_one_name_in_two_groups_have_files_of_their_own(tmp_path):
    second = crd("Zone", "other.example.org", version("v1", fields(spec={"type": "object"})))
    first, *more = crd_projects([of({"title": TEXT}, "title"), second])
    files = project_files(first, {}, more)
    assert [each for each in files if each.startswith(("templates/", "examples/", "tests/"))] == [
        "templates/zone-example-com/config.yaml.j2",
        "examples/zone-example-com-sample.yaml",
        "tests/zone-example-com.test.yaml",
        "templates/zone-other-example-org/config.yaml.j2",
        "examples/zone-other-example-org-sample.yaml",
        "tests/zone-other-example-org.test.yaml",
    ]
    planned(first, tmp_path, more=more)


def test_no_rule_changes_the_kind_or_makes_an_invalid_name():
    schema = fields(spec={"type": "object"})
    rules = ["self.kind != 'Zone'", "self.metadata.name.startsWith('ends-with-')"]
    for rule in rules:
        schema["x-kubernetes-validations"] = [{"rule": rule}]
        [project] = crd_projects([crd("Zone", "example.com", version("v1", schema))])
        assert project.incomplete
        assert (project.samples[0]["kind"], project.samples[0]["metadata"]["name"]) == ("Zone", "zone-sample")


def test_a_definition_that_cannot_be_used_is_left_out_of_several(tmp_path):
    unserved = crd("Area", "example.com", {**version("v1", fields()), "served": False})
    [project] = crd_projects([unserved, of({"title": TEXT}, "title")])
    assert project.kind.kind == "Zone"
    assert project.notes[-1] == ("Left out: areas.example.com serves no version: a version needs `served: true`.")


# -- the status of another operator ------------------------------------------------------------------------------------


def with_status(status: dict[str, Any]) -> dict[str, Any]:
    obj = of({"title": TEXT}, "title")
    version = obj["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = {"type": "object", **status}
    version["subresources"] = {"status": {}}
    return obj


def conditions(**fields: Any) -> dict[str, Any]:
    properties = {"type": TEXT, "status": TEXT, "reason": TEXT, "message": TEXT, **fields}
    items = {"type": "object", "required": ["type", "status"], "properties": properties}
    return {"properties": {"conditions": {"type": "array", "items": items}, "observedGeneration": {"type": "integer"}}}


def test_fields_that_conditions_lack_are_new_in_the_copy(tmp_path):
    [project] = crd_projects([with_status(conditions())])
    assert any(
        "New in the copy" in note
        and "status.conditions[].lastTransitionTime, status.conditions[].observedGeneration" in note
        for note in project.notes
    )
    planned(project, tmp_path)


def test_types_of_conditions_that_the_definition_lists_stay(tmp_path):
    types = {"type": "string", "enum": ["Ready", "Deleted"]}
    [project] = crd_projects([with_status(conditions(type=types))])
    planned(project, tmp_path, {"status-room"})
    assert project.definition is not None
    [version] = project.definition["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert status["properties"]["conditions"]["items"]["properties"]["type"] == types


def test_a_status_that_is_a_map_of_strings_stays_one(tmp_path):
    [project] = crd_projects([with_status({"additionalProperties": TEXT})])
    assert not any("New in the copy" in note for note in project.notes)
    planned(project, tmp_path, {"status-room"})


def test_required_fields_of_the_status_have_placeholders(tmp_path):
    properties = {
        "assigned": {"type": "integer"},
        "phase": {"type": "string", "enum": ["New", "Old"]},
        "parents": {"type": "array", "items": TEXT},
        "mode": {"type": "string", "default": "a"},
        "more": TEXT,
    }
    required = ["assigned", "phase", "parents", "mode", "conditions"]
    [project] = crd_projects([with_status({"required": required, "properties": properties})])
    watch = yaml.safe_load(project_files(project, {})["watches.yaml"])[0]
    assert watch["status"] == {"assigned": 0, "phase": "New", "parents": []}
    assert any(
        "placeholders for what the CRD requires: status.assigned, status.phase, status.parents" in each
        for each in project.notes
    )
    planned(project, tmp_path)


# -- notes -------------------------------------------------------------------------------------------------------------


def test_notes_list_the_parts_of_the_schema_that_the_example_does_not_satisfy():
    unsatisfiable = {"type": "string", "pattern": "^a$", "minLength": 2}
    [project] = crd_projects([of({"x": unsatisfiable}, "x")])
    note = (
        "examples/zone-sample.incomplete has to be completed, then renamed to .yaml, and has no test until then: spec.x"
    )
    assert any(note in each for each in project.notes)


def test_a_rule_in_cel_that_no_example_satisfies_leaves_out_the_example_and_its_test(tmp_path):
    rule = {"type": "integer", "x-kubernetes-validations": [{"rule": "self * self == 1764"}]}
    [project] = crd_projects([of({"n": rule}, "n")])
    assert any(note.endswith("must satisfy the rule self * self == 1764.") for note in project.notes)
    assert planned(project, tmp_path, tested=False) == []
    assert (tmp_path / "examples/zone-sample.incomplete").exists()


def one_of(*names: str, most: int = 1) -> dict[str, Any]:
    """An object of which one of these fields has to be set."""
    rules = [{"rule": " || ".join(f"has(self.{name})" for name in names), "message": "one has to be set"}]
    for one, other in itertools.combinations(names, 2):
        rules.append({"rule": f"!(has(self.{one}) && has(self.{other}))"})
    inner = {"type": "object", "required": ["key"], "properties": {"key": TEXT}}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, inner),
        "x-kubernetes-validations": rules if most == 1 else rules[:1],
    }


NAMESPACED = {"type": "object", "properties": {"name": TEXT, "namespace": TEXT}}
MODES = {"type": {"type": "string", "enum": ["Static", "Dynamic"]}, "static": one_of("a", "b"), "dynamic": TEXT}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (one_of("a", "b"), {"a": {"key": "example"}}),
        ({**one_of("a"), "required": ["b"], "properties": {"a": one_of("c"), "b": one_of("d")}}, {"b": {"d": {"key": "example"}}, "a": {"c": {"key": "example"}}}),
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, "x-kubernetes-validations": [{"rule": "(has(self.a) && !has(self.b)) || (!has(self.a) && has(self.b))"}]}, {"a": "example"}),
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, "x-kubernetes-validations": [{"rule": "[has(self.a), has(self.b)].filter(x, x == true).size() == 1"}]}, {"a": "example"}),
        ({**NAMESPACED, "x-kubernetes-validations": [{"rule": "has(self.name) && has(self.__namespace__)"}]}, {"name": "example", "namespace": "example"}),
        ({"type": "object", "required": ["type"], "properties": MODES, "x-kubernetes-validations": [{"rule": "self.type != 'Static' || has(self.static)"}]}, {"type": "Static", "static": {"a": {"key": "example"}}}),
        ({"type": "object", "required": ["type", "dynamic"], "properties": MODES, "x-kubernetes-validations": [{"rule": "has(self.dynamic) == (self.type == 'Dynamic')"}]}, {"type": "Dynamic", "dynamic": "example"}),
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "object", "properties": {"b": TEXT}}}, "x-kubernetes-validations": [{"rule": "has(self.a.b)"}]}, {"a": {"b": "example"}}),
        ({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 100"}]}}}, {"n": 101}),
        ({"type": "object", "required": ["low", "high"], "properties": {"low": {"type": "integer", "minimum": 5}, "high": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.high > self.low"}]}, {"low": 5, "high": 6}),
        ({"type": "object", "required": ["s"], "properties": {"s": {"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('oci://')"}]}}}, {"s": "oci://"}),
        ({"type": "object", "required": ["s"], "properties": {"s": {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^[A-Z]{3}-[0-9]+$')"}]}}}, {"s": "AAA-1"}),
        ({"type": "object", "required": ["b"], "properties": {"b": {"type": "boolean"}}, "x-kubernetes-validations": [{"rule": "self.b"}]}, {"b": True}),
        ({"type": "object", "properties": {"l": {"type": "array", "items": TEXT}}, "required": ["l"], "x-kubernetes-validations": [{"rule": "size(self.l) > 0"}]}, {"l": ["example"]}),
        ({"type": "object", "properties": {"a": {"type": "array", "items": one_of("x")}, "b": {"type": "array", "items": TEXT}}, "x-kubernetes-validations": [{"rule": "size(self.a) != 0 || size(self.b) != 0"}]}, {"a": [{"x": {"key": "example"}}]}),
        ({"type": "object", "required": ["l"], "properties": {"l": {"type": "array", "minItems": 1, "items": one_of("a", "b"), "x-kubernetes-validations": [{"rule": "self.all(x, has(x.b))"}]}}}, {"l": [{"b": {"key": "example"}}]}),
    ],
    ids=lambda each: str(each)[:60],
)  # fmt: skip
def test_an_example_satisfies_rules_about_fields_that_belong_together(schema, expected, tmp_path):
    obj = definition(schema)
    [project] = crd_projects([obj])
    assert project.samples[0]["spec"] == expected
    assert not project.incomplete
    planned(project, tmp_path)


def test_the_name_of_the_only_object_of_a_kind_is_taken_from_its_rule(tmp_path):
    def only(kind: str, plural: str) -> dict[str, Any]:
        schema = fields(spec={"type": "object"})
        schema["x-kubernetes-validations"] = [{"rule": "self.metadata.name == 'cluster'"}]
        return crd(kind, "example.com", version("v1", schema), plural=plural)

    first, *more = crd_projects([only("Zone", "zones"), only("Area", "areas")])
    assert {"examples/cluster.yaml", "examples/area-cluster.yaml"} <= set(project_files(first, {}, more))
    planned(first, tmp_path, more=more)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([{"kind": "Zone", "metadata": {"name": "a"}}], "no CustomResourceDefinition among the objects \\(Zone\\): use --from-sample"),
        ([{**definition(), "apiVersion": "apiextensions.k8s.io/v1beta1"}], "v1beta1 was removed"),
        ([definition(), definition()], "appears twice"),
        ([definition(versions=[{"name": "v1", "served": False, "storage": True}])], "serves no version"),
        ([definition(versions=[])], "at least one version"),
        ([definition({"type": "object", "properties": {"a": "text"}})], r"spec\.properties\.a: must be a schema"),
    ],
)  # fmt: skip
def test_definitions_that_cannot_be_used_are_refused(objects, message):
    with pytest.raises(ScaffoldError, match=message):
        crd_projects(objects)


def test_a_definition_as_a_sample_is_refused():
    with pytest.raises(ScaffoldError, match=r"zones.example.com is a CustomResourceDefinition: use --from-crd"):
        sample_project([definition()])


# -- instances -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 3},
        {"type": "string", "pattern": "^(gold|silver)-[A-Z]{3}\\d+$"},
        {"type": "string", "pattern": "^([0-9]+(s|m|h))+$"},
        {"type": "string", "pattern": "^arn:aws:iam::\\d{12}:role/.+"},
        {"type": "string", "pattern": "^[^a-z]{4,}$"},
        {"type": "string", "pattern": "^a+$", "minLength": 30},
        {"type": "string", "pattern": "^\\w[\\s]x.$"},
        {"type": "string", "minLength": 100},
        {"type": "string", "maxLength": 2},
        *({"type": "string", "format": name} for name in ("date", "date-time", "ipv4", "ipv6", "cidr", "uuid", "byte", "email", "hostname", "uri", "duration", "mac")),
        {"type": "integer", "minimum": 2, "exclusiveMinimum": True, "multipleOf": 5},
        {"type": "integer", "maximum": -3},
        {"type": "number", "minimum": 0.5},
        {"type": "string", "nullable": True, "enum": [None, "b"]},
        {"type": "array", "minItems": 3, "x-kubernetes-list-type": "set", "items": {"type": "string", "enum": ["a", "b", "c"]}},
        {"type": "array", "minItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT}}},
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
        {"type": "object", "minProperties": 1, "properties": {"a": TEXT}},
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "allOf": [{"required": ["a"], "properties": {"a": {"minimum": 7}}}]},
        {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"},
        {"x-kubernetes-preserve-unknown-fields": True},
    ],
    ids=str,
)  # fmt: skip
def test_an_instance_satisfies_its_schema(schema):
    assert not validate_value(instance(schema), schema)


_PATTERNS = st.sampled_from(["^[a-z]+$", "^[0-9]{2,4}$", "^(a|b)c?$", "x", ".", "^[A-Z][a-z]*-[0-9a-f]+$"])
_LEAVES = st.one_of(
    st.fixed_dictionaries({"type": st.just("string"), "pattern": _PATTERNS}),
    st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 20)}),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-5, 5), "multipleOf": st.integers(1, 4)}),
    st.just({"type": "boolean"}),
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda each: {"type": "object", "properties": each, "required": [*each]}
        ),
        inner.map(lambda each: {"type": "array", "items": each, "minItems": 1}),
    ),
    max_leaves=6,
)


@given(_SCHEMAS)
def test_an_instance_satisfies_a_random_schema(schema):
    assert not validate_value(instance(schema), schema)
