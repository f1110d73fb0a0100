"""A project from samples loads without a warning, plans its samples, and keeps what they say."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from ruleop.authoring.scaffold.from_sample import empty_project, sample_project
from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.authoring.scaffold.new_project import project_files
from ruleop.authoring.scaffold.yaml_layout import walk
from ruleop.kubernetes.kinds import Kind
from tests.authoring.scaffold.projects import planned, rendered
from tests.authoring.scaffold.test_inference import SPECS
from tests.exploration import examples


def cr(spec: Any, name: str = "shop", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": name, **metadata}, "spec": spec}


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(SPECS.filter(lambda spec: all(abs(each) < 2**63 for _, each in walk(spec) if isinstance(each, int))))
def test_a_project_from_a_random_sample_is_one_without_mistakes(spec):
    with tempfile.TemporaryDirectory() as folder:
        planned(sample_project([cr(spec)]), Path(folder))


@pytest.mark.parametrize("kind", ["App", "Policy", "Mesh", "S3Bucket"])
def test_a_project_from_names_is_a_web_server(tmp_path, kind):
    objects = rendered(planned(empty_project(Kind("example.com", "v1", kind)), tmp_path))
    assert [name.partition("/")[0] for name in objects] == ["Deployment", "Service"]


def test_an_image_becomes_a_deployment_with_what_is_beside_it(tmp_path):
    spec = {"title": "x", "web": {"image": "nginx:1", "replicas": 3, "port": 8080, "resources": {"limits": {"cpu": 1}}}}
    objects = rendered(planned(sample_project([cr(spec)]), tmp_path))
    pod = objects["Deployment/shop"]["spec"]["template"]["spec"]["containers"][0]
    assert objects["Deployment/shop"]["spec"]["replicas"] == 3
    assert (pod["image"], pod["ports"][0]["containerPort"], pod["resources"]) == (
        "nginx:1",
        8080,
        {"limits": {"cpu": 1}},
    )
    assert objects["Service/shop"]["spec"]["ports"][0]["port"] == 8080


@pytest.mark.parametrize("image", ["", " nginx"])
def test_a_text_that_can_be_no_image_is_a_field_like_others(tmp_path, image):
    objects = rendered(planned(sample_project([cr({"name": {"image": image}})]), tmp_path))
    assert [*objects] == ["ConfigMap/shop-config"]


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": -1},
        {"replicas": 2**31},
        {"resources": {"limits": {"cpu": "much"}}},
        {"resources": {"limits": []}},
        {"resources": {"memory": "1Gi"}},
        {"resources": {"requests": {"memory": -1}}},
    ],
)
def test_fields_that_a_deployment_would_not_take_are_left_out_of_it(tmp_path, spec):
    made = rendered(planned(sample_project([cr({"image": "nginx", **spec})]), tmp_path))["Deployment/shop"]["spec"]
    assert "replicas" not in made
    assert "resources" not in made["template"]["spec"]["containers"][0]


def test_without_an_image_the_fields_are_in_a_config_map(tmp_path):
    spec = {"title": "yes", "size": 2, "on": True, "hosts": ["a"], "a/b": "not a key"}
    objects = rendered(planned(sample_project([cr({key: spec[key] for key in spec if key != "a/b"})]), tmp_path))
    assert objects["ConfigMap/shop-config"]["data"] == {"title": "yes", "size": "2", "on": "true", "hosts": '["a"]'}


def test_each_sample_is_an_example_without_what_the_server_set(tmp_path):
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "red"}
    live = cr({"x": 1}, uid="u", resourceVersion="1", annotations=annotations, namespace="prod") | {"status": {"y": 2}}
    project = sample_project([live, cr({"x": 2, "y": "a"}, "other")])
    assert len(planned(project, tmp_path)) == 2
    files = project_files(project, {})
    assert "uid" not in files["examples/shop.yaml"]
    assert "last-applied" not in files["examples/shop.yaml"]
    assert "team: red" in files["examples/shop.yaml"]
    assert "status" not in files["examples/shop.yaml"]
    assert any("status of the sample was left out" in note for note in project.notes)


def test_a_sample_of_a_protected_group_declares_that_it_is_unapproved(tmp_path):
    planned(sample_project([{**cr({"x": 1}), "apiVersion": "apps.k8s.io/v1"}]), tmp_path)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([cr({}), {**cr({}), "kind": "Blog"}], "the samples are of several kinds"),
        ([cr({}), cr({})], "two samples have the same metadata.name"),
        ([{**cr({}), "apiVersion": "v1"}], "is not a group of custom resources"),
        ([{**cr({}), "apiVersion": "example.com/1.2"}], "is not a version"),
        ([{**cr({}), "kind": "shop"}], "is not a kind"),
        ([cr({}, "Shop.1")], "is not a name that children can be made of"),
        ([{**cr({}), "data": {}, "kinds": []}], r"the Shop has fields beside spec \(data, kinds\)"),
        ([cr("text")], "the sample Shop/shop is not valid: spec: must be an object"),
        ([cr(0)], "the sample Shop/shop is not valid: spec: must be an object"),
        ([cr({}, namespace="{{ a }}")], "is not valid: metadata.namespace: '{{ a }}' is not a valid namespace"),
        ([cr({}, labels={"a b": "c"})], r"is not valid: metadata.labels\['a b'\]: the key is not valid"),
        ([cr({}, annotations="text")], "is not valid: metadata.annotations: must be an object"),
        ([cr({}, label={"a": "b"})], r"is not valid: metadata.label: is an unknown field \(did you mean labels\?\)"),
    ],
)
def test_samples_that_cannot_be_used_are_refused_with_what_to_change(objects, message):
    with pytest.raises(ScaffoldError, match=message):
        sample_project(objects)


@pytest.mark.parametrize("annotations", [None, {}], ids=repr)
def test_empty_annotations_are_left_out(annotations):
    assert project_files(sample_project([cr({"x": 1}, annotations=annotations)]), {})
