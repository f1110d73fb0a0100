"""The cluster of the offline commands."""

from __future__ import annotations

import pytest

from ruleop.authoring.offline import OfflineKinds, as_live, dropped, identified, prepare
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.language.rules import Project
from ruleop.language.rules.checking import build_project
from ruleop.planning import FixedObjects, Observed, Served, State, choose_rule, plan
from tests.definitions import definition

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  children:
    web:
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ metadata.name }}"}, data: {page: "{{ spec.page }}"}}
- group: example.com
  version: v1
  kind: Zone
"""

PORT = "{type: object, required: [name], properties: {name: {type: string}, port: {type: integer, default: 80}}}"
PORTS = f"{{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {PORT}}}"
SPEC = f"{{type: object, required: [page], properties: {{page: {{type: string}}, ports: {PORTS}}}}}"
UNSERVED = "    - {name: v2, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n"
CRDS = definition("Site", spec=SPEC, more=UNSERVED) + "---\n" + definition("Zone", scope="Cluster", subresource=False)

SITE = Kind("example.com", "v1", "Site")


@pytest.fixture(scope="module")
def project() -> Project:
    return build_project({"watches.yaml": WATCHES, "crds/all.yaml": CRDS}, root=".", environ={})


def site(**spec: object) -> dict[str, object]:
    return {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "blog"}, "spec": {"page": "x", **spec}}


# -- kinds -------------------------------------------------------------------------------------------------------------


def test_a_kind_of_a_project_crd_is_served(project: Project) -> None:
    info = OfflineKinds(project).info(SITE)
    assert (info.namespaced, info.state, info.known, info.status_subresource) == (True, Served.SYNCED, True, True)
    assert info.shape.fields["spec"].fields["ports"].keys == ("name",)
    assert info.status_schema is not None
    zone = OfflineKinds(project).info(Kind("example.com", "v1", "Zone"))
    assert (zone.namespaced, zone.status_subresource) == (False, False)


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_crd_version_that_is_missing_or_not_served_is_unserved(project: Project, version: str) -> None:
    assert OfflineKinds(project).info(Kind("example.com", version, "Site")).state is Served.UNSERVED


def test_builtin_kinds_are_known(project: Project) -> None:
    kinds = OfflineKinds(project)
    deployment = kinds.info(Kind("apps", "v1", "Deployment"))
    assert (deployment.namespaced, deployment.state, deployment.known) == (True, Served.SYNCED, True)
    assert deployment.shape is not UNKNOWN
    assert not kinds.info(Kind("", "v1", "Namespace")).namespaced


def test_other_kinds_are_assumed_to_be_served_and_namespaced(project: Project) -> None:
    info = OfflineKinds(project).info(Kind("cert-manager.io", "v1", "Certificate"))
    assert (info.namespaced, info.state, info.shape, info.known) == (True, Served.SYNCED, UNKNOWN, False)


def test_another_version_of_a_built_in_kind_has_the_same_scope(project: Project) -> None:
    info = OfflineKinds(project).info(Kind("rbac.authorization.k8s.io", "v1beta1", "ClusterRole"))
    assert (info.namespaced, info.known) == (False, False)


def test_other_served_kinds_can_be_listed(project: Project) -> None:
    certificate, mesh = Kind("cert-manager.io", "v1", "Certificate"), Kind("mesh.io", "v1", "Mesh")
    kinds = OfflineKinds(project, served=[certificate])
    assert kinds.info(certificate).state is Served.SYNCED
    assert kinds.info(mesh).state is Served.UNSERVED
    assert kinds.info(SITE).state is Served.SYNCED
    assert OfflineKinds(project, served=[]).info(Kind("apps", "v1", "Deployment")).state is Served.SYNCED


# -- custom resources --------------------------------------------------------------------------------------------------


def test_a_resource_is_pruned_defaulted_and_gets_server_metadata(project: Project) -> None:
    resource, findings = prepare(project, site(ports=[{"name": "a", "colour": "red"}], other=1))
    assert findings == []
    assert resource["spec"] == {"page": "x", "ports": [{"name": "a", "port": 80}]}
    assert resource["metadata"] == {
        "name": "blog",
        "namespace": "default",
        "uid": resource["metadata"]["uid"],
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "1970-01-01T00:00:00Z",
    }


def test_empty_metadata_is_not_stored(project: Project) -> None:
    resource = site()
    empty = {"labels": {}, "annotations": {}, "finalizers": [], "generateName": ""}
    stored, _ = prepare(project, {**resource, "metadata": {**resource["metadata"], **empty}})
    assert stored == prepare(project, resource)[0]


def test_the_given_resource_is_not_modified(project: Project) -> None:
    given = site(other=1)
    prepare(project, given)
    assert given == site(other=1)


def test_server_metadata_in_the_file_is_kept(project: Project) -> None:
    given = site()
    given["metadata"] = {"name": "blog", "namespace": "web", "uid": "u", "generation": 4, "resourceVersion": "77"}
    resource, _ = prepare(project, given)
    assert resource["metadata"] == {**given["metadata"], "creationTimestamp": "1970-01-01T00:00:00Z"}  # type: ignore[dict-item]


def test_generated_uids_are_stable_and_differ_between_objects(project: Project) -> None:
    def uid(name: str, namespace: str) -> str:
        resource, _ = prepare(project, {**site(), "metadata": {"name": name, "namespace": namespace}})
        return str(resource["metadata"]["uid"])

    assert uid("a", "n") == uid("a", "n")
    assert len({uid("a", "n"), uid("b", "n"), uid("a", "m")}) == 3


def test_a_cluster_scoped_resource_has_no_namespace(project: Project) -> None:
    resource, findings = prepare(
        project, {"apiVersion": "example.com/v1", "kind": "Zone", "metadata": {"name": "eu", "namespace": "x"}}
    )
    assert findings == []
    assert "namespace" not in resource["metadata"]


def test_invalid_fields_are_found_with_their_path(project: Project) -> None:
    _, findings = prepare(project, site(page=3, ports=[{"port": 1}]))
    assert [finding.location for finding in findings] == ["spec.page", "spec.ports[0].name"]


def test_dropped_fields_are_reported_with_a_suggestion(project: Project) -> None:
    assert [str(finding) for finding in dropped(project, site(pags="x", ports=[{"name": "a", "prot": 1}]))] == [
        "spec.pags: is not in Site's schema, and the API server drops it (did you mean page?)",
        "spec.ports[0].prot: is not in Site's schema, and the API server drops it (did you mean port?)",
    ]
    assert dropped(project, {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}) == []


def test_unknown_fields_of_metadata_are_reported(project: Project) -> None:
    obj = {"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "a", "lables": {"a": "b"}}}
    assert [str(finding) for finding in dropped(project, obj)] == [
        "metadata.lables: is an unknown field (did you mean labels?)"
    ]


@pytest.mark.parametrize(
    ("metadata", "location"),
    [
        (None, "metadata"),
        ({}, "metadata.name"),
        ({"name": 3}, "metadata.name"),
        ({"name": "Big"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "a", "namespace": 1}, "metadata.namespace"),
        ({"name": "a", "namespace": "a/b"}, "metadata.namespace"),
        ({"name": "a", "labels": []}, "metadata.labels"),
        ({"name": "a", "labels": {"a b": "c"}}, "metadata.labels['a b']"),
        ({"name": "a", "labels": {"a": "b c"}}, "metadata.labels.a"),
        ({"name": "a", "annotations": {"a b": "c"}}, "metadata.annotations['a b']"),
        ({"name": "a", "annotations": {"x/y": True}}, "metadata.annotations['x/y']"),
    ],
)
def test_metadata_is_checked_whatever_the_kind(project: Project, metadata: object, location: str) -> None:
    for api_version, kind in (("example.com/v1", "Site"), ("v1", "ConfigMap")):
        _, findings = prepare(project, {"apiVersion": api_version, "kind": kind, "metadata": metadata})
        assert [finding.location for finding in findings] == [location]


# -- live objects ------------------------------------------------------------------------------------------------------


def test_objects_from_files_get_server_metadata(project: Project) -> None:
    kinds = OfflineKinds(project)
    first, space = as_live(
        [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "uid": "u"}},
        ],
        kinds,
    )
    assert first["metadata"]["namespace"] == "default"
    assert first["metadata"]["resourceVersion"] == "1"
    assert first["metadata"]["uid"]
    assert space["metadata"]["uid"] == "u"
    assert "namespace" not in space["metadata"]


def test_a_status_without_a_generation_counts_as_current(project: Project) -> None:
    (obj,) = as_live(
        [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": {"replicas": 1}}],
        OfflineKinds(project),
    )
    assert "generation" not in obj["metadata"]


def test_a_resource_gets_the_uid_and_status_of_the_live_one(project: Project) -> None:
    kinds = OfflineKinds(project)
    theirs = {
        **site(page="old"),
        "metadata": {"name": "blog", "uid": "u", "generation": 4, "finalizers": ["f"]},
        "status": {"a": 1},
    }
    (live,) = as_live([theirs], kinds)
    found = identified(site(page="new"), [live], kinds)
    assert (found["metadata"]["uid"], found["metadata"]["generation"], found["metadata"]["finalizers"]) == (
        "u",
        5,
        ["f"],
    )
    assert (found["spec"], found["status"]) == ({"page": "new"}, {"a": 1})
    assert identified(site(page="old"), [live], kinds)["metadata"]["generation"] == 4


def test_a_resource_without_uid_gets_the_uid_of_its_childrens_owner(project: Project) -> None:
    kinds = OfflineKinds(project)
    reference = {"apiVersion": "example.com/v1", "kind": "Site", "name": "blog", "uid": "u-9", "controller": True}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "blog", "ownerReferences": [reference]}}
    elsewhere = {**child, "metadata": {**child["metadata"], "namespace": "other"}}  # type: ignore[dict-item]
    stranger = {**child, "metadata": {"name": "x", "ownerReferences": [{**reference, "name": "shop"}]}}
    assert identified(site(), as_live([stranger, child], kinds), kinds)["metadata"]["uid"] == "u-9"
    assert "uid" not in identified(site(), as_live([stranger, elsewhere], kinds), kinds)["metadata"]


def test_a_uid_in_the_file_is_kept(project: Project) -> None:
    kinds = OfflineKinds(project)
    given = {**site(), "metadata": {"name": "blog", "uid": "mine"}}
    (live,) = as_live([{**site(), "metadata": {"name": "blog", "uid": "other"}}], kinds)
    assert identified(given, [live], kinds) is given


def test_a_whole_pass_offline_settles_after_one_plan(project: Project) -> None:
    """A plan is quiet after its created objects are added to the live objects."""
    kinds = OfflineKinds(project)
    resource, _ = prepare(project, site())
    rule = choose_rule(project.rules, resource)
    assert rule is not None
    first = plan(rule, resource, Observed(FixedObjects(), kinds))
    made = as_live([action.object for action in first.actions], kinds)  # type: ignore[union-attr]
    assert len(made) == 1
    second = plan(rule, resource, Observed(FixedObjects(made), kinds))
    assert second.actions == ()
    assert [child.state for child in second.children] == [State.READY]


def test_a_secret_of_a_file_has_its_text_as_data(project: Project) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "abc"}}
    (live,) = as_live([secret], OfflineKinds(project))
    assert (live["data"], "stringData" in live) == ({"password": "YWJj"}, False)
