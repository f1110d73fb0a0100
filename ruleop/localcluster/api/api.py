"""Answers requests: the routes, and the verbs of resources."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson
import yaml

from ruleop.localcluster.api import discovery
from ruleop.localcluster.api.accept import form_of
from ruleop.localcluster.api.forms import list_bytes, object_bytes
from ruleop.localcluster.api.openapi import OpenApiDocuments
from ruleop.localcluster.api.options import DeleteOptions, WriteOptions
from ruleop.localcluster.api.patching import APPLY, configuration, patched
from ruleop.localcluster.api.reviews import review
from ruleop.localcluster.api.route import Route, route_of
from ruleop.localcluster.api.scale import scale_of, scaled
from ruleop.localcluster.api.selection import selection_of
from ruleop.localcluster.api.watching import DEFAULT_TIMEOUT, Watch, WatchOptions
from ruleop.localcluster.errors import (
    Rejected,
    bad_request,
    expired,
    invalid_options,
    method_not_allowed,
    not_found,
    too_large_version,
    unknown_path,
    unsupported_media_type,
)
from ruleop.localcluster.http.message import Response, Stream
from ruleop.localcluster.http.protobuf import MEDIA_TYPE, ProtobufError, read_protobuf
from ruleop.localcluster.kinds.registry import REVIEWS
from ruleop.localcluster.store.store import Name, Stored, TooOldError
from ruleop.schema.table import builtin_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.localcluster.api.writer import Writer
    from ruleop.localcluster.http.message import Answer, Request
    from ruleop.localcluster.kinds.registry import Registry
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.store.store import Store

_TRUE: Final = ("true", "1", "True")
_YAML: Final = frozenset({"application/yaml", "application/apply-patch+yaml"})


class Api:
    def __init__(self, store: Store, registry: Registry, writer: Writer) -> None:
        self.store, self.registry, self.writer = store, registry, writer
        self.openapi = OpenApiDocuments(store, registry)
        self._at: int | None = None  # of the current request

    def handle(self, request: Request, at: int | None = None) -> Answer:
        """`at`: a version of the past, for a read that is stale."""
        self.writer.warnings, self._at = [], at
        try:
            answer = self._answer(request)
        except Rejected as error:
            return refusal(error)
        if isinstance(answer, Response) and self.writer.warnings:
            warnings = ", ".join(f"299 - {orjson.dumps(each).decode()}" for each in self.writer.warnings)
            return Response(answer.status, answer.body, answer.content_type, {**answer.headers, "Warning": warnings})
        return answer

    def _answer(self, request: Request) -> Answer:
        route = route_of(request.path)
        if route is None:
            return self._general(request)
        served = self.registry.get(route.group, route.version, route.plural)
        if served is None or (route.namespace and not served.namespaced):
            raise unknown_path()
        if served.kind.kind in REVIEWS:
            return _json(review(served, _body(request)), 201)
        if route.subresource:
            return self._subresource(request, route, served)
        if route.name:
            return self._object(request, route, served)
        return self._collection(request, route, served)

    # -- paths without a resource --------------------------------------------------------------------------------------

    def _general(self, request: Request) -> Answer:
        path = request.path.rstrip("/") or "/"
        if request.method != "GET":
            raise method_not_allowed()
        if path in ("/healthz", "/livez", "/readyz") or path.startswith(("/readyz/", "/livez/", "/healthz/")):
            return Response(200, b"ok", "text/plain")
        if path == "/version":
            return _json(_version())
        if path in ("/api", "/apis") and "as=APIGroupDiscoveryList" in request.headers.get("accept", ""):
            return Response(
                200, orjson.dumps(discovery.aggregated(self.registry, core=path == "/api")), discovery.AGGREGATED
            )
        if path.startswith("/openapi/v3/") and (found := self.openapi.document(path.removeprefix("/openapi/v3/"))):
            return Response(200, found)
        document = self.openapi.index() if path == "/openapi/v3" else self._discovery(path)
        if document is None:
            raise unknown_path()
        return _json(document)

    def _discovery(self, path: str) -> dict[str, Any] | None:
        match path.strip("/").split("/"):
            case ["api"]:
                return discovery.api_versions()
            case ["apis"]:
                return discovery.group_list(self.registry)
            case ["api", version]:
                return discovery.resource_list(self.registry, "", version)
            case ["apis", group]:
                return discovery.group(self.registry, group)
            case ["apis", group, version]:
                return discovery.resource_list(self.registry, group, version)
        return None

    # -- collections ---------------------------------------------------------------------------------------------------

    def _collection(self, request: Request, route: Route, served: Served) -> Answer:
        if request.method == "GET":
            if request.query.get("watch") in _TRUE:
                return self._watch(request, route, served)
            return self._list(request, route, served)
        if request.method == "POST":
            if served.namespaced and not route.namespace:
                raise method_not_allowed()
            return self._create(request, route, served)
        if request.method == "DELETE":
            return self._delete_collection(request, route, served)
        raise method_not_allowed()

    def _list(self, request: Request, route: Route, served: Served) -> Response:
        query, form = request.query, form_of(request.headers.get("accept", ""))
        selection = selection_of(query, served)
        version = str(self.store.version)
        asked = _number(query, "resourceVersion")
        if asked > self.store.version:
            raise too_large_version(asked, self.store.version)
        token = query.get("continue", "")
        if token:
            version, after = _from_token(token)
            try:
                found = self.store.at(served.resource, int(version), route.namespace, after)
            except TooOldError:
                raise expired(
                    "The provided continue parameter is too old to display a consistent list result. "
                    "You can start a new list without the continue parameter."
                ) from None
        elif self._at is not None:
            version = str(self._at)
            found = self.store.at(served.resource, self._at, route.namespace, Name("", ""))
        else:
            found = list(self.store.all(served.resource, route.namespace))
        if selection is not None:
            found = [each for each in found if selection(each.obj)]
        metadata: dict[str, Any] = {"resourceVersion": version}
        limit = _number(query, "limit")
        if limit and len(found) > limit:
            rest, found = len(found) - limit, found[:limit]
            metadata["continue"] = _token(version, found[-1].name)
            if selection is None:
                metadata["remainingItemCount"] = rest
        include = query.get("includeObject", "Metadata")
        return Response(200, list_bytes(served, found, metadata, form.name, include))

    def _watch(self, request: Request, route: Route, served: Served) -> Stream:
        query = request.query
        initial = query.get("sendInitialEvents")
        if initial is not None and query.get("resourceVersionMatch") != "NotOlderThan":
            raise Rejected(
                422,
                "Invalid",
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            )
        version = _number(query, "resourceVersion")
        if version > self.store.version:
            raise too_large_version(version, self.store.version)
        options = WatchOptions(
            version=str(version or ""),
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            initial_events=None if initial is None else initial in _TRUE,
            timeout=float(_number(query, "timeoutSeconds") or DEFAULT_TIMEOUT),
            form=form_of(request.headers.get("accept", "")).name,
        )
        watch = Watch(self.store, served, route.namespace, selection_of(query, served), options)
        return Stream(watch.start)

    def _create(self, request: Request, route: Route, served: Served) -> Response:
        obj = self._parsed(request, route, served)
        options = WriteOptions.of(request.query, request.headers.get("user-agent", ""))
        return self._written(request, served, self.writer.create(served, route.namespace, obj, options), 201)

    def _delete_collection(self, request: Request, route: Route, served: Served) -> Response:
        options = DeleteOptions.of(request.query, _optional_body(request))
        selection = selection_of(request.query, served)
        found = [
            each
            for each in self.store.all(served.resource, route.namespace)
            if selection is None or selection(each.obj)
        ]
        for each in found:
            self.writer.delete(served, each, options)
        return Response(200, list_bytes(served, found, {"resourceVersion": str(self.store.version)}, "", ""))

    # -- one object ----------------------------------------------------------------------------------------------------

    def _object(self, request: Request, route: Route, served: Served) -> Answer:
        if request.method == "GET":
            if request.query.get("watch") in _TRUE:
                query = {**request.query, "fieldSelector": f"metadata.name={route.name}"}
                return self._watch(_with_query(request, query), route, served)
            return self._written(request, served, self._find(route, served), 200)
        if request.method == "PUT":
            return self._update(request, route, served)
        if request.method == "PATCH":
            return self._patch(request, route, served)
        if request.method == "DELETE":
            return self._delete(request, route, served)
        raise method_not_allowed()

    def _find(self, route: Route, served: Served) -> Stored:
        if served.namespaced and not route.namespace:
            raise unknown_path()
        name = Name(route.namespace, route.name)
        found = self.store.get(served.resource, name)
        if self._at is not None:
            past = self.store.at(served.resource, self._at, route.namespace, Name("", ""))
            found = next((each for each in past if each.name == name), None)
        if found is None:
            raise not_found(route.group, route.plural, route.name)
        return found

    def _update(self, request: Request, route: Route, served: Served) -> Response:
        obj = self._parsed(request, route, served)
        if (obj.get("metadata") or {}).get("name") != route.name:
            raise bad_request(
                f"the name of the object ({(obj.get('metadata') or {}).get('name', '')}) "
                f"does not match the name on the URL ({route.name})"
            )
        options = WriteOptions.of(request.query, request.headers.get("user-agent", ""))
        old = self._find(route, served)
        return self._written(request, served, self.writer.update(served, old, obj, route.subresource, options), 200)

    def _patch(self, request: Request, route: Route, served: Served) -> Response:
        options = WriteOptions.of(request.query, request.headers.get("user-agent", ""))
        media = request.headers.get("content-type", "").partition(";")[0].strip()
        if media == APPLY:
            return self._apply(request, route, served, options)
        old = self._find(route, served)
        new = dict(patched(served, old.obj, media, _body(request)))
        return self._written(request, served, self.writer.update(served, old, new, route.subresource, options), 200)

    def _apply(self, request: Request, route: Route, served: Served, options: WriteOptions) -> Response:
        if not request.query.get("fieldManager"):
            message = "Required value: is required for apply patch"
            raise invalid_options("PatchOptions", "fieldManager", message)
        config = self._in_storage(configuration(_body(request)), route, served)
        found, made = self.writer.apply(served, Name(route.namespace, route.name), config, route.subresource, options)
        return self._written(request, served, found, 201 if made else 200)

    def _delete(self, request: Request, route: Route, served: Served) -> Response:
        options = DeleteOptions.of(request.query, _optional_body(request))
        found, gone = self.writer.delete(served, self._find(route, served), options)
        if not gone or served.returns_deleted:
            return self._written(request, served, found, 200)
        details: dict[str, Any] = {"name": route.name, "group": route.group, "kind": route.plural, "uid": found.uid}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {name: value for name, value in details.items() if value},
        }
        return _json(status)

    def _subresource(self, request: Request, route: Route, served: Served) -> Answer:
        if route.subresource == "status" and served.status and request.method in ("GET", "PUT", "PATCH"):
            return self._object(request, route, served)
        if route.subresource == "scale" and served.scale is not None:
            return self._scale(request, route, served)
        if route.subresource == "finalize" and route.plural == "namespaces" and request.method == "PUT":
            return self._update(request, route, served)
        if route.subresource in ("log", "exec", "attach", "portforward", "proxy") and route.plural == "pods":
            raise Rejected(
                501,
                "NotImplemented",
                f"pods of a local cluster have no processes: there is nothing to {route.subresource}",
            )
        raise unknown_path()

    def _scale(self, request: Request, route: Route, served: Served) -> Response:
        old = self._find(route, served)
        current = scale_of(served, old.obj)
        if request.method == "GET":
            return _json(current)
        if request.method == "PUT":
            desired = _body(request)
        elif request.method == "PATCH":
            media = request.headers.get("content-type", "").partition(";")[0].strip()
            desired = patched(served, current, media, _body(request))
        else:
            raise method_not_allowed()
        options = WriteOptions.of(request.query, request.headers.get("user-agent", ""))
        new = self.writer.update(served, old, scaled(served, old.obj, desired), "scale", options)
        return _json(scale_of(served, new.obj))

    # -- bodies --------------------------------------------------------------------------------------------------------

    def _parsed(self, request: Request, route: Route, served: Served) -> dict[str, Any]:
        """The object of a request, in the version in which it is stored."""
        return self._in_storage(_body(request), route, served)

    def _in_storage(self, obj: Any, route: Route, served: Served) -> dict[str, Any]:
        if not isinstance(obj, dict):
            raise bad_request("the body of the request must be an object")
        kind = served.kind
        obj.setdefault("kind", kind.kind)
        obj.setdefault("apiVersion", kind.api_version)
        if obj["kind"] != kind.kind or obj["apiVersion"] != kind.api_version:
            raise bad_request(
                f"the API version in the data ({obj['apiVersion']}, Kind={obj['kind']}) "
                f"does not match the expected API version ({kind.api_version}, Kind={kind.kind})"
            )
        metadata = obj.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise bad_request("metadata must be an object")
        namespace = metadata.get("namespace")
        if served.namespaced and namespace and namespace != route.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if served.is_custom and kind.version != served.storage_version:
            obj["apiVersion"] = f"{kind.group}/{served.storage_version}"
        return obj

    def _written(self, request: Request, served: Served, found: Stored, status: int) -> Response:
        form = form_of(request.headers.get("accept", ""))
        return Response(status, object_bytes(served, found, form.name))


def refusal(error: Rejected) -> Response:
    return Response(error.code, orjson.dumps(error.document()), headers=error.headers)


def _json(document: Mapping[str, Any], status: int = 200) -> Response:
    return Response(status, orjson.dumps(document))


def _body(request: Request) -> Any:
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if media == MEDIA_TYPE:
        try:
            return read_protobuf(request.body)
        except ProtobufError as error:
            raise unsupported_media_type(
                f"the body of the request is protobuf that cannot be read ({error}); "
                'let the client send JSON (in Go: rest.Config.ContentType = "application/json")'
            ) from None
    try:
        return yaml.safe_load(request.body) if media in _YAML else orjson.loads(request.body)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type object): {error}") from None


def _optional_body(request: Request) -> Any:
    return _body(request) if request.body.strip() else None


def _number(query: Mapping[str, str], name: str) -> int:
    value = query.get(name) or "0"
    if not value.isdecimal():
        raise bad_request(f'Invalid value: "{value}": {name} must be a number')
    return int(value)


def _with_query(request: Request, query: Mapping[str, str]) -> Request:
    return replace(request, query=query)


def _token(version: str, after: Name) -> str:
    document = {"v": "meta.k8s.io/v1", "rv": int(version), "start": f"{after.namespace}/{after.name}"}
    return base64.urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")


def _from_token(token: str) -> tuple[str, Name]:
    try:
        document = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = document["start"].partition("/")
        return str(int(document["rv"])), Name(namespace, name)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise bad_request("continue key is not valid: the token was not made by this server") from None


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
