"""Subresources, and the reviews that are answered without being stored.

The scale: the replicas of an object as autoscaling/v1 Scale. Bindings: a scheduler's choice of a node for a pod. Tokens
of service accounts: a client that sends one acts as that account. Access reviews and reviews of tokens: every client
that has the address of the server may do everything.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.times import now, timestamp
from ruleop.kubernetes.validation import FieldError, invalid_value
from ruleop.localcluster.api.bodies import check_namespace, decode_unstored, read_unstored
from ruleop.localcluster.status_errors import bad_request, conflict, internal, invalid, invalid_named

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.audit import Users
    from ruleop.localcluster.api.requests import Route
    from ruleop.localcluster.http import Request
    from ruleop.localcluster.kinds import ServedKind

SCALE: Final = Kind("autoscaling", "v1", "Scale")
_MOST_REPLICAS: Final = (1 << 31) - 1


def scale_of(served: ServedKind, obj: Object) -> dict[str, Any]:
    assert served.scale is not None
    metadata = {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in obj["metadata"]
    }
    status: dict[str, Any] = {"replicas": _at(obj, served.scale.status_replicas) or 0}
    if selector := _selector(served, obj):
        status["selector"] = selector
    replicas = _at(obj, served.scale.replicas)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def scale_configuration(served: ServedKind, scale: Object) -> dict[str, Any]:
    """The configuration of an object that applies what a Scale configures. Raises Rejected."""
    assert served.scale is not None
    if served.is_custom:  # a mistake of Kubernetes
        raise internal("request to convert CR to an invalid group/version: autoscaling/v1")
    kind, replicas = served.kind, (decode_unstored(scale, SCALE).get("spec") or {}).get("replicas")
    config = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": scale["metadata"]["name"]}}
    return config if replicas is None else _with(config, served.scale.replicas.split("."), replicas)


def scaled(served: ServedKind, obj: Object, scale: Object) -> dict[str, Any]:
    """The object with the replicas of a Scale, which is decoded."""
    assert served.scale is not None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        name = obj["metadata"]["name"]
        if served.is_custom:
            error = invalid_value(".spec.replicas", replicas, "should be a non-negative integer")
            raise invalid(served.kind, name, [error])
        error = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_named("autoscaling", "Scale", name, [error])
    found = _with(obj, served.scale.replicas.lstrip(".").split("."), replicas)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        found = {**found, "metadata": {**found["metadata"], "resourceVersion": version}}
    return found


def validate_scale(served: ServedKind, obj: Object) -> list[FieldError]:
    """Reasons that the replicas of a custom resource, or those in its status, cannot be shown in its scale
    subresource."""
    if served.scale is None:
        return []
    errors = []
    for path in (served.scale.replicas, served.scale.status_replicas):
        replicas = _at(obj, path)
        if replicas is not None and (type(replicas) is not int or not 0 <= replicas <= _MOST_REPLICAS):
            problem = f"should be an integer from 0 to {_MOST_REPLICAS}"
            errors.append(invalid_value(f".{path}", replicas, problem))
    return errors


def _at(obj: Any, path: str) -> Any:
    for name in path.lstrip(".").split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _with(obj: Any, names: list[str], value: Any) -> dict[str, Any]:
    first, *rest = names
    inner = obj if isinstance(obj, dict) else {}
    return {**inner, first: _with(inner.get(first), rest, value) if rest else value}


def _selector(served: ServedKind, obj: Object) -> str:
    assert served.scale is not None
    labels = _at(obj, served.scale.selector)
    if served.is_custom:
        return labels if isinstance(labels, str) else ""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if isinstance(labels, dict) else ""


_BINDING: Final = Kind("", "v1", "Binding")


def read_binding(request: Request, route: Route, served: ServedKind, warnings: list[str]) -> dict[str, Any]:
    """The Binding in the body of a request. Raises Rejected."""
    binding = read_unstored(request, _BINDING, warnings)
    check_namespace(binding, route.namespace, served)
    if (binding.get("metadata") or {}).get("name") != route.name:
        raise bad_request("name in URL does not match name in Binding object")
    if not (binding.get("target") or {}).get("name"):
        raise internal("target.name: Required value")
    return binding


def bound(pod: Object, binding: Object) -> dict[str, Any]:
    """The pod on the node that a Binding names. Raises Rejected if it has one."""
    if node := pod["spec"].get("nodeName"):
        name = pod["metadata"]["name"]
        raise conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{node}"')
    metadata, given = dict(pod["metadata"]), binding["metadata"]
    for field in ("labels", "annotations"):
        if given.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **given[field]}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}}


_LONGEST: Final = 1 << 32  # seconds
TOKEN_REQUEST: Final = Kind("authentication.k8s.io", "v1", "TokenRequest")


def token_request(asked: Object, account: Object, token: str) -> dict[str, Any]:
    """The response to a TokenRequest, which is decoded. The token does not expire before the cluster ends."""
    metadata = {each: account["metadata"][each] for each in ("name", "namespace")}
    spec = dict(asked.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or ["https://kubernetes.default.svc"]
    spec["expirationSeconds"] = min(spec.get("expirationSeconds") or 3600, _LONGEST)
    return {
        "kind": TOKEN_REQUEST.kind,
        "apiVersion": TOKEN_REQUEST.api_version,
        "metadata": {**metadata, "creationTimestamp": now()},
        "spec": {"boundObjectRef": None, **spec},
        "status": {"token": token, "expirationTimestamp": timestamp(time.time() + spec["expirationSeconds"])},
    }


_EVERYTHING: Final = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def review(kind: Kind, asked: Object, user: str, users: Users) -> dict[str, Any]:
    """The response to a review, which is decoded."""
    spec, status = asked.get("spec") or {}, dict[str, Any]()
    match kind.kind:
        case "SelfSubjectReview":
            status = {"userInfo": _user_info(user)}
        case "TokenReview" if (owner := users.name_of(spec.get("token", ""))) is not None:
            status = {"authenticated": True, "user": _user_info(owner)}
        case "TokenReview":
            status = {"user": {}, "error": "invalid bearer token"}
        case "SelfSubjectRulesReview":
            anywhere = {"verbs": ["*"], "nonResourceURLs": ["*"]}
            status = {"resourceRules": [_EVERYTHING], "nonResourceRules": [anywhere], "incomplete": False}
        case _:
            status = {"allowed": True, "reason": "a local cluster allows everything"}
    found = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": spec, "status": status}
    return found if spec else {name: value for name, value in found.items() if name != "spec"}


def _user_info(user: str) -> dict[str, Any]:
    groups = ["system:masters", "system:authenticated"]
    account = user.removeprefix("system:serviceaccount:")
    if account != user:
        namespace = account.partition(":")[0]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"username": user, "groups": groups}
