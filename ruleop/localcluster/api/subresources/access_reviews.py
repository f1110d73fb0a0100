"""Access reviews and reviews of tokens: every client that has the address of the server may do everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.validation.field_errors import invalid_value, required
from ruleop.localcluster.status_errors import bad_request, invalid_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Kind, Object
    from ruleop.core.validation.field_errors import FieldError
    from ruleop.localcluster.users import Users

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
