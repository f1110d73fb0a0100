"""Files that offline commands use instead of a cluster: objects with their places, the kinds that it would serve, and
objects as it would store them.

A template has to see the same custom resource offline as in a cluster. So a CR from a file is treated as by the API
server: unknown fields are dropped, defaults filled in, the result validated, and metadata added. The output is
deterministic; the current time is not used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RuleError, Site
from ruleop.kubernetes.builtin.table import builtin_resource, builtin_shape, object_meta
from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from ruleop.kubernetes.crd import default, definition_of, prune, schema_at, unknown_fields
from ruleop.kubernetes.kinds import SERVER_METADATA, Kind, Object, ObjectKey
from ruleop.kubernetes.merge import encode_string_data
from ruleop.kubernetes.names import (
    KEY_IN_WORDS,
    LABEL_IN_WORDS,
    VALUE_IN_WORDS,
    is_label,
    is_label_key,
    is_label_value,
    is_object_name,
    name_in_words,
)
from ruleop.kubernetes.schema import UNKNOWN, SchemaFinding, unknown_to_shape, validate
from ruleop.language.secrets.secret_values import SECRET
from ruleop.language.templates.resource_reader import read_resources
from ruleop.nearest import did_you_mean
from ruleop.planning.model.observed import KindInfo, Kinds, Served
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.crd import CrdVersion, CustomResourceDefinition
    from ruleop.kubernetes.schema import FieldPath, Schema
    from ruleop.language.rules import Observe, Project
    from ruleop.language.templates import YamlNode


# -- files -------------------------------------------------------------------------------------------------------------
# The objects in a file of YAML or JSON, with the line and column of each value for error messages.

SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file."""

    data: dict[str, Any]
    node: YamlNode
    text: str  # of the whole file

    def site(self, path: FieldPath) -> Site:
        """The place of a field, or of the nearest parent that exists."""
        node, site = self.node, self.node.site
        for part in path:
            value = node.value
            if isinstance(part, str) and isinstance(value, dict) and part in value:
                node, site = value[part], node.key_sites[part]
            elif isinstance(part, int) and isinstance(value, list) and part < len(value):
                node, site = value[part], value[part].site
            else:
                break
        return site


def documents_in(text: str, name: str) -> tuple[list[Document], list[RuleError]]:
    """The objects of a file, and the mistakes in it. A `kind: List` is split into its items."""
    found: list[Document] = []
    nodes, mistakes = read_resources(text, name)
    for node in nodes:
        try:
            found.extend(_objects(node, text))
        except RuleError as error:
            mistakes.append(error)
    return found, mistakes


def _objects(node: YamlNode, text: str) -> Iterator[Document]:
    members = node.value
    if not isinstance(members, dict):
        raise RuleError("not an object: expected a mapping with apiVersion, kind and metadata", node.site)
    if "plans" in members and "apiVersion" not in members:
        yield from _planned(members["plans"], text)
        return
    for name in ("apiVersion", "kind"):
        value = members[name].value if name in members else None
        if not isinstance(value, str) or not value:
            raise RuleError(f"{name} is missing or not a string", members[name].site if name in members else node.site)
    items = members["items"].value if "items" in members else None
    if str(members["kind"].value).endswith("List") and isinstance(items, list):
        for item in items:
            yield from _objects(item, text)
        return
    _require_metadata(members)
    yield Document(node.data(), node, text)


def _require_metadata(members: dict[str, YamlNode]) -> None:
    """Raises RuleError if something that identifies an object has another form. What is missing is reported later."""
    metadata = members.get("metadata")
    if metadata is None or metadata.value is None:
        return
    if not isinstance(metadata.value, dict):
        raise RuleError("metadata must be a mapping", metadata.site)
    for name in ("name", "namespace"):
        found = metadata.value.get(name)
        if found is not None and not isinstance(found.value, str | None):
            hint = "" if isinstance(found.value, dict | list) else ": put it in quotes"
            raise RuleError(f"metadata.{name} must be a string{hint}", found.site)
    for name in ("labels", "annotations"):
        found = metadata.value.get(name)
        if found is not None and not isinstance(found.value, dict | None):
            raise RuleError(f"metadata.{name} must be a mapping", found.site)
    owners = metadata.value.get("ownerReferences")
    if owners is not None and owners.value is not None:
        items = owners.value if isinstance(owners.value, list) else [owners]
        if not all(isinstance(item.value, dict) for item in items):
            raise RuleError("metadata.ownerReferences must be a list of mappings", owners.site)


def _planned(plans: YamlNode, text: str) -> Iterator[Document]:
    """The objects that a `ruleop plan -o json` would create, so that the next plan can start from there."""
    for plan in plans.value if isinstance(plans.value, list) else ():
        actions = plan.value.get("actions") if isinstance(plan.value, dict) else None
        for action in actions.value if actions is not None and isinstance(actions.value, list) else ():
            if isinstance(action.value, dict) and "object" in action.value:
                yield from _objects(action.value["object"], text)


# -- objects as a cluster would store them -----------------------------------------------------------------------------

NAMESPACE = "default"
"""The namespace of objects that name none, as with kubectl."""

EPOCH = "1970-01-01T00:00:00Z"
_TEXTS = ("labels", "annotations")
_EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [])  # not stored in metadata


class OfflineKinds:
    """The kinds of a cluster with the built-in kinds of Kubernetes and the definitions of the project.

    Other kinds are assumed to be served and namespaced, because offline nothing is known about them. With `served`,
    only the other kinds listed there are served.
    """

    def __init__(self, project: Project, served: Collection[Kind] | None = None) -> None:
        self._crds = {(crd.group, crd.kind): crd for crd in project.crds}
        self._served = served
        self._infos: dict[Kind, KindInfo] = {}

    def info(self, kind: Kind) -> KindInfo:
        found = self._infos.get(kind)
        if found is None:
            found = self._infos[kind] = self._look_up(kind)
        return found

    def state_of(self, observe: Observe) -> Served:
        return self.info(observe.kind).state

    def _look_up(self, kind: Kind) -> KindInfo:
        crd = self._crds.get((kind.group, kind.kind))
        if crd is not None:
            return _defined(kind, crd)
        builtin = builtin_resource(kind)
        if builtin is not None:
            shape = builtin_shape(kind) or UNKNOWN
            return KindInfo(
                kind,
                builtin.namespaced,
                shape=shape,
                status_subresource=builtin.status_subresource,
                resource=builtin.title,
            )
        sibling = builtin_resource(kind.versionless)  # a version that other releases of Kubernetes may have
        served = self._served is None or kind in self._served
        return KindInfo(
            kind,
            sibling.namespaced if sibling is not None else True,
            Served.SYNCED if served else Served.UNSERVED,
            known=False,
            served=served,
            resource=sibling.title if sibling is not None else "",
        )


def _defined(kind: Kind, crd: CustomResourceDefinition) -> KindInfo:
    version = crd.version(kind.version)
    if version is None or not version.served:
        return KindInfo(kind, crd.namespaced, Served.UNSERVED, served=False, resource=crd.name)
    return KindInfo(
        kind,
        crd.namespaced,
        shape=crd.shape(version.name) or UNKNOWN,
        status_schema=version.schema,
        status_subresource=version.status_subresource,
        resource=crd.name,
    )


def prepare(
    project: Project, resource: Object, before: Object | None = None, *, now: str = EPOCH
) -> tuple[dict[str, Any], list[SchemaFinding]]:
    """The custom resource as the API server would store it, and why it would reject it (`dropped` has lost fields).
    `before` is the custom resource that it updates. `now`: when it was created, if it does not say that. It is in the
    version in which the rules read it, as conversions change nothing else.

    If there are findings, the returned resource is only good for reports.
    """
    kind = Kind.of(resource)
    if findings := list(malformed(resource)):
        return dict(resource), findings
    kept = dict(resource)
    version = _version(project, kind)
    if version is not None:
        kept = default(prune(resource, version.schema), version.schema)
        findings = rejections(kept, version.schema, before)
        read = watched_kind(project, kind) or kind
        if read != kind and (version := _version(project, read)) is not None:
            kept = default(prune({**kept, "apiVersion": read.api_version}, version.schema), version.schema)
    stored = _as_stored(kept, namespaced=_is_namespaced(project, kind), now=now)
    stored["metadata"].setdefault("generation", 1)
    return stored, findings


def watched_kind(project: Project, kind: Kind) -> Kind | None:
    """The kind in the version in which the rules read it: its own, or that of a rule if the CRD serves both. None if no
    rule watches it."""
    watched = [rule.kind for rule in project.rules if rule.kind.versionless == kind.versionless]
    if not watched or kind in watched:
        return kind if watched else None
    version = _version(project, kind)
    return watched[0] if version is not None and version.served else None


def with_defaults(project: Project, resource: Object) -> Object:
    """The custom resource of a cluster as it is read once the cluster has the project's CRD."""
    version = _version(project, Kind.of(resource))
    return default(resource, version.schema) if version is not None else resource


def rejections(obj: Object, schema: Schema, before: Object | None = None) -> list[SchemaFinding]:
    """The reasons to reject a custom resource that is pruned and defaulted: those of its schema, or else of its
    rules."""
    found = validate(obj, schema)
    if found:
        return found
    broken = cel_rules(schema).broken(obj, None if before is None else default(prune(before, schema), schema))
    return [each.finding for each in broken if each.verdict is not RuleVerdict.NOT_EVALUATED]


def undecided(project: Project, resource: Object) -> list[SchemaFinding]:
    """The CEL rules that cannot be evaluated for the values of a prepared custom resource, though for others."""
    version = _version(project, Kind.of(resource))
    if version is None or validate(resource, version.schema):
        return []
    found = cel_rules(version.schema).broken(resource)
    return [
        each.finding for each in found if each.verdict is RuleVerdict.NOT_EVALUATED and each.rule.program is not None
    ]


def unevaluated(crd: CustomResourceDefinition) -> str:
    """The CEL rules of a CRD that are not evaluated offline; "" if all are."""
    found = {
        (each.path, each.rule): each for version in crd.versions for each in cel_rules(version.schema).not_evaluated
    }
    if not found:
        return ""
    reasons = "; ".join(dict.fromkeys(f"{each.rule}: {each.problem}" for each in found.values()))
    count = f"1 CEL rule of {crd.kind} is" if len(found) == 1 else f"{len(found)} CEL rules of {crd.kind} are"
    return f"{count} not evaluated: {reasons}"


def dropped(project: Project, resource: Object) -> list[SchemaFinding]:
    """The fields of a custom resource that the API server would silently drop: usually misspelt ones."""
    version = _version(project, Kind.of(resource))
    findings = unknown_metadata(resource)
    if version is None:
        return findings
    for path in unknown_fields(resource, version.schema):
        around = schema_at(version.schema, path[:-1]) or {}
        known: Mapping[str, Any] = around.get("properties") or {}
        meant = did_you_mean(str(path[-1]), known)
        kind = Kind.of(resource).kind
        findings.append(SchemaFinding(path, f"is not in {kind}'s schema, and the API server drops it{meant}"))
    return findings


def unknown_metadata(resource: Object) -> list[SchemaFinding]:
    """The fields of its metadata that no object has."""
    found = unknown_to_shape(resource.get("metadata") or {}, object_meta())
    return [SchemaFinding(("metadata", *each.path), each.message) for each in found]


def named_like(resource: Object, live: Iterable[Object], kinds: Kinds) -> Object | None:
    """The object among the live ones that a custom resource of a file would update."""
    if not isinstance(resource.get("metadata"), Mapping):
        return None
    own = _key(resource, kinds)
    return next((obj for obj in live if ObjectKey.of(obj) == own), None)


def _key(resource: Object, kinds: Kinds) -> ObjectKey:
    return ObjectKey.of(_as_stored(resource, namespaced=kinds.info(Kind.of(resource)).namespaced))


def identified(resource: Object, live: Iterable[Object], kinds: Kinds) -> Object:
    """The custom resource of a file with the uid, status and metadata of the same resource among the live objects.

    If it is not among them, it gets the uid that they name in their ownerReferences, so that they are its children.
    """
    metadata = resource.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("uid"):
        return resource
    if (obj := named_like(resource, live, kinds)) is not None:
        stored = obj["metadata"]
        changed = resource.get("spec") != obj.get("spec")
        generation = stored.get("generation", 1) + (1 if changed else 0)
        kept = {name: value for name, value in stored.items() if name in SERVER_METADATA or name == "finalizers"}
        status = {"status": obj["status"]} if "status" in obj and "status" not in resource else {}
        return {**resource, **status, "metadata": {**kept, **metadata, "generation": generation}}
    own = _key(resource, kinds)
    for obj in live:
        for reference in obj["metadata"].get("ownerReferences") or ():
            owner = Kind.parse(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
            named = ObjectKey(owner.group, owner.kind, own.namespace, str(reference.get("name", "")))
            same_namespace = own.namespace in {"", obj["metadata"].get("namespace", "")}
            if reference.get("controller") and named == own and same_namespace:
                return {**resource, "metadata": {**metadata, "uid": reference.get("uid")}}
    return resource


def as_live(objects: Iterable[Object], kinds: Kinds, now: str = EPOCH) -> list[dict[str, Any]]:
    """Objects as a cluster stores them: missing uids, also of owners, versions, times and namespaces are filled in, and
    `stringData` of Secrets is encoded.

    A generation is not filled in. With one, a status without observedGeneration, as in most files, would count as old.
    """

    def uid(owner: ObjectKey, kind: Kind) -> str:
        namespace = owner.namespace if kinds.info(kind).namespaced else ""
        metadata = {"name": owner.name, "namespace": namespace}
        return uid_of({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})

    stored = (
        _as_stored(stored_secret(obj), namespaced=kinds.info(Kind.of(obj)).namespaced, now=now) for obj in objects
    )
    return [with_owner_uids(obj, uid) for obj in stored]


def with_owner_uids(obj: Object, uid: Callable[[ObjectKey, Kind], str]) -> dict[str, Any]:
    """The object with the uids that its ownerReferences lack. The owner is in its namespace, or in none."""
    metadata, found = obj.get("metadata") or {}, []
    for each in metadata.get("ownerReferences") or ():
        if isinstance(each, Mapping) and not each.get("uid"):
            kind = Kind.parse(str(each.get("apiVersion", "")), str(each.get("kind", "")))
            owner = ObjectKey(kind.group, kind.kind, metadata.get("namespace") or "", str(each.get("name", "")))
            each = {**each, "uid": uid(owner, kind)}  # noqa: PLW2901
        found.append(each)
    return {**obj, "metadata": {**metadata, "ownerReferences": found}} if found else dict(obj)


def stored_secret(obj: Object) -> Object:
    """The object as the API server stores it: a Secret has no stringData."""
    return encode_string_data(obj) if "stringData" in obj and Kind.of(obj).versionless == SECRET else obj


def _is_namespaced(project: Project, kind: Kind) -> bool:
    crd = definition_of(kind, project.crds)
    return crd.namespaced if crd is not None else OfflineKinds(project).info(kind).namespaced


def _version(project: Project, kind: Kind) -> CrdVersion | None:
    crd = definition_of(kind, project.crds)
    return crd.version(kind.version) if crd is not None else None


def malformed(resource: Object) -> Iterator[SchemaFinding]:
    """The mistakes in a custom resource that its schema does not cover, such as those in the metadata."""
    metadata = resource.get("metadata")
    if not isinstance(metadata, Mapping):
        yield SchemaFinding(("metadata",), "is required, and must be an object with a name")
        return
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        yield SchemaFinding(("metadata", "name"), "is required, and must be a string")
    elif not is_object_name(kind := Kind.of(resource).versionless, name):
        yield SchemaFinding(("metadata", "name"), f"{name!r} is not valid: a name has {name_in_words(kind)}")
    namespace = metadata.get("namespace")
    if namespace is not None and not isinstance(namespace, str):
        yield SchemaFinding(("metadata", "namespace"), "must be a string")
    elif namespace and not is_label(namespace):
        yield SchemaFinding(("metadata", "namespace"), f"{namespace!r} is not a valid namespace: {LABEL_IN_WORDS}")
    for field in _TEXTS:
        entries = metadata.get(field)
        if entries is not None and not isinstance(entries, Mapping):
            yield SchemaFinding(("metadata", field), "must be an object")
            continue
        for key, value in (entries or {}).items():
            if not is_label_key(key if field == "labels" else key.lower()):
                yield SchemaFinding(("metadata", field, key), f"the key is not valid: use {KEY_IN_WORDS}")
            if not isinstance(value, str):
                yield SchemaFinding(("metadata", field, key), "must be a string: put it in quotes")
            elif field == "labels" and not is_label_value(value):
                yield SchemaFinding(("metadata", field, key), f"{value!r} is not valid: use {VALUE_IN_WORDS}")
    for part in ("spec", "status"):
        if resource.get(part) is not None and not isinstance(resource[part], Mapping):
            yield SchemaFinding((part,), "must be an object")


def _as_stored(obj: Object, *, namespaced: bool, now: str = EPOCH) -> dict[str, Any]:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if value not in _EMPTY}
    if not namespaced:
        metadata.pop("namespace", None)
    if namespaced and not metadata.get("namespace"):
        metadata["namespace"] = NAMESPACE
    whole = {**obj, "metadata": metadata}
    metadata.setdefault("uid", uid_of(whole))
    metadata.setdefault("resourceVersion", "1")
    metadata.setdefault("creationTimestamp", now)
    return whole


def uid_of(obj: Object) -> str:
    """A uid derived from the object's identity: the same in each run, and different for each object."""
    digest = hashlib.sha256("/".join(ObjectKey.of(obj)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"
