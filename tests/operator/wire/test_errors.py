"""Every refusal is classified once, and its message names the request."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from ruleop.operator.queue.work_queue import Backoff
from ruleop.operator.wire.client.server_errors import MAX_CAUSES, Problem, response_error
from tests.exploration import others_slow


def refused(
    status: int,
    reason: str = "",
    message: str = "",
    *,
    verb: str = "patch",
    resource: str = "deployments.apps prod/web",
    **details,
):
    body = orjson.dumps({"kind": "Status", "code": status, "reason": reason, "message": message, "details": details})
    return response_error(status, body, verb=verb, resource=resource)


@pytest.mark.parametrize(
    ("status", "reason", "problem", "retryable", "unknown"),
    [
        (400, "BadRequest", Problem.INVALID, False, False),
        (401, "Unauthorized", Problem.UNAUTHORIZED, True, False),
        (403, "Forbidden", Problem.FORBIDDEN, False, False),
        (404, "NotFound", Problem.NOT_FOUND, False, False),
        (405, "MethodNotAllowed", Problem.UNSUPPORTED, False, False),
        (409, "Conflict", Problem.CONFLICT, False, False),
        (409, "AlreadyExists", Problem.EXISTS, False, False),
        (410, "Expired", Problem.GONE, False, False),
        (413, "RequestEntityTooLarge", Problem.TOO_LARGE, False, False),
        (415, "UnsupportedMediaType", Problem.UNSUPPORTED, False, False),
        (418, "", Problem.INVALID, False, False),
        (422, "Invalid", Problem.INVALID, False, False),
        (429, "TooManyRequests", Problem.THROTTLED, True, False),
        (500, "InternalError", Problem.SERVER, True, True),
        (503, "ServiceUnavailable", Problem.SERVER, True, True),
        (504, "Timeout", Problem.SERVER, True, True),
    ],
)
def test_each_status_and_reason_has_a_problem_and_is_retryable_or_not(
    status: int, reason: str, problem: Problem, retryable: bool, unknown: bool
) -> None:
    error = refused(status, reason)
    assert (error.problem, error.retryable, error.outcome_unknown) == (problem, retryable, unknown)
    assert not refused(status, reason, verb="get").outcome_unknown


@pytest.mark.parametrize(
    "message",
    [
        "spec.selector: Invalid value: {}: field is immutable",
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden",
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
        "spec.containers: Forbidden: pod updates may not add or remove containers",
        "spec.clusterIPs[0]: Invalid value: []: may not change once set",
        "roleRef: Invalid value: {}: cannot change roleRef",
        "parameters: Forbidden: updates to parameters are forbidden.",
        "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        'ingressClassName: Invalid value: "x": Value is immutable',
    ],
)
def test_builtin_messages_about_immutable_fields_are_recognised(message: str) -> None:
    assert refused(
        422, "Invalid", causes=[{"field": "spec", "reason": "FieldValueForbidden", "message": message}]
    ).immutable
    assert refused(422, "Invalid", message).immutable
    assert not refused(403, "Forbidden", message).immutable


def cause(message: str, field: str = "spec", reason: str = "FieldValueInvalid") -> dict[str, str]:
    return {"field": field, "reason": reason, "message": message}


def test_the_uid_of_another_object_is_a_conflict() -> None:
    """The answer to an apply whose uid is that of an earlier object of the name."""
    uid = cause('Invalid value: "7": field is immutable', "metadata.uid")
    assert refused(422, "Invalid", causes=[uid, uid]).problem is Problem.CONFLICT
    assert refused(422, "Invalid", causes=[uid, cause("field is immutable")]).problem is Problem.INVALID


@pytest.mark.parametrize(
    "message",
    [
        'Invalid value: "": field is immutable',
        'Invalid value: {"matchLabels":{"a":"c"}}: field is immutable',
        'Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"c"}, MatchExpressions:[]v1.X(nil)}: field is immutable',
        "Forbidden: field is immutable when `immutable` is set",
        "Forbidden: may not be changed in an update.",
        'Forbidden: spec is immutable after creation except resources.requests for bound claims\n  core.Spec{\n  \tName: `a"b`,\n  }',
        'Invalid value: "object": the class is immutable once set',
        'Invalid value: "object": cannot update an immutable field',
    ],
)
def test_messages_of_validation_rules_and_crds_about_immutable_fields_are_recognised(message: str) -> None:
    assert refused(
        422, "Invalid", f'App.example.com "web" is invalid: spec.x: {message}', causes=[cause(message)]
    ).immutable
    assert refused(422, "Invalid", f'App.example.com "web" is invalid: spec.x: {message}').immutable


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: -1: must be greater than or equal to 0",
        'Not found: "immutable-store"',
        'Invalid value: "field is immutable": must be no more than 63 bytes',
        'Invalid value: "it said \\"field is immutable\\"": must be no more than 63 bytes',
        'Invalid value: "cannot be changed',
        "Required value: must be set if the image is immutable",
        "Forbidden: replicas cannot be changed during the freeze",
        "Forbidden: may not be changed when the claim is bound",
        "Forbidden: the field is immutable until the rollout is done",
    ],
)
def test_other_validation_errors_are_not_taken_for_immutable_fields(message: str) -> None:
    """To delete a healthy object would not help."""
    assert not refused(
        422, "Invalid", f'Deployment.apps "field is immutable" is invalid: spec.immutable: {message}'
    ).immutable
    assert not refused(422, "Invalid", "field is immutable", causes=[cause(message, "spec.immutable")]).immutable


def test_an_error_beside_the_immutable_field_is_not_resolved_by_recreating_the_object() -> None:
    never, negative = (
        cause("field is immutable", "spec.selector"),
        cause("Invalid value: -1: must be positive", "spec.replicas"),
    )
    assert refused(422, "Invalid", causes=[never, never]).immutable
    assert not refused(422, "Invalid", causes=[never, negative]).immutable
    both = 'Deployment.apps "web" is invalid: [spec.selector: field is immutable, spec.replicas: Invalid value: -1: must be positive]'
    assert not refused(422, "Invalid", both).immutable


def test_a_denial_by_a_policy_or_a_webhook_is_not_taken_for_an_immutable_field() -> None:
    policy = "ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: the class is immutable"
    assert not refused(
        422, "Invalid", f'apps.example.com "web" is forbidden: {policy}', causes=[cause(policy, "", "")]
    ).immutable
    assert not refused(
        422, "Invalid", 'admission webhook "keep.example.com" denied the request: the class is immutable'
    ).immutable


def test_an_error_message_names_verb_resource_and_causes() -> None:
    error = refused(
        403, "Forbidden", 'deployments.apps "web" is forbidden: User "operator" cannot patch resource "deployments"'
    )
    assert str(error) == (
        'patch deployments.apps prod/web: deployments.apps "web" is forbidden: User "operator" cannot patch resource "deployments"'
        " (403 Forbidden)"
    )
    causes = refused(
        422, "Invalid", "no", causes=[{"field": "spec.x", "reason": "FieldValueInvalid", "message": "bad"}]
    ).causes
    assert [(cause.field, cause.reason) for cause in causes] == [("spec.x", "FieldValueInvalid")]


WHOLE = '{"apiVersion":"v1","metadata":{"name":"q","labels":{"a":"]}\\"{"}},"spec":{"hard":{"limits.cpu":"ten"}},"list":[[1]]}'
QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
TYPED = (
    'core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Name:"", Labels:map[string]string{"a":"}"}}, Spec:core.PodSpec{}}'
)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f'"" is invalid: patch: Invalid value: {orjson.dumps(WHOLE).decode()}: {QUANTITY}', QUANTITY),
        (
            f'Job.batch "j" is invalid: spec.template: Invalid value: {WHOLE}: field is immutable',
            'Job.batch "j" is invalid: spec.template: Invalid value: field is immutable',
        ),
        (
            f'Job.batch "j" is invalid: spec.template: Invalid value: {TYPED}: field is immutable',
            'Job.batch "j" is invalid: spec.template: Invalid value: field is immutable',
        ),
        (
            f'X "x" is invalid: [spec.a: Invalid value: [{WHOLE}]: no, spec.b: Invalid value: {{"app":"a"}}: yes]',
            'X "x" is invalid: [spec.a: Invalid value: no, spec.b: Invalid value: {"app":"a"}: yes]',
        ),
        (
            f'X "x" is invalid: spec.a: Invalid value: map[string]string{{"a":"{"b" * 80}"}}: no',
            'X "x" is invalid: spec.a: Invalid value: no',
        ),
        (
            f'X "x" is invalid: metadata.name: Invalid value: "{"a" * 300}": must be no more than 253 characters',
            f'X "x" is invalid: metadata.name: Invalid value: "{"a" * 69}…": must be no more than 253 characters',
        ),
        (f"X is invalid: spec.a: Invalid value: {WHOLE[:90]}", "X is invalid: spec.a: Invalid value: "),
        ('X is invalid: spec.a: Invalid value: "b": no', 'X is invalid: spec.a: Invalid value: "b": no'),
        ("X is invalid: spec.a: Invalid value: 7: no", "X is invalid: spec.a: Invalid value: 7: no"),
        ("X is invalid: spec.a: Invalid value: a message {", "X is invalid: spec.a: Invalid value: a message {"),
    ],
    ids=["patch", "json", "literal of Go", "list", "map", "string", "cut off", "short", "number", "none"],
)
def test_an_object_in_a_message_is_left_out_and_the_reason_is_shown(message: str, shown: str) -> None:
    assert refused(422, "Invalid", message).text == f"{shown} (422 Invalid)"


def test_the_fields_that_the_server_lists_as_mutable_are_part_of_the_cause() -> None:
    message = "Forbidden: updates to statefulset spec for fields other than 'replicas', 'template' and 'minReadySeconds' are forbidden"
    (found,) = refused(422, "Invalid", causes=[cause(message, reason="FieldValueForbidden")]).causes
    assert found.mutable == {"replicas", "template", "minReadySeconds"}
    (found,) = refused(422, "Invalid", causes=[cause("Invalid value: 'replicas': field is immutable")]).causes
    assert found.mutable == frozenset()


def test_retry_after_is_read_from_the_status_and_the_header() -> None:
    assert refused(429, retryAfterSeconds=3).retry_after == 3.0
    assert response_error(429, b"", verb="get", resource="x", retry_after="7").retry_after == 7.0
    assert (
        response_error(429, b"", verb="get", resource="x", retry_after="Wed, 21 Oct 2026 07:28:00 GMT").retry_after
        is None
    )


def test_the_text_of_a_proxy_error_is_truncated() -> None:
    error = response_error(502, b"<html>" + b"x" * 1000, verb="get", resource="pods a/b")
    assert error.problem is Problem.SERVER
    assert len(str(error)) < 300


def test_terminating_namespaces_and_oversized_objects_are_recognised() -> None:
    assert refused(
        403, "Forbidden", causes=[{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]
    ).namespace_terminating
    assert refused(500, "", causes=[{"message": "etcdserver: request is too large"}]).problem is Problem.TOO_LARGE


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "etcdserver: request is too large"),  # 1.5 to 2 MB
        (
            500,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2700358 vs. 2097152)",
        ),  # up to 3 MB
        (413, "Request entity too large: limit is 3145728"),
    ],
)
def test_an_oversized_object_is_a_permanent_error(status: int, message: str) -> None:
    """The first two look like the server's own trouble, and nobody would try them again in vain."""
    error = refused(status, "", message)
    assert error.problem is Problem.TOO_LARGE
    assert not error.retryable
    assert not error.outcome_unknown
    assert "the object is too large" in str(error)
    assert refused(500, "", "etcdserver: request timed out").problem is Problem.SERVER


@pytest.mark.parametrize(
    ("message", "no_role"),
    [
        (
            'services is forbidden: User "system:serviceaccount:a:b" cannot create resource "services" in API group "" in the namespace "shop"',
            True,
        ),
        (
            'apps.example.com "web" is forbidden: User "x" cannot patch resource "apps/status" in API group "example.com" in the namespace "s"',
            True,
        ),
        (
            'namespaces is forbidden: User "x" cannot list resource "namespaces" in API group "" at the cluster scope: no binding',
            True,
        ),
        ('pods "a" is forbidden: exceeded quota: shop, requested: pods=1, used: pods=5, limited: pods=5', False),
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', False),
        (
            'roles.rbac.authorization.k8s.io "a" is forbidden: user "x" is attempting to grant RBAC permissions not currently held',
            False,
        ),
        ('admission webhook "w" denied the request: User cannot create it', False),
    ],
)
def test_missing_permission_is_distinguished_from_denial_by_a_policy(message: str, no_role: bool) -> None:
    body = orjson.dumps({"kind": "Status", "reason": "Forbidden", "message": message, "code": 403})
    assert response_error(403, body, verb="create", resource="services in shop").not_permitted is no_role


def test_a_role_that_grants_too_much_is_recognised_and_its_rules_are_left_out() -> None:
    rules = ", ".join('{APIGroups:[""], Resources:["pods"], Verbs:["get"]}' for _ in range(40))
    words = 'user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held'
    message = f'rolebindings.rbac.authorization.k8s.io "b" is forbidden: {words}:\n{rules}'
    body = orjson.dumps({"kind": "Status", "reason": "Forbidden", "message": message, "code": 403})
    error = response_error(403, body, verb="create", resource="rolebindings.rbac.authorization.k8s.io shop/b")
    assert (error.grants_too_much, error.not_permitted) == (True, False)
    assert str(error).endswith(f"{words} (403 Forbidden)")


ODD = [
    {"details": "overloaded"},
    {"details": ["overloaded"]},
    {"details": {"causes": ["overloaded", 7, None]}},
    {"details": {"causes": 7}},
    {"details": {"causes": "overloaded"}},
    {"details": {"causes": [{"field": 7, "reason": ["x"], "message": {"a": 1}}]}},
    {"details": {"retryAfterSeconds": "soon"}},
    {"details": {"retryAfterSeconds": True}},
    {"details": {"retryAfterSeconds": -1}},
    {"reason": ["x"], "message": {"a": 1}},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("status", [422, 429, 503])
def test_an_answer_that_is_not_quite_a_status_is_an_api_error_all_the_same(odd: dict[str, Any], status: int) -> None:
    body = orjson.dumps({"kind": "Status", **odd})
    error = response_error(status, body, verb="update", resource="leases a/b")
    assert error.status == status
    assert error.retry_after is None
    assert not error.immutable
    assert not error.not_permitted


def test_a_status_that_is_nested_deeper_than_python_formats_is_an_api_error() -> None:
    body = b'{"kind": "Status", "message": %b%b}' % (b"[" * 1000, b"]" * 1000)
    assert response_error(503, body, verb="get", resource="pods a/b").problem is Problem.SERVER


@pytest.mark.parametrize("header", ["²", "-1", "", "1.5", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_a_header_retry_after_that_is_not_a_number_is_ignored(header: str) -> None:
    assert response_error(429, b"", verb="get", resource="x", retry_after=header).retry_after is None


@pytest.mark.parametrize("header", ["31536000", "9" * 400])
def test_a_long_retry_after_is_cut_to_the_longest_backoff_of_a_cr(header: str) -> None:
    assert response_error(429, b"", verb="get", resource="x", retry_after=header).retry_after == Backoff().cap
    assert refused(429, retryAfterSeconds=31536000).retry_after == Backoff().cap


def test_only_the_first_causes_are_kept_and_more_of_them_are_not_resolved_by_recreating_the_object() -> None:
    immutable = [cause("field is immutable") for _ in range(MAX_CAUSES)]
    assert refused(422, "Invalid", causes=immutable).immutable
    error = refused(422, "Invalid", causes=[*immutable, cause("field is immutable")])
    assert len(error.causes) == MAX_CAUSES + 1
    assert not error.immutable


QUADRATIC = [
    "fields other than ",
    'User "',
    '"\\',
    '\\"',
    "updates to ",
    "' fields other than '",
    "[",
    "is ",
    "if ",
    "Invalid value: [",
    "{",
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", others_slow(QUADRATIC, '"\\'))
def test_a_quoted_value_of_a_megabyte_is_read_in_linear_time(piece: str) -> None:
    """Quadratic, this takes minutes, and the test ends by its timeout."""
    text = piece * ((1 << 20) // len(piece))
    for message in (text, f'Invalid value: "{text}": must be no more than 63 bytes'):
        error = refused(422, "Invalid", message, causes=[cause(message, field=text)] * 2)
        assert not error.immutable
        assert not error.not_permitted
        refused(422, "Invalid", message).immutable  # noqa: B018 - only that it ends
