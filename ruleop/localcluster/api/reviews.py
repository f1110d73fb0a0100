"""Access reviews: whoever has the address of the server may do everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ruleop.localcluster.kinds.served import Served

USER: Final = {"username": "local-admin", "groups": ["system:masters", "system:authenticated"]}


def review(served: Served, body: Any) -> dict[str, Any]:
    spec = body.get("spec") or {} if isinstance(body, dict) else {}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    statuses: dict[str, dict[str, Any]] = {
        "TokenReview": {"authenticated": True, "user": USER},
        "SelfSubjectReview": {"userInfo": USER},
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
