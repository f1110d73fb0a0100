"""Tokens of service accounts. A client that sends one acts as that account."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.kinds import Kind
from ruleop.localcluster.clock import now, timestamp
from ruleop.localcluster.errors import bad_request, invalid, invalid_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

TOKEN_REQUEST: Final = Kind("authentication.k8s.io", "v1", "TokenRequest")
_SHORTEST, _LONGEST = 600, 1 << 32
_BOUND_TO: Final = (("v1", "Pod"), ("v1", "Secret"), ("v1", "Node"))


def token_request(asked: Object, account: Object, token: str) -> dict[str, Any]:
    """The answer to a TokenRequest, which is decoded. The token does not expire before the cluster ends. Raises
    Rejected."""
    metadata = {each: account["metadata"][each] for each in ("name", "namespace")}
    if (name := (asked.get("metadata") or {}).get("name")) and name != metadata["name"]:
        cause = invalid_value("metadata.name", name, "must match the service account name if specified")
        raise invalid(TOKEN_REQUEST, metadata["name"], [cause])
    spec = dict(asked.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or ["https://kubernetes.default.svc"]
    spec["expirationSeconds"] = spec.get("expirationSeconds") or 3600
    if causes := list(_causes(spec["expirationSeconds"])):
        raise invalid(TOKEN_REQUEST, "", causes)
    _check_bound(spec.get("boundObjectRef"))
    return {
        "kind": TOKEN_REQUEST.kind,
        "apiVersion": TOKEN_REQUEST.api_version,
        "metadata": {**metadata, "creationTimestamp": now()},
        "spec": {"boundObjectRef": None, **spec},
        "status": {"token": token, "expirationTimestamp": timestamp(time.time() + spec["expirationSeconds"])},
    }


def _causes(seconds: int) -> Iterator[Cause]:
    field = "spec.expirationSeconds"
    if seconds < _SHORTEST:
        yield invalid_value(field, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST:
        yield invalid_value(field, seconds, "may not specify a duration larger than 2^32 seconds")


def _check_bound(reference: Object | None) -> None:
    """Raises Rejected if a token cannot be bound to an object of this kind. Whether the object exists is not
    checked."""
    if reference is None:
        return
    version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    if not reference.get("name"):
        raise bad_request("Name parameter required.")
    if (version or "v1", kind) not in _BOUND_TO:
        group, _, short = version.rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{short}, Kind={kind}")
