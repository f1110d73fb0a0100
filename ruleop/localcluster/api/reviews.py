"""Access reviews and tokens: every client that has the address of the server may do everything."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ruleop.localcluster.clock import now, timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.localcluster.kinds.served import Served


def review(served: Served, body: Any, user: str) -> dict[str, Any]:
    me = {"username": user, "groups": ["system:masters", "system:authenticated"]}
    spec = body.get("spec") or {} if isinstance(body, dict) else {}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    statuses: dict[str, dict[str, Any]] = {
        "TokenReview": {"authenticated": True, "user": me},
        "SelfSubjectReview": {"userInfo": me},
        "SelfSubjectRulesReview": {
            "resourceRules": [everything],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        },
    }
    status = statuses.get(served.kind.kind, {"allowed": True, "reason": "a local cluster allows everything"})
    found: dict[str, Any] = {"kind": served.kind.kind, "apiVersion": served.kind.api_version, "metadata": {}}
    if served.kind.kind != "SelfSubjectReview":
        found["spec"] = spec
    return {**found, "status": status}


def token_request(asked: Mapping[str, Any], account: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The answer to a TokenRequest for a service account. The token does not expire before the cluster ends."""
    metadata = {each: account["metadata"][each] for each in ("name", "namespace")}
    spec: dict[str, Any] = {"audiences": ["https://kubernetes.default.svc"], **asked}
    spec["expirationSeconds"] = spec.get("expirationSeconds") or 3600
    expires = timestamp(time.time() + spec["expirationSeconds"])
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**metadata, "creationTimestamp": now()},
        "spec": {"boundObjectRef": None, **spec},
        "status": {"token": token, "expirationTimestamp": expires},
    }
