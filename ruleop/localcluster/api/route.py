"""The route that a path names, and the Kubernetes verb of a request: get, list, watch, create, update, patch, delete,
deletecollection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ruleop.localcluster.http.message import Request

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def verb_of(request: Request, route: Route) -> str:
    if request.method == "GET":
        if route.name:
            return "get"
        return "watch" if request.query.get("watch") in ("true", "1") else "list"
    if request.method == "DELETE":
        return "delete" if route.name else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())


class Route(NamedTuple):
    group: str
    version: str
    namespace: str
    plural: str
    name: str = ""
    subresource: str = ""


def parse_route(path: str) -> Route | None:
    """The resource or object of a path such as /apis/apps/v1/namespaces/shop/deployments/web/status; None if it names
    neither."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 and rest[2] != "proxy":
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Route(group, version, namespace, plural, name, subresource)
