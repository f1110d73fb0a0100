"""Asks the API server who a bearer token belongs to, and what that user is allowed to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind
from ruleop.operator.wire.client import requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.operator.wire.client.client import Client

TOKEN_REVIEWS = ResourceInfo(
    "tokenreviews",
    namespaced=False,
    status_subresource=False,
    kind=Kind("authentication.k8s.io", "v1", "TokenReview"),
)
ACCESS_REVIEWS = ResourceInfo(
    "subjectaccessreviews",
    namespaced=False,
    status_subresource=False,
    kind=Kind("authorization.k8s.io", "v1", "SubjectAccessReview"),
)


async def review_token(client: Client, token: str) -> Mapping[str, Any] | None:
    """The user of the token, or None for a token that is not valid. Raises ApiError."""
    status = await _review(client, TOKEN_REVIEWS, {"token": token})
    user = status.get("user")
    return user if status.get("authenticated") is True and isinstance(user, dict) and user.get("username") else None


async def is_allowed(client: Client, user: Mapping[str, Any], verb: str, path: str) -> bool:
    """Whether RBAC (or another authorizer of the server) allows the user this verb on a non-resource URL. Raises
    ApiError."""
    spec = {
        "user": user["username"],
        "uid": user.get("uid") or "",
        "groups": user.get("groups") or [],
        "extra": user.get("extra") or {},
        "nonResourceAttributes": {"path": path, "verb": verb},
    }
    status = await _review(client, ACCESS_REVIEWS, spec)
    return status.get("allowed") is True and status.get("denied") is not True


async def _review(client: Client, resource: ResourceInfo, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = resource.kind
    review = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec, "metadata": {}}
    response = await client.send(requests.create(resource, review))
    status = response.get("status")
    return status if isinstance(status, dict) else {}
