"""Custom resources: served as soon as their CustomResourceDefinition is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.builtin.builtin_types import Subresource
from ruleop.kubernetes.crd import crd_shape, default, parse_crd, prune
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema import EMPTY, SchemaError
from ruleop.localcluster.kinds.resources import CRDS
from ruleop.localcluster.kinds.served import Scale, ServedKind, priority
from ruleop.localcluster.object_store import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.crd import CrdVersion, CustomResourceDefinition
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.kinds.registry import Registry
    from ruleop.localcluster.object_store import Store, StoreEvent
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
            status=version.status_subresource,
            scale=scale,
            subresources=own if scale is None else (_SCALE, *own),
            shape=shapes[version.name],
            list_kind=crd.list_kind,
            storage_version=storage.name,
            storage_schema=storage.schema,
            shapes=tuple((f"{crd.group}/{name}", shape) for name, shape in shapes.items() if name != version.name),
            deprecation=_deprecation(crd, version),
            is_custom=True,
            ends="deletionTimestamp" in document.get("metadata", EMPTY),
            schema=version.schema,
            columns=version.printer_columns,
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


def _scale(scale: Any) -> Scale | None:
    if not isinstance(scale, dict):
        return None
    return Scale(
        scale.get("specReplicasPath", "").lstrip("."),
        scale.get("statusReplicasPath", "").lstrip("."),
        (scale.get("labelSelectorPath") or "").lstrip("."),
    )
