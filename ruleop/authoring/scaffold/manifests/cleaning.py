"""Objects as their authors wrote them: without what the API server, controllers and tools have set.

Objects that are not part of an application are left out, each with a reason: those that other objects own, that every
cluster has, and that are cluster-scoped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.authoring.scaffold.yaml_layout import TreePath, value_at, walk, without
from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.builtin.completion import complete
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import SERVER_METADATA, Kind
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.authoring.offline import Document
    from ruleop.kubernetes.schema import Shape

_DROPPED_METADATA: Final = SERVER_METADATA | {"ownerReferences", "finalizers", "generateName", "namespace"}
_ANNOTATIONS: Final = re.compile(
    r"kubectl\.kubernetes\.io/.*|(deployment|pv|volume|volume\.beta|batch)\.kubernetes\.io/.*|(meta\.)?helm\.sh/.*"
    r"|(autoscaling|control-plane)\.alpha\.kubernetes\.io/.*|ruleop\.dev/.*|argocd\.argoproj\.io/.*|.*\.cattle\.io/.*"
)
_LABELS: Final = re.compile(
    r"ruleop\.dev/.*|pod-template-hash|controller-revision-hash|(batch\.kubernetes\.io/)?(controller-uid|job-name)"
    r"|statefulset\.kubernetes\.io/.*|apps\.kubernetes\.io/pod-index|helm\.sh/chart|app\.kubernetes\.io/managed-by"
)
_OF_CLUSTERS: Final = {
    **dict.fromkeys(("Event", "Endpoints", "EndpointSlice", "Lease", "ControllerRevision"), "made by controllers"),
    "Namespace": "a custom resource is in a namespace of its own choice",
    "CustomResourceDefinition": "install it with the operator",
}
_OF_HELM: Final = re.compile(r"meta\.helm\.sh/.*|helm\.sh/(?!hook).*")
_HOOK: Final = "helm.sh/hook"
_POLICY: Final = "helm.sh/resource-policy"
POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
"""A label that Services select one pod by."""
_UNNAMED: Final = frozenset({"template", "jobTemplate"})
"""Templates that make objects with other names than their own."""
_NEEDLESS: Final = frozenset({"resources", "strategy", "updateStrategy"})
"""Fields that are as good as missing where they are empty."""
_SECRET_TYPES: Final = frozenset({"kubernetes.io/service-account-token", "helm.sh/release.v1"})
_ASSIGNED: Final[Mapping[str, tuple[TreePath, ...]]] = {
    "Service": (*(("spec", name) for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort")),),
    "PersistentVolumeClaim": (("spec", "volumeName"),),
    "Pod": (("spec", "nodeName"),),
    "ServiceAccount": (("secrets",),),
}
"""Fields that the server assigns, by kind."""
_FILLED_IN: Final[Mapping[str, Mapping[TreePath, Any]]] = {
    "Secret": {("type",): "Opaque"},
    "Service": {
        ("spec", "internalTrafficPolicy"): "Cluster",
        ("spec", "externalTrafficPolicy"): "Cluster",
        ("spec", "allocateLoadBalancerNodePorts"): True,
    },
    "Job": {
        ("spec", "parallelism"): 1,
        ("spec", "completions"): 1,
        ("spec", "completionMode"): "NonIndexed",
        ("spec", "podReplacementPolicy"): "TerminatingOrFailed",
        ("spec", "suspend"): False,
        ("spec", "manualSelector"): False,
    },
}
"""Defaults that depend on more than the type of the field."""


class SecretRole(Enum):
    """The treatment of a Secret."""

    DATA = "its keys decide: passwords are generated, for other data users make a Secret"
    GIVEN = "users make it"
    FILE = "a ConfigMap with credentials: a template that reads them from the Secrets that users make"


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object of the application. The body has no namespace."""

    kind: Kind
    name: str
    namespace: str
    body: dict[str, Any]
    role: SecretRole = SecretRole.DATA
    document: Document | None = field(default=None, compare=False)
    stays: bool = False  # when its release is uninstalled

    def __str__(self) -> str:
        return f"{self.kind.kind}/{self.name}"

    def describe(self, path: TreePath) -> str:
        """The field, as a path: items of lists by their names."""
        text, value = "", self.body
        for part in path:
            value = value[part]  # type: ignore[index]
            if isinstance(part, int):
                name = value.get("name") if isinstance(value, dict) else None
                text += f"[name={name}]" if isinstance(name, str) else f"[{part}]"
            else:
                text += f".{part}" if re.fullmatch(r"[\w-]+", part) else f"[{part!r}]"
        return f"{self}:{text.lstrip('.')}"

    def place(self, path: TreePath, before: str = "") -> str:
        """The field, with its file and line if they are known. `before` is the text of the field before the place."""
        if self.document is None:
            return self.describe(path)
        site = self.document.site(_path_in(self.document.data, self.body, path))
        header = self.document.text.splitlines()[site.line - 1 : site.line]
        in_block = header and re.search(r"[|>][+-]?\d?\s*(#.*)?$", header[0])
        line = site.line + (1 + before.count("\n") if in_block else 0)
        return f"{site.path}:{line}: {self.describe(path)}"


def _path_in(document: Any, body: Any, path: TreePath) -> TreePath:
    """The path that a field has in the document, whose lists may have other items."""
    found: list[str | int] = []
    for part in path:
        body = body[part]
        key = part
        if isinstance(part, int) and isinstance(document, list):
            name = body.get("name") if isinstance(body, dict) else None
            named = [index for index, item in enumerate(document) if name and value_at(item, ("name",)) == name]
            key = named[0] if named else part
        elif part == "stringData" and isinstance(document, dict) and part not in document:
            key = "data"
        found.append(key)
        document = value_at(document, (key,))
    return tuple(found)


def clean(objects: Sequence[Mapping[str, Any]], documents: Sequence[Document] = ()) -> tuple[list[Manifest], list[str]]:
    """The objects of the application, and a note for each object that is not one."""
    kept, notes = [], _marks_of_helm(objects)
    for obj, document in zip_longest(objects, documents):
        manifest = replace(_manifest(obj), document=document)
        if reason := _reason_to_leave_out(manifest.kind, obj):
            notes.append(f"{manifest} was left out: {reason}.")
        else:
            kept.append(manifest)
    kept = _of_one_namespace(kept, notes)
    taken: dict[tuple[str, str, str], Manifest] = {}
    for manifest in kept:
        key = (*manifest.kind.versionless, manifest.name)
        if key in taken:
            raise ScaffoldError(f"{manifest} appears twice in the manifests")
        taken[key] = manifest
    if not taken:
        raise ScaffoldError("the manifests have no object that a rule could make: " + " ".join(notes))
    return list(taken.values()), notes


def _of_one_namespace(manifests: Sequence[Manifest], notes: list[str]) -> list[Manifest]:
    """The objects of the namespace that most of them are in, and those that name none."""
    counts = Counter(each.namespace for each in manifests if each.namespace).most_common(2)
    if len(counts) < 2:
        return list(manifests)
    (own, most), (other, next_most) = counts
    if most == next_most:
        raise ScaffoldError(f"the manifests are of several namespaces, half of them of {other}: use those of {own}")
    notes += [
        f"{each} was left out: it is in the namespace {each.namespace}, and the application in {own}."
        for each in manifests
        if each.namespace not in ("", own)
    ]
    return [each for each in manifests if each.namespace in ("", own)]


def _manifest(obj: Mapping[str, Any]) -> Manifest:
    kind = Kind.of(obj)
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(name, str) or not name:
        raise ScaffoldError(f"metadata.name of a {kind.kind} is missing or not a string")
    body = _without_server_fields(dict(obj))
    for path in _assigned(kind, body):
        body = without(body, path)
    if "uid" in metadata or "resourceVersion" in metadata:
        body = _without_defaults(body, kind)
    stays = value_at(metadata, ("annotations", _POLICY)) == "keep"
    return Manifest(kind, name, str(metadata.get("namespace") or ""), body, stays=stays)


def _marks_of_helm(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """A note on the labels and annotations that say that Helm made the objects, if they have any."""
    found = set()
    for obj in objects:
        for marks in ("labels", "annotations"):
            members = value_at(obj, ("metadata", marks))
            for key, value in members.items() if isinstance(members, dict) else ():
                if _OF_HELM.fullmatch(str(key)) or (key, value) == ("app.kubernetes.io/managed-by", "Helm"):
                    found.add(key)
    return [f"Labels and annotations of Helm were left out: {', '.join(sorted(found))}."] if found else []


def _reason_to_leave_out(kind: Kind, obj: Mapping[str, Any]) -> str:
    name, owners = obj["metadata"]["name"], obj["metadata"].get("ownerReferences") or []
    owner = next((each for each in owners if isinstance(each, Mapping) and each.get("controller")), None)
    if owner is not None:
        return f"{owner.get('kind')}/{owner.get('name')} makes it"
    hook = value_at(obj, ("metadata", "annotations", _HOOK))
    if isinstance(hook, str):
        return f"it is a test of the chart ({hook})" if "test" in hook else f"it is a hook of Helm ({hook})"
    if kind.kind in _OF_CLUSTERS:
        return _OF_CLUSTERS[kind.kind]
    if (kind.kind, name) in {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}:
        return "each namespace has it"
    if kind.kind == "Secret" and str(obj.get("type")) in _SECRET_TYPES:
        return "made by Kubernetes or Helm"
    resource = builtin_resource(kind)
    if resource is not None and not resource.namespaced:
        return "it is cluster-scoped, and shared by all custom resources"
    return ""


def _without_server_fields(obj: dict[str, Any]) -> dict[str, Any]:
    body = {name: _tidied(value) for name, value in obj.items() if name not in ("status", "metadata")}
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _DROPPED_METADATA}
    first = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": _tidied_metadata(metadata)}
    return {**first, **{name: value for name, value in body.items() if name not in first}}


def _tidied(value: Any, within: str = "") -> Any:
    """The value without server-set metadata of templates inside it, and without what kubectl writes for nothing."""
    if isinstance(value, list):
        return [_tidied(_with_name_first(item)) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, member in value.items():
        if name == "metadata" and isinstance(member, dict):
            dropped = _DROPPED_METADATA | ({"name"} if within in _UNNAMED else set())
            metadata = _tidied_metadata({key: each for key, each in member.items() if key not in dropped})
            if metadata:
                found[name] = metadata
        elif name in ("matchLabels", "selector") and _is_labels(member):
            found[name] = {key: each for key, each in member.items() if key == POD_NAME or not _LABELS.fullmatch(key)}
        elif not (name in _NEEDLESS and member == {}) and not (name == "status" and isinstance(member, dict)):
            found[name] = _tidied(member, name)
    return found


def _with_name_first(item: Any) -> Any:
    """An item of a list as people write it: with its name first, and then its image."""
    if not isinstance(item, dict):
        return item
    first = {name: item[name] for name in ("name", "image") if isinstance(item.get(name), str)}
    return {**first, **item}


def _tidied_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in metadata.items():
        pattern = {"labels": _LABELS, "annotations": _ANNOTATIONS}.get(name)
        if pattern is not None and isinstance(value, dict):
            value = {key: each for key, each in value.items() if not pattern.fullmatch(key)}  # noqa: PLW2901
            if not value:
                continue
        found[name] = value
    return found


def _is_labels(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _assigned(kind: Kind, body: dict[str, Any]) -> Iterator[TreePath]:
    """The paths of fields that the server assigned; later items of a list first."""
    yield from (path for path in _ASSIGNED.get(kind.kind, ()) if value_at(body, path) is not None)
    if kind.kind == "Service":
        if value_at(body, ("spec", "clusterIP")) not in (None, "None"):
            yield ("spec", "clusterIP")
        yield from (path for path, _ in walk(body) if path[-1:] == ("nodePort",))
    if kind.kind == "Job" and not value_at(body, ("spec", "manualSelector")) and value_at(body, ("spec", "selector")):
        yield ("spec", "selector")
    yield from reversed(
        [
            path
            for path, value in walk(body)
            if isinstance(value, dict)
            and str(value.get("name", "")).startswith("kube-api-access-")
            and path[-2:-1] in (("volumes",), ("volumeMounts",))
        ]
    )
    # An alias that the server writes beside serviceAccountName.
    yield from (
        (*path, "serviceAccount")
        for path, value in walk(body)
        if isinstance(value, dict) and value.get("serviceAccountName") == value.get("serviceAccount") is not None
    )


def _without_defaults(body: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The object without fields that the server would fill in again. Replicas stay: people look for them."""
    shape = typed_shape(kind)
    if shape is None:
        return body
    filled_in = _FILLED_IN.get(kind.kind, {})
    for path, value in list(walk(body)):
        if (path in filled_in and value == filled_in[path]) or (path[1:] and path[-1] == "metadata" and not value):
            body = without(body, path)
    whole = _completed(body, shape)
    if whole is None:
        return body
    for path, _ in reversed(list(walk(body))):
        if len(path) < 2 or path[0] in ("apiVersion", "kind", "metadata") or path[-1] == "replicas":
            continue
        if isinstance(path[-1], int) or "metadata" in path:
            continue
        smaller = without(body, path)
        if _completed(smaller, shape) == whole:
            body = smaller
    return body


def _completed(body: dict[str, Any], shape: Shape) -> dict[str, Any] | None:
    """The object as the server would store it; None without a field that it requires."""
    try:
        return complete(body, shape)
    except (KeyError, TypeError):
        return None
