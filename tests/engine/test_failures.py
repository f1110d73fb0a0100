"""What each answer of the API server means to a plan, and what is said of it."""

from __future__ import annotations

import orjson
import pytest

from ruleop.engine.reconcile.failures import classify, told
from ruleop.errors import RuleopError
from ruleop.kube.client.errors import ApiError, Problem, answer_error
from ruleop.planning import Failure
from ruleop.planning.failures import _FIELD


def error(problem, verb="patch", **more):
    return ApiError(problem, verb=verb, resource="configmaps shop/a", text="as it was said", **more)


def status(code, reason, message="no", causes=(), verb="create", resource="secrets shop/a"):
    body = orjson.dumps({"kind": "Status", "reason": reason, "message": message, "details": {"causes": list(causes)}})
    return answer_error(code, body, verb=verb, resource=resource)


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
def test_each_problem_of_a_write_has_its_meaning(problem, failure):
    assert classify(error(problem)) == (failure, None)


def test_no_problem_is_forgotten():
    marked = test_each_problem_of_a_write_has_its_meaning.pytestmark[0].args[1]
    assert {problem for problem, _ in marked} == set(Problem)


@pytest.mark.parametrize("problem", [Problem.TIMEOUT, Problem.SERVER])
def test_of_a_read_there_is_nothing_unknown(problem):
    assert classify(error(problem, verb="get")) == (Failure.OTHER, None)


def test_what_a_new_object_needs_is_not_found_by_planning_again():
    assert classify(error(Problem.NOT_FOUND, verb="create")) == (Failure.OTHER, None)


def test_a_field_that_cannot_change_is_immutable():
    said = error(Problem.INVALID, status=422, causes=())
    said.text = "spec.selector: field is immutable"
    assert classify(said) == (Failure.IMMUTABLE, None)


def test_a_namespace_on_its_way_out_is_no_matter_of_rights():
    causes = [{"reason": "NamespaceTerminating", "field": "metadata.namespace", "message": "namespace shop is being terminated"}]
    assert classify(status(403, "Forbidden", causes=causes)) == (Failure.OTHER, None)


@pytest.mark.parametrize("problem", Problem, ids=str)
def test_retry_after_is_passed_on(problem):
    assert classify(error(problem, retry_after=7.0))[1] == 7.0


def test_what_is_no_answer_of_the_server_is_tried_again():
    assert classify(RuleopError("something else")) == (Failure.OTHER, None)


# -- words -------------------------------------------------------------------------------------------------------------


def test_an_error_is_told_as_it_was_said():
    assert told(error(Problem.INVALID)) == "patch configmaps shop/a: as it was said"
    assert told(RuleopError("something else")) == "something else"


def invalid(*causes, resource="secrets shop/a", verb="create"):
    message = f'Secret "a" is invalid: {", ".join(cause["message"] for cause in causes)}'
    return status(422, "Invalid", message, causes, resource=resource, verb=verb)


def cause(field, reason="FieldValueInvalid"):
    return {"field": field, "reason": reason, "message": f'{field}: Invalid value: "hunter2": no'}


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        ([cause("data[pass]")], "create secrets shop/a: the object is invalid: data[pass]: Invalid value"),
        ([cause("type", "FieldValueRequired")], "create secrets shop/a: the object is invalid: type: Required value"),
        ([cause("x", "SomethingNew")], "create secrets shop/a: the object is invalid: x: Invalid"),
        (
            [cause("type", "FieldValueNotSupported"), cause("data", "FieldValueForbidden"), cause("data", "FieldValueForbidden")],
            "create secrets shop/a: the object is invalid: [data: Forbidden, type: Unsupported value]",
        ),
    ],
)
def test_a_refused_secret_is_told_by_reason_and_field(causes, said):
    refused = invalid(*causes)
    assert told(refused) == said
    assert _FIELD.search(told(refused))[1] == min(each["field"] for each in causes), "planning finds the field in it"


@pytest.mark.parametrize(
    "refused",
    [
        invalid(cause('data["hunter2"]')),
        status(403, "Forbidden", "a webhook denies hunter2"),
        status(500, "InternalError", "a webhook chokes on hunter2"),
        status(400, "BadRequest", "cannot decode hunter2"),
        status(413, "RequestEntityTooLarge", "hunter2 is too large"),
        status(409, "Conflict", "hunter2", [cause("data[pass]")], verb="patch"),
    ],
    ids=lambda refused: str(refused.status),
)
def test_whatever_is_said_of_a_secret_its_value_is_not(refused):
    assert "hunter2" not in told(refused)
    assert told(refused).startswith(f"{refused.verb} secrets shop/a: {refused.status} {refused.reason}")


def test_what_the_server_did_not_say_holds_no_value():
    assert told(ApiError(Problem.TIMEOUT, verb="create", resource="secrets shop/a", text="no answer in 35 s")).endswith("no answer in 35 s")


def test_only_secrets_are_cut():
    refused = invalid(cause("data[x]"), resource="secretstores.example.com shop/a")
    assert "hunter2" in told(refused)


def test_a_read_of_a_secret_quotes_nothing():
    assert told(status(403, "Forbidden", "you may not", verb="get")) == "get secrets shop/a: you may not (403 Forbidden)"
