"""Answers the paths that name no resource: health, version, discovery, OpenAPI.

Discovery says which groups, versions and resources are served, in the plain and in the aggregated form. /openapi/v3 has
a document for each group version, made when it is first asked for, under an address with its hash.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.builtin.builtin_types import type_schemas
from ruleop.kubernetes.builtin.table import builtin_release
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.openapi import crd_types, openapi_document, openapi_v2
from ruleop.localcluster.http import JSON_TYPE, NO_HEADERS, Response
from ruleop.localcluster.kinds import is_builtin_group
from ruleop.localcluster.object_store import CRDS
from ruleop.localcluster.status_errors import method_not_allowed, unknown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Kind
    from ruleop.kubernetes.schema import Schema
    from ruleop.localcluster.http import Request
    from ruleop.localcluster.kinds import Registry, ServedKind
    from ruleop.localcluster.object_store import Store

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def is_aggregated(accept: str) -> bool:
    """Whether a client understands the aggregated form."""
    return AGGREGATED in [each.strip() for each in accept.split(",")]


def api_versions(address: str) -> dict[str, Any]:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _groups(registry: Registry, *, core: bool = False) -> dict[str, list[str]]:
    """The versions of each group, or of the core group alone."""
    groups: dict[str, list[str]] = {}
    for name, version in registry.group_versions():
        if (not name) == core:
            groups.setdefault(name, []).append(version)
    return groups


def group_list(registry: Registry) -> dict[str, Any]:
    groups = [_group(*each) for each in _groups(registry).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: Registry, name: str) -> dict[str, Any] | None:
    versions = _groups(registry).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    found = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def resource_list(registry: Registry, name: str, version: str) -> dict[str, Any] | None:
    if (name, version) not in registry.group_versions():
        return None
    resources = [row for each in registry.in_group_version(name, version) for row in _rows(each, registry)]
    title = f"{name}/{version}" if name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": title, "resources": resources}


def _rows(served: ServedKind, registry: Registry) -> Iterator[dict[str, Any]]:
    def row(name: str, singular: str, kind: Kind, verbs: Iterable[str]) -> dict[str, Any]:
        names = {"name": name, "singularName": singular, "namespaced": served.namespaced}
        return {**names, "kind": kind.kind, "verbs": list(verbs)}

    own = row(served.plural, served.singular, served.kind, served.verbs)
    stored = registry.of(served.resource)
    if "list" in served.verbs and stored is not None:
        digest = hashlib.sha256(f"{stored.kind.group}/{stored.storage_version}/{stored.kind.kind}".encode()).digest()
        own["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
    yield own | _names_of_several(served)
    for each in served.subresources:
        of_other = {} if each.kind[:2] == served.kind[:2] else {"group": each.kind.group, "version": each.kind.version}
        yield row(f"{served.plural}/{each.name}", "", each.kind, each.verbs) | of_other


def _names_of_several(served: ServedKind) -> dict[str, list[str]]:
    names = {"shortNames": served.short_names, "categories": served.categories}
    return {key: list(each) for key, each in names.items() if each}


def aggregated(registry: Registry, *, core: bool) -> dict[str, Any]:
    """All groups with their resources in one document."""
    groups = _groups(registry, core=core)
    names = sorted(groups, key=lambda name: "" if is_builtin_group(name) else name)  # custom ones last, by their names
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(each) for each in registry.in_group_version(name, version)],
                    "freshness": "Current",
                }
                for version in groups[name]
            ],
        }
        for name in names
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_resource(served: ServedKind) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resource": served.plural,
        "responseKind": served.kind._asdict(),
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": list(served.verbs),
    }
    found |= _names_of_several(served)
    if served.subresources:
        found["subresources"] = [
            {"subresource": each.name, "responseKind": each.kind._asdict(), "verbs": list(each.verbs)}
            for each in served.subresources
        ]
    return found


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

    def in_version_2(self) -> bytes:
        """All documents in one of OpenAPI v2."""
        documents = (orjson.loads(self._document(*each)) for each in self.registry.group_versions())
        return orjson.dumps(openapi_v2(documents, release=f"v{builtin_release()}.0"))

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
        resources = self.registry.in_group_version(group, version)
        for each in resources:
            if each.is_custom:
                schemas |= self._crd_types(each)
        document = openapi_document(group, version, resources, schemas, release=f"v{builtin_release()}.0")
        data = orjson.dumps(document)
        if not custom:
            self._builtin[group, version] = data
        return data

    def _crd_types(self, served: ServedKind) -> dict[str, Schema]:
        for each in self.store.all(CRDS):
            crd = parse_crd(each.obj)
            if (crd.group, crd.plural) == served.resource:
                found = crd.version(served.kind.version)
                return crd_types(crd, found) if found is not None else {}
        return {}


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


NO_PAGE: Final = Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
"""The real server's response where no group of its own is concerned."""

_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_OPENAPI: Final = "/openapi/v3/"
_OPENAPI_V2: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_IMMUTABLE: Final = {"Cache-Control": "public, immutable"}


class General:
    def __init__(self, store: Store, registry: Registry) -> None:
        self.registry = registry
        self.openapi = OpenApiDocuments(store, registry)

    def response(self, request: Request) -> Response:
        """Raises Rejected."""
        path = request.path.rstrip("/") or "/"
        if request.method != "GET":
            raise method_not_allowed()
        if path in _HEALTH or path in [f"{each}/ping" for each in _HEALTH]:
            return Response(200, b"ok", "text/plain; charset=utf-8")
        if path in ("/api", "/apis") and is_aggregated(request.headers.get("accept", "")):
            data = orjson.dumps(aggregated(self.registry, core=(path == "/api")))
            response = Response(200, data, AGGREGATED, {"Cache-Control": "public"})
            return _with_tag(response, hashlib.sha512(data).hexdigest().upper(), request)
        if path.startswith(_OPENAPI):
            return self._openapi(path.removeprefix(_OPENAPI), request)
        if path == "/openapi/v2":
            # kubectl asks for protobuf when it does not know a kind, and reports that only after an answer.
            if "protobuf" in request.headers.get("accept", ""):
                return Response(200, b"", _OPENAPI_V2)
            data = self.openapi.in_version_2()
            return _with_tag(Response(200, data), hashlib.sha512(data).hexdigest().upper(), request)
        if path == "/openapi/v3":
            return Response(200, orjson.dumps(self.openapi.index()), "text/plain; charset=utf-8")
        document = self._document(path, request.headers.get("host", ""))
        if document is not None:
            return Response(200, orjson.dumps(document))
        first, group, *_ = (*path.strip("/").split("/"), "")
        if first == "api" or (first == "apis" and is_builtin_group(group)):
            raise unknown_path()
        return NO_PAGE

    def _document(self, path: str, host: str) -> Mapping[str, Any] | None:
        match path.strip("/").split("/"):
            case ["version"]:
                return _version()
            case ["api"]:
                return api_versions(host)
            case ["apis"]:
                return group_list(self.registry)
            case ["api", version]:
                return resource_list(self.registry, "", version)
            case ["apis", name]:
                return group(self.registry, name)
            case ["apis", name, version]:
                return resource_list(self.registry, name, version)
        return None

    def _openapi(self, path: str, request: Request) -> Response:
        """The document of a group version. With its hash in the address it may be kept for good."""
        found, given = self.openapi.document(path), request.query.get("hash", "")
        if found is None:
            return Response(404, b"")
        digest = self.openapi.digest(path)
        if given and given != digest:
            return Response(301, b"", JSON_TYPE, {"Location": f"?hash={digest}"})
        response = Response(200, found, JSON_TYPE, _IMMUTABLE if given else NO_HEADERS)
        return _with_tag(response, digest, request)


def _with_tag(response: Response, digest: str, request: Request) -> Response:
    """The response with its ETag; without its body if the client has it already."""
    response = replace(response, headers={"Etag": f'"{digest}"', "Vary": "Accept", **response.headers})
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return replace(response, status=304, body=b"") if "*" in known or f'"{digest}"' in known else response


def _version() -> dict[str, str]:
    major, _, minor = builtin_release().partition(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+ruleop",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "python",
        "platform": "any",
    }
