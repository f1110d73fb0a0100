"""Facts of the packaged table about the built-in kinds. An error in any of them has damaged objects before."""

from __future__ import annotations

import importlib.resources

import pytest

from ruleop.kubernetes.builtin.table import (
    builtin_kinds,
    builtin_release,
    builtin_resource,
    builtin_shape,
    object_meta,
)
from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.kubernetes.schema.shape import Shape, Unique, shape_at

DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
POD = Kind("", "v1", "Pod")
SERVICE = Kind("", "v1", "Service")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
POD_SPEC = ("spec", "template", "spec")
CONTAINER = (*POD_SPEC, "containers")


def at(kind: Kind, *path: str) -> Shape:
    root = builtin_shape(kind)
    assert root is not None
    found = shape_at(root, path)
    assert found is not None, f"{kind} has no {'.'.join(path)}"
    return found


@pytest.mark.parametrize(
    ("kind", "path", "keys", "defaults"),
    [
        (DEPLOYMENT, (*CONTAINER, "ports"), ("containerPort", "protocol"), {"protocol": "TCP"}),
        (DEPLOYMENT, (*POD_SPEC, "initContainers", "ports"), ("containerPort", "protocol"), {"protocol": "TCP"}),
        (POD, ("spec", "ephemeralContainers", "ports"), ("containerPort", "protocol"), {"protocol": "TCP"}),
        (SERVICE, ("spec", "ports"), ("port", "protocol"), {"protocol": "TCP"}),
        (DEPLOYMENT, (*POD_SPEC, "topologySpreadConstraints"), ("topologyKey", "whenUnsatisfiable"), {}),
        (DEPLOYMENT, CONTAINER, ("name",), {}),
        (DEPLOYMENT, (*CONTAINER, "env"), ("name",), {}),
        (DEPLOYMENT, (*CONTAINER, "volumeMounts"), ("mountPath",), {}),
        (DEPLOYMENT, (*CONTAINER, "volumeDevices"), ("devicePath",), {}),
        (DEPLOYMENT, (*CONTAINER, "resources", "claims"), ("name",), {}),
        (DEPLOYMENT, (*POD_SPEC, "volumes"), ("name",), {}),
        (DEPLOYMENT, (*POD_SPEC, "hostAliases"), ("ip",), {}),
        (DEPLOYMENT, (*POD_SPEC, "imagePullSecrets"), ("name",), {"name": ""}),
        (DEPLOYMENT, ("metadata", "ownerReferences"), ("uid",), {}),
        (DEPLOYMENT, ("status", "conditions"), ("type",), {}),
        (Kind("", "v1", "ServiceAccount"), ("secrets",), ("name",), {}),
        (Kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), ("webhooks",), ("name",), {}),
        (
            Kind("resource.k8s.io", "v1", "ResourceClaim"),
            ("status", "devices"),
            ("driver", "device", "pool", "shareID"),
            {},
        ),
    ],
)
def test_keyed_lists_have_all_their_keys_and_key_defaults(
    kind: Kind, path: tuple[str, ...], keys: tuple[str, ...], defaults: dict[str, str]
):
    shape = at(kind, *path)
    assert (shape.type, shape.list_type, shape.keys, dict(shape.key_defaults)) == ("list", "map", keys, defaults)


@pytest.mark.parametrize(
    ("kind", "path", "unique"),
    [
        (SERVICE, ("spec", "ports"), (Unique("name", required=True), Unique("nodePort", sharing=("port",)))),
        (DEPLOYMENT, (*CONTAINER, "ports"), (Unique("name"), Unique("hostPort", within=("protocol", "hostIP")))),
        (
            STATEFUL_SET,
            (*POD_SPEC, "initContainers", "ports"),
            (Unique("name"), Unique("hostPort", within=("protocol", "hostIP"))),
        ),
        (DEPLOYMENT, (*CONTAINER, "volumeDevices"), (Unique("name"),)),
        (DEPLOYMENT, (*CONTAINER, "volumeMounts"), ()),
        (DEPLOYMENT, CONTAINER, ()),
    ],
)
def test_unique_fields_identify_an_item_beside_its_keys(kind: Kind, path: tuple[str, ...], unique: tuple[Unique, ...]):
    assert at(kind, *path).unique == unique


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (DEPLOYMENT, (*POD_SPEC, "tolerations")),
        (DEPLOYMENT, (*CONTAINER, "envFrom")),
        (DEPLOYMENT, (*CONTAINER, "command")),
        (DEPLOYMENT, (*CONTAINER, "args")),
        (DEPLOYMENT, (*CONTAINER, "securityContext", "capabilities", "drop")),
        (DEPLOYMENT, (*POD_SPEC, "readinessGates")),
        (DEPLOYMENT, (*POD_SPEC, "volumes", "projected", "sources")),
        (DEPLOYMENT, (*POD_SPEC, "volumes", "configMap", "items")),
        (STATEFUL_SET, ("spec", "volumeClaimTemplates")),
        (Kind("", "v1", "ServiceAccount"), ("imagePullSecrets",)),
        (INGRESS, ("spec", "rules")),
        (INGRESS, ("spec", "tls")),
        (INGRESS, ("spec", "rules", "http", "paths")),
        (Kind("networking.k8s.io", "v1", "NetworkPolicy"), ("spec", "ingress")),
        (Kind("networking.k8s.io", "v1", "NetworkPolicy"), ("spec", "policyTypes")),
        (Kind("autoscaling", "v2", "HorizontalPodAutoscaler"), ("spec", "metrics")),
        (Kind("rbac.authorization.k8s.io", "v1", "Role"), ("rules",)),
        (Kind("rbac.authorization.k8s.io", "v1", "Role"), ("rules", "verbs")),
        (Kind("rbac.authorization.k8s.io", "v1", "RoleBinding"), ("subjects",)),
        (Kind("discovery.k8s.io", "v1", "EndpointSlice"), ("endpoints",)),
        (Kind("", "v1", "PersistentVolumeClaim"), ("spec", "accessModes")),
        (SERVICE, ("spec", "externalIPs")),
        (Kind("batch", "v1", "Job"), ("status", "conditions")),
    ],
)
def test_atomic_lists_are_replaced_as_a_whole(kind: Kind, path: tuple[str, ...]):
    shape = at(kind, *path)
    assert (shape.type, shape.list_type, shape.keys) == ("list", "atomic", ())


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (POD, ("metadata", "finalizers")),
        (Kind("", "v1", "Node"), ("spec", "podCIDRs")),
        (Kind("storage.k8s.io", "v1", "CSIDriver"), ("spec", "volumeLifecycleModes")),
        (Kind("discovery.k8s.io", "v1", "EndpointSlice"), ("endpoints", "addresses")),
    ],
)
def test_set_lists_are_sets(kind: Kind, path: tuple[str, ...]):
    assert at(kind, *path).list_type == "set"


@pytest.mark.parametrize(
    ("kind", "path", "atomic"),
    [
        (DEPLOYMENT, ("spec", "selector"), True),
        (DEPLOYMENT, (*POD_SPEC, "nodeSelector"), True),
        (SERVICE, ("spec", "selector"), True),
        (DEPLOYMENT, (*CONTAINER, "env", "valueFrom", "secretKeyRef"), True),
        (DEPLOYMENT, (*POD_SPEC, "imagePullSecrets", "name"), False),
        (Kind("rbac.authorization.k8s.io", "v1", "RoleBinding"), ("roleRef",), True),
        (Kind("autoscaling", "v1", "HorizontalPodAutoscaler"), ("spec", "scaleTargetRef"), True),
        (Kind("autoscaling", "v2", "HorizontalPodAutoscaler"), ("spec", "scaleTargetRef"), False),
        (DEPLOYMENT, ("metadata", "labels"), False),
        (DEPLOYMENT, ("metadata", "annotations"), False),
        (Kind("", "v1", "ConfigMap"), ("data",), False),
        (Kind("", "v1", "PersistentVolume"), ("spec", "claimRef"), False),
        (Kind("", "v1", "Event"), ("involvedObject",), True),
    ],
)
def test_maps_are_atomic_or_granular(kind: Kind, path: tuple[str, ...], atomic: bool):
    assert at(kind, *path).atomic is atomic


def test_items_of_atomic_types_are_atomic_inside_a_mergeable_list():
    assert at(DEPLOYMENT, *POD_SPEC, "imagePullSecrets").items.atomic
    assert at(DEPLOYMENT, "metadata", "ownerReferences").items.atomic


def test_a_union_of_volume_sources_or_strategies_retains_one_member():
    volumes = at(DEPLOYMENT, *POD_SPEC, "volumes")
    assert volumes.items.retain_keys
    assert not volumes.retain_keys
    assert at(DEPLOYMENT, *POD_SPEC, "resourceClaims").items.retain_keys
    assert at(DEPLOYMENT, "spec", "strategy").retain_keys
    assert not at(STATEFUL_SET, "spec", "updateStrategy").retain_keys
    assert not at(DEPLOYMENT, *CONTAINER).items.retain_keys


@pytest.mark.parametrize(
    ("kind", "path", "spelling"),
    [
        (DEPLOYMENT, (*CONTAINER, "resources", "limits", "cpu"), "quantity"),
        (DEPLOYMENT, (*CONTAINER, "resources", "requests", "anything/else"), "quantity"),
        (DEPLOYMENT, (*POD_SPEC, "volumes", "emptyDir", "sizeLimit"), "quantity"),
        (Kind("", "v1", "ResourceQuota"), ("spec", "hard", "pods"), "quantity"),
        (SERVICE, ("spec", "ports", "targetPort"), "int-or-string"),
        (DEPLOYMENT, ("spec", "strategy", "rollingUpdate", "maxSurge"), "int-or-string"),
        (Kind("policy", "v1", "PodDisruptionBudget"), ("spec", "minAvailable"), "int-or-string"),
        (DEPLOYMENT, ("metadata", "creationTimestamp"), "date-time"),
        (Kind("coordination.k8s.io", "v1", "Lease"), ("spec", "renewTime"), "date-time"),
        (Kind("", "v1", "Secret"), ("data", "any"), "byte"),
        (Kind("", "v1", "Secret"), ("stringData", "any"), ""),
        (DEPLOYMENT, ("spec", "replicas"), "int32"),
        (DEPLOYMENT, ("metadata", "generation"), "int64"),
    ],
)
def test_quantities_and_other_normalised_scalars_have_a_format(kind: Kind, path: tuple[str, ...], spelling: str):
    shape = at(kind, *path)
    assert (shape.type, shape.format) == ("scalar", spelling)


def test_scalars_have_a_type_unless_several_are_allowed():
    assert at(DEPLOYMENT, "spec", "replicas").scalar == "integer"
    assert at(DEPLOYMENT, "spec", "paused").scalar == "boolean"
    assert at(DEPLOYMENT, "metadata", "name").scalar == "string"
    assert at(SERVICE, "spec", "ports", "targetPort").scalar == ""
    assert at(DEPLOYMENT, *CONTAINER, "resources", "limits", "cpu").scalar == ""


def test_a_recursive_schema_is_one_shape():
    schema = at(
        Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "spec", "versions", "schema", "openAPIV3Schema"
    )
    assert schema.fields["properties"].values is schema
    assert schema.fields["not"] is schema
    assert schema.fields["allOf"].items is schema


def test_free_form_fields_preserve_unknown_fields():
    assert at(Kind("apps", "v1", "ControllerRevision"), "data").preserve_unknown
    assert at(DEPLOYMENT, "metadata", "managedFields", "fieldsV1").preserve_unknown
    assert not at(DEPLOYMENT, "spec").preserve_unknown


def test_equal_shapes_share_their_memory():
    assert at(DEPLOYMENT, *POD_SPEC) is at(Kind("batch", "v1", "Job"), *POD_SPEC)
    assert at(DEPLOYMENT, *POD_SPEC) is at(POD, "spec")
    assert object_meta() is at(INGRESS, "metadata")
    assert builtin_shape(DEPLOYMENT) is builtin_shape(DEPLOYMENT)


def test_every_builtin_kind_has_its_names_and_a_shape():
    kinds = builtin_kinds()
    assert len(kinds) == len(set(kinds)) >= 68
    for kind in kinds:
        resource = builtin_resource(kind)
        assert resource is not None
        assert resource.kind == kind
        assert resource.plural
        shape = builtin_shape(kind)
        assert shape is not None
        assert shape.type == "object"
        assert {"apiVersion", "kind"} <= set(shape.fields), kind


@pytest.mark.parametrize(
    ("kind", "plural", "namespaced", "status"),
    [
        (DEPLOYMENT, "deployments", True, True),
        (POD, "pods", True, True),
        (Kind("", "v1", "ConfigMap"), "configmaps", True, False),
        (Kind("", "v1", "Secret"), "secrets", True, False),
        (Kind("", "v1", "Endpoints"), "endpoints", True, False),
        (Kind("", "v1", "Namespace"), "namespaces", False, True),
        (INGRESS, "ingresses", True, True),
        (Kind("networking.k8s.io", "v1", "NetworkPolicy"), "networkpolicies", True, False),
        (Kind("storage.k8s.io", "v1", "StorageClass"), "storageclasses", False, False),
        (Kind("rbac.authorization.k8s.io", "v1", "ClusterRole"), "clusterroles", False, False),
        (Kind("apiregistration.k8s.io", "v1", "APIService"), "apiservices", False, True),
    ],
)
def test_a_builtin_kind_has_its_plural_scope_and_status_subresource(
    kind: Kind, plural: str, namespaced: bool, status: bool
):
    resource = builtin_resource(kind)
    assert resource is not None
    assert (resource.plural, resource.namespaced, resource.status_subresource) == (plural, namespaced, status)


def test_a_group_kind_resolves_to_the_preferred_version():
    resource = builtin_resource(GroupKind("autoscaling", "HorizontalPodAutoscaler"))
    assert resource is not None
    assert resource.kind.version == "v2"
    assert builtin_resource(Kind("autoscaling", "v1", "HorizontalPodAutoscaler")) is not None


@pytest.mark.parametrize(
    "name", ["DeploymentList", "DeleteOptions", "WatchEvent", "Scale", "Eviction", "Status", "APIGroup"]
)
def test_lists_options_and_subresources_are_not_kinds_of_objects(name: str):
    assert name not in {kind.kind for kind in builtin_kinds()}


def test_an_unknown_kind_has_no_shape_and_no_resource():
    assert builtin_shape(Kind("example.com", "v1", "App")) is None
    assert builtin_resource(Kind("apps", "v1beta1", "Deployment")) is None
    assert builtin_resource(GroupKind("example.com", "App")) is None


def test_the_builtin_table_names_its_kubernetes_release():
    assert builtin_release() == "1.36"


def test_the_builtin_table_is_small_and_readable_in_a_diff():
    data = importlib.resources.files("ruleop.kubernetes.builtin").joinpath("builtin.json").read_bytes()
    assert len(data) < 200_000
    assert max(len(line) for line in data.splitlines()) < 2_000
