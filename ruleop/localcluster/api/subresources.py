"""Subresources, and the reviews that are answered without being stored.

The scale: the replicas of an object as autoscaling/v1 Scale. Bindings: a scheduler's choice of a node for a pod. Tokens
of service accounts: a client that sends one acts as that account. Access reviews and reviews of tokens: every client
that has the address of the server may do everything.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation.field_errors import FieldError, invalid_value, required, unsupported
from ruleop.localcluster.api.bodies import check_namespace, decode_unstored, read_unstored
from ruleop.localcluster.status_errors import bad_request, conflict, internal, invalid, invalid_named
from ruleop.localcluster.timestamps import now, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.route import Route
    from ruleop.localcluster.audit import Users
    from ruleop.localcluster.http.message import Request
    from ruleop.localcluster.kinds.served import Served

SCALE: Final = Kind("autoscaling", "v1", "Scale")
_MOST_REPLICAS: Final = (1 << 31) - 1


def scale_of(served: Served, obj: Object) -> dict[str, Any]:
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


def scale_configuration(served: Served, scale: Object) -> dict[str, Any]:
    """The configuration of an object that applies what a Scale configures. Raises Rejected."""
    assert served.scale is not None
    if served.is_custom:  # a mistake of Kubernetes
        raise internal("request to convert CR to an invalid group/version: autoscaling/v1")
    kind, replicas = served.kind, (decode_unstored(scale, SCALE).get("spec") or {}).get("replicas")
    config = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": scale["metadata"]["name"]}}
    return config if replicas is None else _with(config, served.scale.replicas.split("."), replicas)


def scaled(served: Served, obj: Object, scale: Object) -> dict[str, Any]:
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


def validate_scale(served: Served, obj: Object) -> list[FieldError]:
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


def _selector(served: Served, obj: Object) -> str:
    assert served.scale is not None
    labels = _at(obj, served.scale.selector)
    if served.is_custom:
        return labels if isinstance(labels, str) else ""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if isinstance(labels, dict) else ""


_BINDING: Final = Kind("", "v1", "Binding")


def read_binding(request: Request, route: Route, served: Served, warnings: list[str]) -> dict[str, Any]:
    """The Binding in the body of a request. Raises Rejected."""
    binding = read_unstored(request, _BINDING, warnings)
    check_namespace(binding, route.namespace, served)
    if (binding.get("metadata") or {}).get("name") != route.name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    errors = (
        []
        if target.get("kind") in (None, "", "Node")
        else [unsupported("target.kind", target["kind"], ("Node", "<empty>"))]
    )
    errors += [] if target.get("name") else [required("target.name")]
    if errors:
        raise internal(f"{errors[0].field}: {errors[0].message}")
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


_OF_OTHERS: Final = ("SubjectAccessReview", "LocalSubjectAccessReview")
_EVERYTHING: Final = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def review(kind: Kind, asked: Object, user: str, users: Users) -> dict[str, Any]:
    """The response to a review, which is decoded. Raises Rejected."""
    spec = asked.get("spec") or {}
    found: dict[str, Any] = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}}
    if kind.kind == "SelfSubjectReview":
        return {**found, "status": {"userInfo": _user_info(user)}}
    return {**found, "spec": spec, "status": _status(kind, asked, spec, users)}


def _status(kind: Kind, asked: Object, spec: Object, users: Users) -> dict[str, Any]:
    if kind.kind == "TokenReview":
        return _token_status(spec.get("token", ""), users)
    if kind.kind == "SelfSubjectRulesReview":
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        anywhere = {"verbs": ["*"], "nonResourceURLs": ["*"]}
        return {"resourceRules": [_EVERYTHING], "nonResourceRules": [anywhere], "incomplete": False}
    if errors := list(_validate_access(kind, asked, spec)):
        raise invalid_named(kind.group, "", "", errors)
    return {"allowed": True, "reason": "a local cluster allows everything"}


def _token_status(token: str, users: Users) -> dict[str, Any]:
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    if (user := users.name_of(token)) is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _user_info(user)}


def _user_info(user: str) -> dict[str, Any]:
    groups = ["system:masters", "system:authenticated"]
    account = user.removeprefix("system:serviceaccount:")
    if account != user:
        namespace = account.partition(":")[0]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"username": user, "groups": groups}


def _validate_access(kind: Kind, asked: Object, spec: Object) -> Iterator[FieldError]:
    typed, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if typed is not None and other is not None:
        problem = "cannot be specified in combination with resourceAttributes"
        yield invalid_value("spec.nonResourceAttributes", _as_printed(other), problem)
    elif typed is None and other is None:
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid_value("spec.resourceAttributes", None, problem)
    elif typed is not None:
        for name in ("fieldSelector", "labelSelector"):
            yield from _validate_selector(typed.get(name), f"spec.resourceAttributes.{name}")
    if kind.kind in _OF_OTHERS and not spec.get("user") and not spec.get("groups"):
        yield invalid_value("spec.user", "", "at least one of user or group must be specified")
    if kind.kind != "LocalSubjectAccessReview":
        return
    namespace = (typed or {}).get("namespace", "")
    if typed is not None and namespace != (asked.get("metadata") or {}).get("namespace"):
        yield invalid_value("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace")
    if other is not None:
        problem = "disallowed on this kind of request"
        yield invalid_value("spec.nonResourceAttributes", _as_printed(other), problem)


def _validate_selector(selector: Object | None, field: str) -> Iterator[FieldError]:
    if selector is None:
        return
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        yield invalid_value(f"{field}.rawSelector", raw, "may not specified at the same time as requirements")
    elif not raw and not requirements:
        problem = f"when {field} is specified, requirements or rawSelector is required"
        yield required(f"{field}.requirements", problem)


def _as_printed(attributes: Object) -> dict[str, Any]:
    """As Go prints the internal type."""
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}
