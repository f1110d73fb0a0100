"""The Kubernetes verb of a request: get, list, watch, create, update, patch, delete, deletecollection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ruleop.localcluster.api.route import Route
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
