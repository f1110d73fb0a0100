"""/openapi/v3: a document for each group version, made when it is first asked for, under an address with its hash."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.core.kinds import Kind
from ruleop.core.schema.builtin.builtin_types import ServedResource, Subresource, served_resources, type_schemas
from ruleop.core.schema.builtin.table import ResourceInfo, builtin_release
from ruleop.core.schema.crd.crds import parse_crd
from ruleop.core.schema.openapi_document import crd_types, openapi_document
from ruleop.localcluster.kinds.resources import CRDS

if TYPE_CHECKING:
    from ruleop.core.schema.openapi import Schema
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.kinds.served_resources import Registry
    from ruleop.localcluster.store.object_store import Store

_SCALE = Subresource("scale", Kind("autoscaling", "v1", "Scale"), ("get", "patch", "update"))


class OpenApiDocuments:
    def __init__(self, store: Store, registry: Registry) -> None:
        self.store, self.registry = store, registry
        self._builtin: dict[tuple[str, str], bytes] = {}

    def index(self) -> dict[str, Any]:
        """The addresses of all documents."""
        paths = [_path(*each) for each in self.registry.group_versions()]
        addresses = {path: f"/openapi/v3/{path}?hash={self.digest(path)}" for path in paths}
        return {"paths": {path: {"serverRelativeURL": address} for path, address in addresses.items()}}

    def digest(self, path: str) -> str:
        """The hash of the document at a path, which changes with it."""
        group, _, version = path.partition("/")[2].rpartition("/")
        return hashlib.sha256(self._identity(group, version)).hexdigest()[:32].upper()

    def document(self, path: str) -> bytes | None:
        """The document at a path such as apis/apps/v1; None if there is none."""
        for group, version in self.registry.group_versions():
            if _path(group, version) == path:
                return self._document(group, version)
        return None

    def _identity(self, group: str, version: str) -> bytes:
        """The sources of the document: the release, or the definitions of custom kinds."""
        custom = [each for each in self.registry.in_group_version(group, version) if each.is_custom]
        if not custom:
            return f"{builtin_release()} {group}/{version}".encode()
        versions = sorted((each.name.name, each.version) for each in self.store.all(CRDS))
        return repr((group, version, [row for row in versions if row[0].endswith(f".{group}")])).encode()

    def _document(self, group: str, version: str) -> bytes:
        custom = [each for each in self.registry.in_group_version(group, version) if each.is_custom]
        if not custom and (group, version) in self._builtin:
            return self._builtin[group, version]
        schemas: dict[str, Schema] = dict(type_schemas())
        resources: list[ServedResource] = []
        for each in self.registry.in_group_version(group, version):
            if each.is_custom:
                schemas |= self._crd_types(each)
                resources.append(_resource(each))
            else:
                resources += [one for one in served_resources() if one.info.kind == each.kind]
        document = openapi_document(group, version, resources, schemas, release=f"v{builtin_release()}.0")
        data = orjson.dumps(document)
        if not custom:
            self._builtin[group, version] = data
        return data

    def _crd_types(self, served: Served) -> dict[str, Schema]:
        for each in self.store.all(CRDS):
            crd = parse_crd(each.obj)
            if (crd.group, crd.plural) == served.resource:
                found = crd.version(served.kind.version)
                return crd_types(crd, found) if found is not None else {}
        return {}


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _resource(served: Served) -> ServedResource:
    verbs = ("get", "patch", "update")
    subresources = [Subresource("status", served.kind, verbs)] if served.status else []
    if served.scale is not None:
        subresources.append(_SCALE)
    return ServedResource(
        ResourceInfo(served.plural, served.namespaced, served.status, served.kind),
        served.singular,
        served.verbs,
        served.short_names,
        served.categories,
        tuple(subresources),
    )
