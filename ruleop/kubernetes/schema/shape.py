"""The shape of a kind, by which its objects merge: which lists are sets, which are maps and by which keys, which maps
are atomic, and which defaults the server fills in; and the shapes of all kinds in the documents that an API server
publishes at /openapi/v3/...

Where nothing is declared, maps are granular and lists atomic, as the server treats a custom resource without
declarations. Merges do not read `name`, `required`, `enum` and `patch_*`, and the packaged table of the operator does
not have them: they are for checks, and for strategic merge patches (`ruleop.kubernetes.builtin.builtin_types`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ruleop.kubernetes.kinds import Kind, Object
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import JSON


FieldPath: TypeAlias = tuple[str | int, ...]
"""The keys and list indexes that lead to a value; () is the document itself."""

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Unique:
    """A field, beside the keys, in which no two items of a list may have the same value."""

    field: str
    within: tuple[str, ...] = ()  # only among items that have the same values here as well
    sharing: tuple[str, ...] = ()  # items that have the same values here may share it
    required: bool = False  # of two items, each needs a value: an item without one conflicts with every other


@dataclass(slots=True, eq=False)
class Shape:
    """One node of a kind's shape. Built once per kind and treated as frozen from then on. It may refer to itself
    (JSONSchemaProps does), so it cannot be a frozen dataclass, and compares by identity."""

    type: Literal["object", "list", "scalar", "any"] = "any"
    name: str = ""  # of the type, where it has one: io.k8s.api.core.v1.Container
    # of objects
    fields: Mapping[str, Shape] = field(default_factory=lambda: EMPTY)  # the declared properties
    values: Shape | None = None  # additionalProperties: an open map, such as labels
    preserve_unknown: bool = False
    atomic: bool = False  # x-kubernetes-map-type: atomic
    retain_keys: bool = False  # x-kubernetes-patch-strategy: retainKeys, members exclude each other (a volume's source)
    defaults: Mapping[str, Any] = field(
        default_factory=lambda: EMPTY
    )  # the value of a missing property: {"scope": "*"}
    required: tuple[str, ...] = ()  # the properties without which the server rejects the object
    derived: str = ""  # the key of the type in DERIVED, if it is there
    # of lists
    items: Shape | None = None
    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=lambda: EMPTY)  # {"protocol": "TCP"}
    unique: tuple[Unique, ...] = ()  # other fields that identify an item, most telling first
    # A strategic merge patch merges the list, by the field `patch_key` of its items or as a set where that is empty;
    # else it replaces the list. Ports are keyed by two fields and patched by one.
    patch_merge: bool = False
    patch_key: str = ""
    # of lists and open maps
    drops_empty: bool = (
        False  # empty and missing are the same: the server stores the kind in Go types that cannot differ
    )
    # of scalars
    scalar: Literal["", "string", "integer", "number", "boolean"] = (
        ""  # "" where several are allowed: a quantity, an int-or-string
    )
    enum: tuple[str, ...] = ()  # the only values that the server accepts; an optional field may be empty as well
    format: str = ""  # "quantity", "int-or-string", "date-time", "byte", "int32", "int64", "double", ""


UNKNOWN = Shape()


def shape_at(shape: Shape, path: FieldPath) -> Shape | None:
    """The shape of the value at a path; None where the kind has no such field or the shape is unknown."""
    current: Shape | None = shape
    for part in path:
        if isinstance(part, str):
            while current is not None and current.type == "list":
                current = current.items
        if current is None:
            return None
        current = current.items if isinstance(part, int) else current.fields.get(part, current.values)
    return current


# -- server defaults -------------------------------------------------------------------------------------------------
#
# Defaults of built-in kinds that the OpenAPI documents of the API server do not declare, by the names of its types.
#
# From the SetDefaults functions of k8s.io/kubernetes/pkg/apis and the types of k8s.io/api. Only defaults that matter to
# a merge are here:
#
# - those inside lists and maps that are replaced as a whole; elsewhere an additional live field is not a difference;
# - empty values that people write (`value: ""`, `hostNetwork: false`) and the server does not keep: the field is not a
#   pointer in Go, so an empty value and a missing one are the same. Where the field is a pointer (`privileged`,
#   `replicas`), they differ.


_CORE, _APPS, _RBAC, _DEVICES = (f"io.k8s.api.{group}.v1" for group in ("core", "apps", "rbac", "resource"))
_ADMISSION, _NETWORKING = "io.k8s.api.admissionregistration.v1", "io.k8s.api.networking.v1"
_READ_ONLY = {"readOnly": False}
_COUNT_ONE = {"allocationMode": "ExactCount", "count": 1}

SERVER_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    f"{_ADMISSION}.MatchResources": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}},
    f"{_ADMISSION}.NamedRuleWithOperations": {"scope": "*"},
    f"{_ADMISSION}.RuleWithOperations": {"scope": "*"},
    f"{_ADMISSION}.WebhookClientConfig": {"caBundle": ""},
    f"{_APPS}.DaemonSetSpec": {"minReadySeconds": 0},
    f"{_APPS}.DeploymentSpec": {"minReadySeconds": 0, "paused": False},
    f"{_APPS}.ReplicaSetSpec": {"minReadySeconds": 0},
    f"{_APPS}.StatefulSetSpec": {"minReadySeconds": 0},
    f"{_CORE}.Container": {"workingDir": "", "stdin": False, "stdinOnce": False, "tty": False},
    f"{_CORE}.ContainerPort": {"name": "", "hostPort": 0, "hostIP": ""},
    f"{_CORE}.EmptyDirVolumeSource": {"medium": ""},
    f"{_CORE}.EndpointPort": {"name": "", "protocol": "TCP"},
    f"{_CORE}.EnvFromSource": {"prefix": ""},
    f"{_CORE}.EnvVar": {"value": ""},
    f"{_CORE}.NFSVolumeSource": _READ_ONLY,
    f"{_CORE}.ObjectFieldSelector": {"apiVersion": "v1"},
    f"{_CORE}.PersistentVolumeClaim": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "status": {"phase": "Pending"},
    },
    f"{_CORE}.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem", "volumeName": ""},
    f"{_CORE}.PersistentVolumeClaimVolumeSource": _READ_ONLY,
    f"{_CORE}.PersistentVolumeSpec": {"storageClassName": ""},
    f"{_CORE}.PodSpec": {
        **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC"), False),
        **dict.fromkeys(("hostname", "nodeName", "priorityClassName", "serviceAccountName", "subdomain"), ""),
    },
    f"{_CORE}.Probe": {"initialDelaySeconds": 0},
    f"{_CORE}.ResourceFieldSelector": {"containerName": "", "divisor": "0"},
    f"{_CORE}.ServiceAccountTokenProjection": {"audience": "", "expirationSeconds": 3600},
    f"{_CORE}.ServicePort": {"name": "", "nodePort": 0},
    f"{_CORE}.ServiceSpec": {"externalName": "", "loadBalancerIP": "", "publishNotReadyAddresses": False},
    f"{_CORE}.Toleration": {"key": "", "value": "", "effect": ""},
    f"{_CORE}.VolumeMount": {**_READ_ONLY, "subPath": "", "subPathExpr": ""},
    f"{_DEVICES}.DeviceSubRequest": _COUNT_ONE,
    f"{_DEVICES}.ExactDeviceRequest": _COUNT_ONE,
    f"{_NETWORKING}.HTTPIngressPath": {"path": ""},
    f"{_NETWORKING}.IngressRule": {"host": ""},
    f"{_NETWORKING}.IngressTLS": {"secretName": ""},
    f"{_NETWORKING}.NetworkPolicyPort": {"protocol": "TCP"},
    f"{_RBAC}.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    f"{_RBAC}.Subject": {"apiGroup": "rbac.authorization.k8s.io", "namespace": ""},
    "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "io.k8s.api.discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "io.k8s.api.scheduling.v1.PriorityClass": {"description": "", "globalDefault": False},
}


# -- unique fields ---------------------------------------------------------------------------------------------------
#
# Fields that identify an item of a list beside its keys, by the names of the items' types.
#
# No OpenAPI document declares them; they are rules of the API server's validation, collected from
# k8s.io/kubernetes/pkg/apis (`field.Duplicate`, "must be unique") and of the allocation of node ports, for every list
# of a built-in kind that is merged by keys. The other lists have none: environment variables, volumes, containers and
# host aliases have no second field that must be unique, two mounts may share a volume, and lists without keys (Ingress
# rules, ports of NetworkPolicies and EndpointSlices, HPA metrics) are replaced as a whole.
#
# `tests/cluster/test_unique_fields.py` tests each entry against the API server.


UNIQUE: Mapping[str, tuple[Unique, ...]] = {
    # A Service's only port needs no name; of two ports both need one. 53/TCP and 53/UDP may have one node port.
    f"{_CORE}.ServicePort": (Unique("name", required=True), Unique("nodePort", sharing=("port",))),
    # Names are compared within one container only, host ports within the whole pod.
    f"{_CORE}.ContainerPort": (Unique("name"), Unique("hostPort", within=("protocol", "hostIP"))),
    f"{_CORE}.VolumeDevice": (Unique("name"),),
}


# -- shapes from OpenAPI documents -------------------------------------------------------------------------------------
#
# The rules are those by which the server itself builds its schemas for server-side apply (kube-openapi, schemaconv), so
# that both merges agree:
#
# - `x-kubernetes-list-type` and `-list-map-keys` define the type of a list; only where they are missing,
#   `x-kubernetes-patch-strategy: merge` does, as a map by its one patch-merge-key, or as a set without one. (Where both
#   are present, the patch extensions are wrong: ports are keyed by two fields.)
# - extensions are on the property, beside the `allOf` that refers to the type, and override those of the type itself: a
#   PersistentVolume's claimRef is granular although ObjectReference is atomic.
# - an object without declarations is free-form.
#
# A type is visited once and its shape shared by reference, which is also what lets JSONSchemaProps contain itself.


Schema: TypeAlias = Mapping[str, Any]
"""An OpenAPI v3 schema as plain JSON. Treated as frozen."""

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_KNOWN_BY_NAME: Mapping[str, Shape] = {
    # Published as `oneOf: [string, number]`; only the name shows that 1000m and 1 are the same.
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Shape(type="scalar", format="quantity"),
    # Any object at all, and the server replaces it as a whole.
    "io.k8s.apimachinery.pkg.runtime.RawExtension": Shape(type="object", preserve_unknown=True, atomic=True),
}

BUILTIN_PREFIXES = (
    "io.k8s.api.",
    "io.k8s.apimachinery.",
    "io.k8s.apiextensions-apiserver.",
    "io.k8s.kube-aggregator.",
)
"""Of the names of built-in types. The types of a CRD with a group such as myapp.k8s.io begin with io.k8s too."""


class OpenApi:
    """The shapes of one group version's document. Shapes are built on first use."""

    def __init__(self, document: Object) -> None:
        self._schemas: Mapping[str, Schema] = (document.get("components") or {}).get("schemas") or {}
        self._builder = ShapeBuilder(self._schemas)
        self._inlined_schemas: dict[str, Schema] = {}
        self._names = names_of_kinds(self._schemas)

    def shape(self, kind: Kind) -> Shape | None:
        """The kind's shape, the same object each time; None if the document does not know the kind."""
        name = self._names.get(kind)
        return self._builder.named(name) if name else None

    def schema(self, kind: Kind) -> Schema | None:
        """The kind's schema, the same object each time; None if the document does not know the kind. References are
        inlined, as in the schema of a CRD, except in its metadata."""
        name = self._names.get(kind)
        if name and name not in self._inlined_schemas:
            schema = self._schemas[name]
            metadata = (schema.get("properties") or {}).get("metadata")
            self._inlined_schemas[name] = self._inlined(schema, frozenset({name}), keep=metadata)
        return self._inlined_schemas[name] if name else None

    def _inlined(self, schema: Schema, within: frozenset[str], *, keep: Schema | None = None) -> Schema:
        name = reference(schema)
        if name in within or (name and name not in self._schemas):
            return {
                "x-kubernetes-preserve-unknown-fields": True
            }  # the type contains itself; no status is nested so deep
        if name:
            beside = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
            return {**self._inlined(self._schemas[name], within | {name}), **beside}
        return with_inner(schema, lambda inner: inner if inner is keep else self._inlined(inner, within))


class ShapeBuilder:
    """Turns schemas into shapes. `schemas` are the types that `$ref` may name; `known` are shapes that some of these
    names already have."""

    def __init__(self, schemas: Mapping[str, Schema], known: Mapping[str, Shape] | None = None) -> None:
        self._schemas = schemas
        self._known = {**_KNOWN_BY_NAME, **(known or {})}
        self._built: dict[tuple[str, str, bool], Shape] = {}
        self._is_builtin = False  # the schema being filled belongs to a built-in type

    def named(self, name: str) -> Shape:
        return self.of({"$ref": name})

    def of(self, schema: Schema, *, retain_keys: bool = False) -> Shape:
        """The shape of a schema. `retain_keys` is what a list declares for its items."""
        map_type = schema.get("x-kubernetes-map-type") or ""
        if schema.get("type") != "array":
            retain_keys = retain_keys or "retainKeys" in _patch_strategy(schema)
        name = reference(schema)
        if not name:
            shape = Shape()
            self._fill(shape, schema, map_type=map_type, retain_keys=retain_keys)
            return shape
        if name in self._known:
            return self._known[name]
        if name not in self._schemas:
            return UNKNOWN
        key = (name, map_type, retain_keys)
        if key not in self._built:
            started, outer = len(self._built), self._is_builtin
            try:
                self._built[key] = shape = Shape()  # registered before it is filled: a type may contain itself
                self._fill_type(shape, name, map_type=map_type, retain_keys=retain_keys)
                self._is_builtin = outer
            except BaseException:  # the pass was interrupted: nobody may find a part of a shape
                self._is_builtin = outer
                while len(self._built) > started:
                    self._built.popitem()
                raise
        return self._built[key]

    def _fill_type(self, shape: Shape, name: str, *, map_type: str, retain_keys: bool) -> None:
        target = self._schemas[name]
        self._is_builtin = name.startswith(BUILTIN_PREFIXES)
        map_type = map_type or target.get("x-kubernetes-map-type") or ""
        self._fill(shape, target, map_type=map_type, retain_keys=retain_keys)
        shape.name = name
        if name in OPTIONAL_FIELDS:
            shape.required = tuple(each for each in shape.required if each not in OPTIONAL_FIELDS[name])
        if name in SERVER_DEFAULTS:
            shape.defaults = {**shape.defaults, **SERVER_DEFAULTS[name]}
        if name in DERIVED:
            shape.derived = name

    def _fill(self, shape: Shape, schema: Schema, *, map_type: str, retain_keys: bool) -> None:
        declared = schema.get("type", "")
        preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            shape.type, shape.format = "scalar", "int-or-string"
        elif declared in ("string", "integer", "number", "boolean"):
            shape.type, shape.scalar, shape.format = "scalar", declared, schema.get("format", "")
            shape.enum = tuple(schema.get("enum") or ())
        elif declared == "array":
            self._fill_list(shape, schema)
        elif declared == "object" or "properties" in schema or "additionalProperties" in schema:
            shape.atomic, shape.retain_keys = map_type == "atomic", retain_keys
            self._fill_object(shape, schema)
        else:
            shape.preserve_unknown = preserve

    def _fill_object(self, shape: Shape, schema: Schema) -> None:
        shape.type = "object"
        fields = {name: self.of(property_schema) for name, property_schema in (schema.get("properties") or {}).items()}
        if schema.get("x-kubernetes-embedded-resource"):
            # The server adds these to the schema, whatever the author declared there.
            text = Shape(type="scalar", scalar="string")
            fields |= {"apiVersion": text, "kind": text, "metadata": self.named(OBJECT_META)}
        shape.fields = fields
        shape.defaults = self._defaults(schema) or EMPTY
        shape.required = tuple(schema.get("required") or ())
        others = schema.get("additionalProperties")
        shape.drops_empty = self._is_builtin and others is not None
        if isinstance(others, Mapping):
            shape.values = self.of(others)
        elif others is True:
            shape.values = UNKNOWN
        shape.preserve_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or (
            not fields and others is None
        )

    def _fill_list(self, shape: Shape, schema: Schema) -> None:
        shape.type = "list"
        shape.drops_empty = self._is_builtin
        strategy = _patch_strategy(schema)
        items = schema.get("items")
        item_schema: Schema = items if isinstance(items, Mapping) else {}
        shape.items = self.of(item_schema, retain_keys="retainKeys" in strategy)
        shape.patch_merge = "merge" in strategy
        shape.patch_key = schema.get("x-kubernetes-patch-merge-key") or ""
        list_type = schema.get("x-kubernetes-list-type")
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        if list_type is None and "merge" in strategy:
            merge_key = schema.get("x-kubernetes-patch-merge-key")
            list_type, keys = ("map", (merge_key,)) if merge_key else ("set", ())
        if list_type == "map" and keys:
            shape.list_type, shape.keys = "map", keys
            shape.key_defaults = self._key_defaults(item_schema, keys)
            shape.unique = UNIQUE.get(reference(item_schema), ())
        elif list_type == "set":
            shape.list_type = "set"

    def _key_defaults(self, item_schema: Schema, keys: tuple[str, ...]) -> Mapping[str, Any]:
        """The defaults of missing keys. The documents of the built-in kinds declare them all (protocol: TCP of a
        container's and a Service's port); where a key is optional and has no default, items without it differ by the
        other keys, as on the server."""
        declared = self._defaults(self._schemas.get(reference(item_schema), item_schema))
        return {key: declared[key] for key in keys if key in declared}

    def _defaults(self, schema: Schema) -> dict[str, Any]:
        """The defaults that the server fills in. In a built-in type, "" or 0 of a required field is not a default but
        Go's zero value, which the generator of the documents adds everywhere; in a CRD, the author has declared it."""
        zero = (schema.get("required") or ()) if self._is_builtin else ()
        declared = {
            name: property_schema.get("default") for name, property_schema in (schema.get("properties") or {}).items()
        }
        return {
            name: default for name, default in declared.items() if default is not None and (default or name not in zero)
        }


def names_of_kinds(schemas: Mapping[str, Schema]) -> dict[Kind, str]:
    """The names of the types that are kinds."""
    return {
        Kind(entry.get("group", ""), entry.get("version", ""), entry.get("kind", "")): name
        for name, schema in schemas.items()
        for entry in schema.get("x-kubernetes-group-version-kind") or ()
    }


def with_inner(schema: Schema, change: Callable[[Schema], Schema]) -> dict[str, Any]:
    """The schema with its properties, its items and its other members changed."""
    whole = dict(schema)
    if isinstance(properties := schema.get("properties"), Mapping):
        whole["properties"] = {name: change(each) for name, each in properties.items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(keyword), Mapping):
            whole[keyword] = change(inner)
    return whole


def reference(schema: Schema) -> str:
    """The name of the type that a schema refers to: directly, or through an `allOf` of one, which allows
    extensions beside it."""
    target = schema
    alternatives = schema.get("allOf")
    if isinstance(alternatives, list) and len(alternatives) == 1:
        target = alternatives[0]
    name: str = target.get("$ref") or ""
    return name.rpartition("/")[2]


def _patch_strategy(schema: Schema) -> list[str]:
    strategy: str = schema.get("x-kubernetes-patch-strategy") or ""
    return strategy.split(",")


# -- optional fields -------------------------------------------------------------------------------------------------
#
# Fields that the documents of the built-in kinds declare as required, and the server accepts when they are missing.
#
# The generator of the documents calls a field required if its Go type has no `omitempty`. The server does not read that
# declaration: a missing field is Go's zero value, which validation then rejects, in most types, or does not. Found by
# removing each required field from an object of each kind; `tests/cluster/test_typed_shapes.py` does the same. The
# status of a built-in kind is not here: almost none of its required fields is.


_STORAGE = "io.k8s.api.storage.v1"
_CRDS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_SPEC = frozenset({"spec"})

OPTIONAL_FIELDS: Mapping[str, frozenset[str]] = {
    "io.k8s.api.apps.v1.ControllerRevision": frozenset({"revision"}),
    "io.k8s.api.batch.v1.PodFailurePolicy": frozenset({"rules"}),
    f"{_CORE}.HTTPHeader": frozenset({"value"}),
    f"{_CORE}.ISCSIPersistentVolumeSource": frozenset({"lun"}),
    f"{_CORE}.ISCSIVolumeSource": frozenset({"lun"}),
    f"{_CORE}.LimitRangeSpec": frozenset({"limits"}),
    f"{_CORE}.PreferredSchedulingTerm": frozenset({"preference"}),
    f"{_CORE}.SleepAction": frozenset({"seconds"}),
    f"{_CORE}.Sysctl": frozenset({"value"}),
    f"{_DEVICES}.DeviceClass": _SPEC,
    f"{_DEVICES}.ResourceClaim": _SPEC,
    f"{_DEVICES}.ResourceClaimTemplate": _SPEC,
    f"{_DEVICES}.ResourceClaimTemplateSpec": _SPEC,
    f"{_STORAGE}.CSIDriver": _SPEC,
    f"{_STORAGE}.TokenRequest": frozenset({"audience"}),
    f"{_CRDS}.CustomResourceDefinitionVersion": frozenset({"served"}),
}


# -- derived fields --------------------------------------------------------------------------------------------------
#
# Fields that the API server fills in from other fields of the same object and then keeps.
#
# The server fills them in when they are missing, not when their source changes. So the value that it derived from an
# earlier source stays: a `serviceAccountName` cannot be removed beside the `serviceAccount` that was copied from it,
# and a NetworkPolicy whose egress rules are removed denies all egress, because of its `policyTypes`. A merge needs to
# know the value that the server would derive now (`ruleop.kubernetes.merge.server_changes`).
#
# The table is taken from the conversions and SetDefaults functions of k8s.io/kubernetes/pkg/apis and the strategies of
# pkg/registry. A field belongs here if its value depends on another field that may change. Defaults that depend on
# nothing are in SERVER_DEFAULTS. Not here:
#
# - fields that the server itself updates: a Service's node ports, traffic policies and addresses when its `type`
# changes, and its `sessionAffinityConfig`; the members of a Deployment's `strategy`, which exclude each other by the
# API's declaration; - fields that are immutable, like their source: a Job's `completions`; a kind's `singular` and
# `listKind`; a Pod's `requests` (from its limits), `hostPort` (from hostNetwork) and `imagePullPolicy`. Pod templates
# have no default for requests; - fields inside a list that is replaced as a whole, and so filled in again: the items of
# a LimitRange, an autoscaler's metrics.


ANYTHING: Final[Any] = object()
"""Only the server can compute the value."""


@dataclass(frozen=True, slots=True)
class Derived:
    """One field of a type. `value` computes it from the map that holds it and from the object of that type; None if the
    server leaves it out. `within` is the path from the type to that map; a list on the path stands for each of its
    items. `restored`: when an update removes the field, the server restores the old value."""

    field: str
    value: Callable[[Object, Object], JSON]
    within: tuple[str, ...] = ()
    restored: bool = False


def _copy_of(source: str) -> Callable[[Object, Object], JSON]:
    return lambda siblings, _: siblings.get(source) or None


def _pull_policy(image: str) -> Callable[[Object, Object], JSON]:
    """`Always` for the tag `latest`, which also stands for no tag and no digest."""

    def policy(siblings: Object, _: Object) -> JSON:
        named, digest = str(siblings.get(image) or "").partition("@")[::2]
        colon, tag = named.rpartition("/")[2].partition(":")[1:]
        return "Always" if tag == "latest" or not (colon or digest) else "IfNotPresent"

    return policy


def _host_port(port: Object, template: Object) -> JSON:
    return port.get("containerPort") if (template.get("spec") or {}).get("hostNetwork") else None


def _policy_types(spec: Object, _: Object) -> JSON:
    return ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _is_rolling_update(strategy: Object) -> bool:
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def _for_rolling_update(**defaults: JSON) -> Callable[[Object, Object], JSON]:
    return lambda strategy, _: defaults if _is_rolling_update(strategy) else None


def _family_policy(spec: Object, _: Object) -> JSON:
    if spec.get("type") == "ExternalName":
        return None
    return "RequireDualStack" if spec.get("clusterIP") == "None" and not spec.get("selector") else "SingleStack"


def _labels_of_template(spec: Object, _: Object) -> JSON:
    labels: JSON = spec
    for name in ("template", "metadata", "labels"):
        labels = labels.get(name) if type(labels) is dict else None
    return labels or None


_CONTAINERS = (("spec", "containers"), ("spec", "initContainers"))

DERIVED: Mapping[str, tuple[Derived, ...]] = {
    # serviceAccount is a deprecated alias. serviceAccountName wins over it, and is filled in from it.
    f"{_CORE}.PodSpec": (
        Derived("serviceAccount", _copy_of("serviceAccountName")),
        Derived("serviceAccountName", _copy_of("serviceAccount")),
    ),
    # Only in templates: of a Pod, the image may change and the pull policy may not.
    f"{_CORE}.PodTemplateSpec": (
        *(Derived("imagePullPolicy", _pull_policy("image"), path) for path in _CONTAINERS),
        # Servers before 1.28 filled in host ports in templates too, and these are still stored.
        *(Derived("hostPort", _host_port, (*path, "ports")) for path in _CONTAINERS),
    ),
    f"{_CORE}.ImageVolumeSource": (Derived("pullPolicy", _pull_policy("reference")),),
    # "Egress" without rules denies all egress; rules without "Egress" have no effect.
    "io.k8s.api.networking.v1.NetworkPolicySpec": (Derived("policyTypes", _policy_types),),
    # An older and a newer name, each filled in from the other. Both are immutable, but the server rejects only the
    # removal of both.
    f"{_CORE}.PersistentVolumeClaimSpec": (
        Derived("dataSource", _copy_of("dataSourceRef")),
        Derived("dataSourceRef", _copy_of("dataSource")),
    ),
    f"{_CORE}.ServiceSpec": (
        # The server releases an address only for `type: ExternalName`; else it restores both.
        Derived("clusterIPs", lambda spec, _: [spec["clusterIP"]] if spec.get("clusterIP") else None),
        # RequireDualStack for a headless Service without selector, also in a cluster with one family, which rejects it
        # beside a selector.
        Derived("ipFamilyPolicy", _family_policy, restored=True),
    ),
    # Beside `type: OnDelete`, rejected in a StatefulSet and without effect in a DaemonSet.
    "io.k8s.api.apps.v1.StatefulSetUpdateStrategy": (
        Derived("rollingUpdate", _for_rolling_update(partition=0, maxUnavailable=1)),
    ),
    "io.k8s.api.apps.v1.DaemonSetUpdateStrategy": (
        Derived("rollingUpdate", _for_rolling_update(maxUnavailable=1, maxSurge=0)),
        Derived("maxUnavailable", lambda _, strategy: int(_is_rolling_update(strategy)), ("rollingUpdate",)),
    ),
    # Rejected if it does not match the template's labels.
    f"{_CORE}.ReplicationControllerSpec": (Derived("selector", _labels_of_template),),
    # Aggregated by a controller; without the aggregation rule the permissions would stay.
    "io.k8s.api.rbac.v1.ClusterRole": (
        Derived("rules", lambda role, _: ANYTHING if role.get("aggregationRule") else None),
    ),
}
