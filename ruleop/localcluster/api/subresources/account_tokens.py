"""Tokens of service accounts. A client that sends one acts as that account."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.kinds import Kind
from ruleop.core.validation.field_errors import invalid_value
from ruleop.localcluster.status_errors import bad_request, invalid
from ruleop.localcluster.timestamps import now, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

TOKEN_REQUEST: Final = Kind("authentication.k8s.io", "v1", "TokenRequest")
_SHORTEST, _LONGEST = 600, 1 << 32
_BOUND_TO: Final = (("v1", "Pod"), ("v1", "Secret"), ("v1", "Node"))


def token_request(asked: Object, account: Object, token: str) -> dict[str, Any]:
    """The response to a TokenRequest, which is decoded. The token does not expire before the cluster ends. Raises
    Rejected."""
    metadata = {each: account["metadata"][each] for each in ("name", "namespace")}
    if (name := (asked.get("metadata") or {}).get("name")) and name != metadata["name"]:
        error = invalid_value("metadata.name", name, "must match the service account name if specified")
        raise invalid(TOKEN_REQUEST, metadata["name"], [error])
    spec = dict(asked.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or ["https://kubernetes.default.svc"]
    spec["expirationSeconds"] = spec.get("expirationSeconds") or 3600
    if errors := list(_errors(spec["expirationSeconds"])):
        raise invalid(TOKEN_REQUEST, "", errors)
    _check_bound(spec.get("boundObjectRef"))
    return {
        "kind": TOKEN_REQUEST.kind,
        "apiVersion": TOKEN_REQUEST.api_version,
        "metadata": {**metadata, "creationTimestamp": now()},
        "spec": {"boundObjectRef": None, **spec},
        "status": {"token": token, "expirationTimestamp": timestamp(time.time() + spec["expirationSeconds"])},
    }


def _errors(seconds: int) -> Iterator[FieldError]:
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
