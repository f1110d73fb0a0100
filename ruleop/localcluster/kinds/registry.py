"""The resources that are served: those of the built-in kinds, and those of the CustomResourceDefinitions."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.builtin.builtin_types import Subresource, served_resources, typed_shape
from ruleop.kubernetes.crd import crd_shape, default, parse_crd, prune
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema import EMPTY, UNKNOWN, SchemaError
from ruleop.kubernetes.validation import find_validator
from ruleop.localcluster.kinds.builtin_kinds import STRATEGIES, from_core, to_core
from ruleop.localcluster.kinds.served import NO_SCALE, PLAIN, VERBS, Alias, Scale, ServedKind, priority
from ruleop.localcluster.object_store import CRDS, EVENTS, Resource
from ruleop.localcluster.tables import custom_printer, printer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.crd import CrdVersion, CustomResourceDefinition
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Store, StoreEvent


REVIEWS: Final = frozenset(
    {
        "TokenReview",
        "SelfSubjectReview",
        "SubjectAccessReview",
        "SelfSubjectAccessReview",
        "LocalSubjectAccessReview",
        "SelfSubjectRulesReview",
    }
)
"""Kinds that are asked, not stored."""

_NOT_SERVED: Final = frozenset(
    {("v1", "Binding"), ("v1", "ComponentStatus"), ("autoscaling/v1", "HorizontalPodAutoscaler")}
)
_NOT_ANSWERED: Final = frozenset({"approval", "ephemeralcontainers", "eviction", "resize"})
_EVENTS: Final = Alias(EVENTS, to_core, from_core)
_DEPRECATIONS: Final = {
    ("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


@cache
def builtin_group_versions() -> tuple[tuple[str, str], ...]:
    """In the order in which discovery names them."""
    return tuple(dict.fromkeys((each.kind.group, each.kind.version) for each in _builtin()))


@cache
def is_builtin_group(group: str) -> bool:
    return any(group == each for each, _ in builtin_group_versions())


class Registry:
    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self._custom: dict[Resource, tuple[ServedKind, ...]] = {}
        self._stored: dict[Resource, ServedKind | None] = {}  # by `of`
        self._versions: dict[tuple[str, str], list[ServedKind]] = {}  # by `in_group_version`
        for served in _builtin():
            self._by_path[served.kind.group, served.kind.version, served.plural] = served

    def get(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_path.get((group, version, plural))

    def of(self, resource: Resource) -> ServedKind | None:
        """The resource in the version in which its objects are stored."""
        if resource not in self._stored:
            found = [each for each in self.all() if each.resource == resource and each.stored_as is None]
            stored = (each for each in found if each.kind.version == each.storage_version)
            self._stored[resource] = next(stored, found[0] if found else None)
        return self._stored[resource]

    def of_kind(self, kind: Kind) -> ServedKind | None:
        return next((each for each in self.in_group_version(kind.group, kind.version) if each.kind == kind), None)

    def all(self) -> Iterator[ServedKind]:
        return iter(tuple(self._by_path.values()))

    def group_versions(self) -> list[tuple[str, str]]:
        """The served group versions: the built-in ones, and those of custom kinds. Of a group, the preferred version
        is the first."""
        custom = {(each.kind.group, each.kind.version) for versions in self._custom.values() for each in versions}
        builtin = builtin_group_versions()
        others = custom.difference(builtin)
        first: dict[str, str] = {}  # the real server sorts groups by the names of their APIServices, such as v1.group
        for group, version in sorted(others, key=lambda each: each[1]):
            first.setdefault(group, f"{version}.{group}")
        return [*builtin, *sorted(others, key=lambda each: (first[each[0]], priority(each[1])))]

    def in_group_version(self, group: str, version: str) -> list[ServedKind]:
        if (group, version) not in self._versions:
            found = [each for each in self.all() if (each.kind.group, each.kind.version) == (group, version)]
            self._versions[group, version] = found
        return self._versions[group, version]

    def serve(self, resource: Resource, versions: Iterable[ServedKind]) -> None:
        """Serves the versions of a custom resource, instead of those that were served so far."""
        self.stop_serving(resource)
        self._custom[resource] = tuple(versions)
        for each in self._custom[resource]:
            self._by_path[each.kind.group, each.kind.version, each.plural] = each
        self._stored.clear()
        self._versions.clear()

    def stop_serving(self, resource: Resource) -> None:
        self._stored.clear()
        self._versions.clear()
        for each in self._custom.pop(resource, ()):
            del self._by_path[each.kind.group, each.kind.version, each.plural]


@cache
def _builtin() -> tuple[ServedKind, ...]:
    """The built-in resources, which all registries share."""
    return tuple(_served_builtin())


def _served_builtin() -> Iterator[ServedKind]:
    for resource in served_resources():
        kind = resource.kind
        if (kind.api_version, kind.kind) in _NOT_SERVED:
            continue
        scales = kind.group == "apps" and resource.subresource("scale") is not None
        subresources = tuple(
            each
            for each in resource.subresources
            if each.name not in _NOT_ANSWERED and (scales or each.name != "scale")
        )
        yield ServedKind(
            kind=kind,
            plural=resource.plural,
            singular=resource.singular,
            namespaced=resource.namespaced,
            short_names=resource.short_names,
            categories=resource.categories,
            status_subresource=resource.status_subresource,
            scale=Scale() if scales else NO_SCALE,
            subresources=subresources,
            verbs=tuple(sorted(resource.verbs)),
            returns_deleted=resource.returns_deleted,
            shape=typed_shape(kind) or UNKNOWN,
            printer=printer_of(kind),
            strategy=STRATEGIES.get((kind.group, kind.kind), PLAIN),
            validator=find_validator(kind.group, kind.kind),
            list_kind=f"{kind.kind}List",
            storage_version=kind.version,
            stored_as=_EVENTS if (kind.group, kind.kind) == ("events.k8s.io", "Event") else None,
            deprecation=_DEPRECATIONS.get((kind.group, kind.kind), ""),
        )


# -- custom resources, which are served as soon as their definition is stored ----------------------------------------


_SCALE: Final = Subresource("scale", Kind("autoscaling", "v1", "Scale"), ("get", "patch", "update"))


def follow(store: Store, registry: Registry) -> None:
    """Serves what the stored definitions define, now and from now on."""

    def changed(event: StoreEvent) -> None:
        resource = resource_of(event.new.obj)
        if event.deleted:
            registry.stop_serving(resource)
            return
        if event.old is None:
            store.begin(resource)
        registry.serve(resource, _served(event.new.obj))
        if event.old is not None and event.old.obj["spec"] != event.new.obj["spec"]:
            _read_again(store, resource, event.new.obj)

    for each in store.all(CRDS):
        registry.serve(resource_of(each.obj), _served(each.obj))
    store.listen(CRDS, changed)


def _read_again(store: Store, resource: Resource, document: Object) -> None:
    """Prunes the stored objects by a changed schema and fills in its defaults, as the real server does whenever it
    reads one. An object keeps the version in which it was stored."""
    crd = parse_crd(document)
    for each in list(store.all(resource)):
        version = crd.version(each.obj["apiVersion"].rpartition("/")[2])
        if version is not None:
            pruned = prune(orjson.loads(each.written), version.schema)
            store.amend(resource, default(pruned, version.schema), written=each.written)


def resource_of(crd: Object) -> Resource:
    plural, _, group = crd["metadata"]["name"].partition(".")
    return Resource(group, plural)


def _served(document: Object) -> Iterator[ServedKind]:
    try:
        crd = parse_crd(document)
    except SchemaError:  # checked when it is written
        return
    yield from served_versions(crd, document)


def served_versions(crd: CustomResourceDefinition, document: Object = EMPTY) -> Iterator[ServedKind]:
    """The versions of a custom kind. `document`: its definition, if scales and selectable fields matter."""
    storage = next((each for each in crd.versions if each.storage), crd.versions[0])
    shapes = {each.name: crd_shape(each.schema) for each in crd.versions}
    versions = {each["name"]: each for each in document.get("spec", EMPTY).get("versions", ())}
    for version in crd.versions:
        info = crd.resource(version.name)
        if info is None:
            continue
        more = versions.get(version.name, EMPTY)
        scale = _scale((more.get("subresources") or EMPTY).get("scale"))
        own = (Subresource("status", info.kind, _SCALE.verbs),) if version.status_subresource else ()
        yield ServedKind(
            kind=info.kind,
            plural=crd.plural,
            singular=crd.singular,
            namespaced=crd.namespaced,
            short_names=crd.short_names,
            categories=crd.categories,
            status_subresource=version.status_subresource,
            verbs=VERBS,
            scale=scale,
            subresources=(_SCALE, *own) if scale.replicas else own,
            shape=shapes[version.name],
            list_kind=crd.list_kind,
            storage_version=storage.name,
            storage_schema=storage.schema,
            shapes=tuple((f"{crd.group}/{name}", shape) for name, shape in shapes.items() if name != version.name),
            deprecation=_deprecation(crd, version),
            is_custom=True,
            ends="deletionTimestamp" in document.get("metadata", EMPTY),
            schema=version.schema,
            printer=custom_printer(version.printer_columns),
            selectable=tuple(each["jsonPath"].lstrip(".") for each in more.get("selectableFields") or ()),
        )


def _deprecation(crd: CustomResourceDefinition, version: CrdVersion) -> str:
    """The warning of a deprecated version: its own, or one that names a better version."""
    if not version.deprecated:
        return ""
    if version.deprecation_warning:
        return version.deprecation_warning
    found = f"{crd.group}/{version.name} {crd.kind} is deprecated"
    better = [each.name for each in crd.versions if each.served and not each.deprecated]
    first = min([*better, version.name], key=priority)
    return found if first == version.name else f"{found}; use {crd.group}/{first} {crd.kind}"


def _scale(scale: Any) -> Scale:
    if not isinstance(scale, dict):
        return NO_SCALE
    return Scale(
        scale.get("specReplicasPath", "").lstrip("."),
        scale.get("statusReplicasPath", "").lstrip("."),
        (scale.get("labelSelectorPath") or "").lstrip("."),
    )
