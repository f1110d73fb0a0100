"""The classification of each error of the API server."""

from __future__ import annotations

import orjson
import pytest

from ruleop.errors import RuleopError
from ruleop.operator.passes.executor import classify
from ruleop.operator.wire.client.server_errors import ApiError, Problem, response_error
from ruleop.planning import Failure


def error(problem, verb="patch", **more):
    return ApiError(problem, verb=verb, resource="configmaps shop/a", text="the message", **more)


def status(code, reason, message="no", causes=(), verb="create", resource="secrets shop/a"):
    body = orjson.dumps({"kind": "Status", "reason": reason, "message": message, "details": {"causes": list(causes)}})
    return response_error(code, body, verb=verb, resource=resource)


@pytest.mark.parametrize(
    ("problem", "failure"),
    [
        (Problem.CONFLICT, None),
        (Problem.EXISTS, None),
        (Problem.NOT_FOUND, None),
        (Problem.TIMEOUT, None),
        (Problem.SERVER, None),
        (Problem.FORBIDDEN, Failure.FORBIDDEN),
        (Problem.INVALID, Failure.INVALID),
        (Problem.TOO_LARGE, Failure.INVALID),
        (Problem.UNSUPPORTED, Failure.INVALID),
        (Problem.GONE, Failure.OTHER),
        (Problem.THROTTLED, Failure.OTHER),
        (Problem.UNAUTHORIZED, Failure.OTHER),
        (Problem.UNREACHABLE, Failure.OTHER),
        (Problem.UNTRUSTED, Failure.OTHER),
    ],
    ids=str,
)
def test_each_problem_of_a_write_is_classified(problem, failure):
    assert classify(error(problem)) == (failure, None)


def test_every_problem_has_a_classification():
    marked = test_each_problem_of_a_write_is_classified.pytestmark[0].args[1]
    assert {problem for problem, _ in marked} == set(Problem)


@pytest.mark.parametrize("problem", [Problem.TIMEOUT, Problem.SERVER])
def test_the_outcome_of_a_failed_read_is_never_unknown(problem):
    assert classify(error(problem, verb="get")) == (Failure.OTHER, None)


def test_not_found_in_response_to_a_create_is_not_planned_again():
    assert classify(error(Problem.NOT_FOUND, verb="create")) == (Failure.OTHER, None)


def test_an_immutable_field_error_is_classified_as_immutable():
    causes = [
        {"reason": "FieldValueInvalid", "field": "spec.selector", "message": "Invalid value: {}: field is immutable"}
    ]
    assert classify(status(422, "Invalid", causes=causes)) == (Failure.IMMUTABLE, None)


def test_a_terminating_namespace_is_not_a_missing_permission():
    causes = [
        {
            "reason": "NamespaceTerminating",
            "field": "metadata.namespace",
            "message": "namespace shop is being terminated",
        }
    ]
    assert classify(status(403, "Forbidden", causes=causes)) == (Failure.OTHER, None)


@pytest.mark.parametrize("problem", Problem, ids=str)
def test_retry_after_is_passed_on(problem):
    assert classify(error(problem, retry_after=7.0))[1] == 7.0


def test_an_error_that_is_not_from_the_server_is_retried():
    assert classify(RuleopError("something else")) == (Failure.OTHER, None)
