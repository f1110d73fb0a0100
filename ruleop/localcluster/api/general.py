"""Answers the paths that name no resource: health, version, discovery, OpenAPI."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.core.schema.builtin.table import builtin_release
from ruleop.localcluster.api import discovery_documents
from ruleop.localcluster.api.openapi_endpoint import OpenApiDocuments
from ruleop.localcluster.api.requests.response_forms import choose_form, in_form
from ruleop.localcluster.http.message import JSON_TYPE, NO_HEADERS, Response
from ruleop.localcluster.kinds.served_resources import is_builtin_group
from ruleop.localcluster.status_errors import method_not_allowed, unknown_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.localcluster.http.message import Request
    from ruleop.localcluster.kinds.served_resources import Registry
    from ruleop.localcluster.store.object_store import Store

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
        if path in ("/api", "/apis") and discovery_documents.is_aggregated(request.headers.get("accept", "")):
            return self._aggregated(request, core=path == "/api")
        if path.startswith(_OPENAPI):
            return self._openapi(path.removeprefix(_OPENAPI), request)
        if path == "/openapi/v2" and "protobuf" in request.headers.get("accept", ""):
            return Response(200, b"", _OPENAPI_V2)
        if path == "/openapi/v3":
            return Response(200, orjson.dumps(self.openapi.index()), "text/plain; charset=utf-8")
        document = self._document(path, request.headers.get("host", ""))
        if document is not None:
            form = choose_form(request.headers.get("accept", ""), is_builtin=path == "/version")
            return in_form(form, Response(200, orjson.dumps(document)))
        first, group, *_ = (*path.strip("/").split("/"), "")
        if first == "api" or (first == "apis" and is_builtin_group(group)):
            raise unknown_path()
        return NO_PAGE

    def _document(self, path: str, host: str) -> Mapping[str, Any] | None:
        match path.strip("/").split("/"):
            case [""]:
                return {"paths": self._paths()}
            case ["version"]:
                return _version()
            case ["api"]:
                return discovery_documents.api_versions(host)
            case ["apis"]:
                return discovery_documents.group_list(self.registry)
            case ["api", version]:
                return discovery_documents.resource_list(self.registry, "", version)
            case ["apis", group]:
                return discovery_documents.group(self.registry, group)
            case ["apis", group, version]:
                return discovery_documents.resource_list(self.registry, group, version)
        return None

    def _paths(self) -> list[str]:
        """The paths that are served, as `/` lists them."""
        groups = {group for group, _ in self.registry.group_versions() if group}
        versions = {f"/apis/{group}/{version}" for group, version in self.registry.group_versions() if group}
        found = {*versions, *(f"/apis/{group}" for group in groups)}
        return sorted(
            [*found, *_HEALTH, "/api", "/api/v1", "/apis", "/apis/", "/openapi/v3", "/openapi/v3/", "/version"]
        )

    def _aggregated(self, request: Request, *, core: bool) -> Response:
        data = orjson.dumps(discovery_documents.aggregated(self.registry, core=core))
        response = Response(200, data, discovery_documents.AGGREGATED, {"Cache-Control": "public"})
        return _with_tag(response, hashlib.sha512(data).hexdigest().upper(), request)

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
