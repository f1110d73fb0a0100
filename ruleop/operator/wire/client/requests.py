"""Prepares requests: pure functions, without I/O. `Client.send` and `Client.stream` send them.

Three ways to write:

1. `create` and `replace` send a whole object; the server compares its resourceVersion.
2. `merge_patch` and `json_patch` send a difference. With metadata.resourceVersion (merge patch), or a `test` of it
   (JSON patch), the server rejects it if the object changed in between.
3. `apply` sends the fields that the manager owns, and the server tracks the managers.

Every write requests strict validation: a field that the server would drop silently becomes an error.
"""

from __future__ import annotations

from dataclasses import replace as replace_fields
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import orjson

from ruleop.kubernetes.names import is_label
from ruleop.operator.wire.client.json_depth import dump_json
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http.connection import JSON_TYPE, PreparedRequest
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.kinds import Object, ObjectKey

MANAGER = "ruleop"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
ONE_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MANY_PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

LIST_TIMEOUT = 90.0  # a page of 500 objects of a megabyte over a slow line


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """The coverage of one watch: a kind, in one namespace ('' for all), narrowed by selectors; whole objects or
    metadata only. `hashes`: only objects with hashes of their uid in this range, where the server can tell."""

    resource: ResourceInfo
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    hashes: tuple[int, int] | None = None

    def __str__(self) -> str:
        return _describe(self.resource, self.namespace)


def get(resource: ResourceInfo, key: ObjectKey, *, metadata_only: bool = False) -> PreparedRequest:
    """A consistent read: without a resourceVersion, the server reads from etcd."""
    accept = ONE_PARTIAL if metadata_only else JSON_TYPE
    return PreparedRequest(
        "GET", _item(resource, key), "get", _describe(resource, key.namespace, key.name), accept=accept
    )


def list_page(source: ObjectSource, *, limit: int, token: str = "") -> PreparedRequest:
    """One page of a consistent list; `limit` 0 requests everything at once."""
    query = _selectors(source)
    if limit:
        query.append(("limit", str(limit)))
    if token:
        query.append(("continue", token))
    return PreparedRequest(
        "GET",
        _collection(source.resource, source.namespace),
        "list",
        str(source),
        query=urlencode(query),
        accept=MANY_PARTIAL if source.metadata_only else JSON_TYPE,
        timeout=LIST_TIMEOUT,
    )


def watch(source: ObjectSource, *, version: str, seconds: int) -> PreparedRequest:
    """Changes since `version`; without one, first all objects and then the changes (a streaming list)."""
    query = [*_selectors(source), ("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(seconds))]
    if version:
        query.append(("resourceVersion", version))
    else:
        query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
    return PreparedRequest(
        "GET",
        _collection(source.resource, source.namespace),
        "watch",
        str(source),
        query=urlencode(query),
        accept=ONE_PARTIAL if source.metadata_only else JSON_TYPE,
    )


def create(resource: ResourceInfo, obj: Object, *, manager: str = MANAGER) -> PreparedRequest:
    metadata = obj.get("metadata") or {}
    namespace = metadata.get("namespace") or ""
    described = _describe(resource, namespace, metadata.get("name") or "")
    return _write("POST", _collection(resource, namespace), "create", described, value=obj, query=_write_query(manager))


def replace(
    resource: ResourceInfo, key: ObjectKey, obj: Object, *, subresource: str = "", manager: str = MANAGER
) -> PreparedRequest:
    described = _describe(resource, key.namespace, key.name, subresource)
    path, query = _item(resource, key, subresource), _write_query(manager)
    return _write("PUT", path, "update", described, value=obj, query=query)


def merge_patch(
    resource: ResourceInfo, key: ObjectKey, patch: Mapping[str, Any], *, subresource: str = "", manager: str = MANAGER
) -> PreparedRequest:
    return _patch(resource, key, patch, MERGE_PATCH, subresource=subresource, query=_write_query(manager))


def json_patch(
    resource: ResourceInfo,
    key: ObjectKey,
    operations: Sequence[Mapping[str, Any]],
    *,
    subresource: str = "",
    manager: str = MANAGER,
) -> PreparedRequest:
    return _patch(resource, key, operations, JSON_PATCH, subresource=subresource, query=_write_query(manager))


def apply(
    resource: ResourceInfo,
    key: ObjectKey,
    obj: Object,
    *,
    subresource: str = "",
    manager: str = MANAGER,
    force: bool = False,
) -> PreparedRequest:
    """Server-side apply. The causes of a conflict name the other managers; `force` takes the fields from them."""
    query = _write_query(manager) + ("&force=true" if force else "")
    return _patch(resource, key, obj, APPLY_PATCH, subresource=subresource, query=query)


def delete(resource: ResourceInfo, key: ObjectKey, *, uid: str, version: str = "") -> PreparedRequest:
    """Deletes the object with this uid: by now another object may have the name."""
    preconditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
        "propagationPolicy": "Background",
    }
    return PreparedRequest(
        "DELETE",
        _item(resource, key),
        "delete",
        _describe(resource, key.namespace, key.name),
        body=orjson.dumps(options),
        content_type=JSON_TYPE,
    )


def as_dry_run(request: PreparedRequest) -> PreparedRequest:
    """The request as a dry run: the server answers as if it carried it out, after all checks, and stores nothing. A
    deletion has the option in its body, because the server ignores the query of a request with DeleteOptions."""
    if request.method == "GET":
        return request
    query = f"{request.query}&dryRun=All" if request.query else "dryRun=All"
    if request.method != "DELETE":
        return replace_fields(request, query=query)
    options = {**orjson.loads(request.body or b"{}"), "dryRun": ["All"]}
    return replace_fields(request, query=query, body=orjson.dumps(options), content_type=JSON_TYPE)


def document(path: str, *, accept: str = JSON_TYPE, etag: str = "") -> PreparedRequest:
    """Discovery and OpenAPI documents. `path` may have a query."""
    bare, _, query = path.partition("?")
    return PreparedRequest("GET", bare, "discover", bare, query=query, accept=accept, etag=etag)


def _patch(
    resource: ResourceInfo, key: ObjectKey, patch: Any, content_type: str, *, subresource: str, query: str
) -> PreparedRequest:
    described = _describe(resource, key.namespace, key.name, subresource)
    path = _item(resource, key, subresource)
    return _write("PATCH", path, "patch", described, value=patch, query=query, content_type=content_type)


def _write(
    method: str, path: str, verb: str, described: str, *, value: Any, query: str, content_type: str = JSON_TYPE
) -> PreparedRequest:
    """A request with a body of any depth, because it may contain what others wrote into an object."""
    try:
        body = dump_json(value)
    except TypeError as error:  # half of a surrogate pair
        raise ApiError(
            Problem.INVALID, verb=verb, resource=described, text=f"cannot be written as JSON ({error})"
        ) from None
    return PreparedRequest(method, path, verb, described, query=query, body=body, content_type=content_type)


def _collection(resource: ResourceInfo, namespace: str) -> str:
    kind = resource.kind
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    if resource.namespaced and namespace:
        # Servers and proxies normalise a path before they route it: `..` would lead to another collection.
        if not is_label(namespace):
            raise ApiError(
                Problem.INVALID,
                verb="use",
                resource=_describe(resource, namespace),
                text=f"{namespace!r} is not the name of a namespace",
            )
        return f"{root}/namespaces/{namespace}/{resource.plural}"
    return f"{root}/{resource.plural}"


def _item(resource: ResourceInfo, key: ObjectKey, subresource: str = "") -> str:
    # A name may come from a template and is not trusted: without a name, DELETE would delete the collection.
    if key.name in {"", ".", ".."} or (resource.namespaced and not key.namespace):
        raise ApiError(
            Problem.INVALID,
            verb="use",
            resource=_describe(resource, key.namespace),
            text=f"{key.namespace}/{key.name} is not the name of an object",
        )
    # Names of roles have colons.
    path = f"{_collection(resource, key.namespace)}/{quote(key.name, safe=':')}"
    return f"{path}/{subresource}" if subresource else path


def _selectors(source: ObjectSource) -> list[tuple[str, str]]:
    selectors = [("labelSelector", source.labels), ("fieldSelector", source.fields)]
    if source.hashes is not None:
        first, end = source.hashes
        selectors.append(("shardSelector", f"shardRange(object.metadata.uid,'0x{first:016x}','0x{end:016x}')"))
    return [(name, value) for name, value in selectors if value]


@cache
def _write_query(manager: str) -> str:
    return f"fieldManager={quote(manager, safe='')}&fieldValidation=Strict"


def _describe(resource: ResourceInfo, namespace: str, name: str = "", subresource: str = "") -> str:
    text = f"{resource.title}/{subresource}" if subresource else resource.title
    if name:
        return f"{text} {namespace}/{name}" if namespace and resource.namespaced else f"{text} {name}"
    return f"{text} in {namespace}" if namespace else text
