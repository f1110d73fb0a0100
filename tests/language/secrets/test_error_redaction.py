"""A value of a Secret never leaves in an error, whatever the API server, a webhook or a proxy answers."""

from __future__ import annotations

import base64
import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.errors import Cause
from ruleop.language.secrets.secrecy import redacted
from ruleop.operator.wire.client.server_errors import ApiError, Problem, response_error

WRITES = ["create", "update", "patch", "delete"]
STATUSES = [400, 403, 404, 405, 409, 410, 413, 415, 418, 422, 429, 500, 501, 503, 504]
REASONS = ["", "Invalid", "Forbidden", "Conflict", "AlreadyExists", "InternalError", "Expired", "BadRequest", "Timeout"]


def status(code, reason, message="no", causes=(), *, verb="create", resource="secrets shop/a"):
    body = orjson.dumps({"kind": "Status", "reason": reason, "message": message, "details": {"causes": list(causes)}})
    return response_error(code, body, verb=verb, resource=resource)


def cause(field, reason="FieldValueInvalid"):
    return {"field": field, "reason": reason, "message": f'{field}: Invalid value: "hunter2": no'}


@pytest.mark.parametrize(
    ("causes", "mistakes"),
    [
        ([cause("data[pass]")], ": data[pass]: Invalid value"),
        ([cause("type", "FieldValueRequired")], ": type: Required value"),
        ([cause("data.x", "SomethingNew")], ": data.x"),
        (
            [cause("spec.containers[0].env[1].value", "FieldValueTooLong")],
            ": spec.containers[0].env[1].value: Too long",
        ),
        (
            [
                cause("type", "FieldValueNotSupported"),
                cause("data", "FieldValueForbidden"),
                cause("data", "FieldValueForbidden"),
            ],
            ": data: Forbidden, type: Unsupported value",
        ),
        ([cause('data["hunter2 "]')], ""),
        ([cause("hunter2")], ""),
        ([cause("")], ""),
        ([], ""),
    ],
)
def test_a_rejected_secret_is_described_by_field_and_kind_of_error(causes, mistakes):
    error = status(422, "Invalid", 'Secret "a" is invalid: "hunter2"', causes)
    assert str(error) == error.redacted == f"create secrets shop/a: rejected by the API server (422 Invalid){mistakes}"


@pytest.mark.parametrize(
    "error",
    [
        status(403, "Forbidden", "a webhook denies hunter2"),
        status(500, "InternalError", "a webhook chokes on hunter2"),
        status(400, "BadRequest", "cannot decode hunter2"),
        status(413, "RequestEntityTooLarge", "hunter2 is too large"),
        status(409, "Conflict", "hunter2", [cause("data[pass]")], verb="patch"),
        status(422, "hunter2", "hunter2"),
        response_error(502, b"<html>hunter2", verb="create", resource="secrets shop/a"),
        response_error(500, b'{"kind":"Status","message":"hunter2', verb="create", resource="secrets shop/a"),
    ],
    ids=lambda error: str(error.status),
)
def test_no_error_about_a_secret_contains_its_value(error):
    assert "hunter2" not in str(error) + repr(error) + error.redacted + repr(error.causes)
    assert str(error).startswith(f"{error.verb} secrets shop/a: rejected by the API server ({error.status}")


def test_the_text_of_ruleops_own_errors_is_kept():
    error = ApiError(Problem.TIMEOUT, verb="create", resource="secrets shop/a", text="no answer in 35 s")
    assert str(error) == error.redacted == "create secrets shop/a: no answer in 35 s"


def test_an_error_of_reading_a_secret_keeps_the_text_of_the_server_but_not_of_a_proxy():
    assert str(status(403, "Forbidden", "you may not", verb="get")) == "get secrets shop/a: you may not (403 Forbidden)"
    assert str(response_error(502, b"hunter2", verb="list", resource="secrets")) == "list secrets: no explanation (502)"


def test_errors_about_other_resources_are_redacted_only_on_request():
    error = status(422, "Invalid", "hunter2", [cause("data[x]")], resource="secretstores.example.com shop/a")
    assert "hunter2" in str(error)
    assert (
        error.redacted
        == "create secretstores.example.com shop/a: rejected by the API server (422 Invalid): data[x]: Invalid value"
    )


def test_a_rejected_secret_can_be_immutable():
    causes = [
        {
            "field": "data",
            "reason": "FieldValueForbidden",
            "message": "Forbidden: field is immutable when `immutable` is set",
        }
    ]
    assert status(422, "Invalid", causes=causes).immutable


def spellings(value: str) -> list[str]:
    """How servers write a value: as it is, in Go's quotes, as JSON, as base64, in a map."""
    return [
        value,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        base64.b64encode(value.encode()).decode(),
        f'map[string]string{{"p":{json.dumps(value)}}}',
        value.upper(),
        value[: len(value) // 2 + 4],
    ]


# A word that nothing but the Secret holds, among characters that could end a quotation or a path.
values = st.builds(
    "{}q7Zx{}".format,
    st.text(st.sampled_from("abcXYZ019 .[]-/_:;,'\"`\\\n\t(){}é"), max_size=12),
    st.text(st.sampled_from("abcXYZ019 .[]-/_:;,'\"`\\\n\t(){}é"), max_size=12),
)


@st.composite
def words(draw: st.DrawFn, value: str) -> str:
    """A sentence that quotes the value, in one of the forms of Kubernetes or a webhook's own."""
    quoted = draw(st.sampled_from(spellings(value)))
    form = draw(
        st.sampled_from(
            [
                "{}",
                'Secret "a" is invalid: data[p]: Invalid value: {}: must be shorter',
                'Secret "a" is invalid: [data[p]: Invalid value: {}: no, type: Unsupported value: {}]',
                'admission webhook "w.example.com" denied the request: is invalid: {}: Invalid value',
                'Operation cannot be fulfilled on secrets "a": {}',
                'failed calling webhook "w": {}',
                "updates for fields other than '{}' are forbidden",
                "data: Forbidden: field is immutable {}",
            ]
        )
    )
    return form.replace("{}", quoted)


@st.composite
def refusals(draw: st.DrawFn, value: str, resource: str) -> ApiError:
    said = words(value)
    causes = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "field": st.sampled_from(["data[p]", "data", "", "spec.x"]) | said,
                    "reason": st.sampled_from(["FieldValueInvalid", "FieldManagerConflict", ""]) | said,
                    "message": said,
                }
            ),
            max_size=3,
        )
    )
    code, verb = draw(st.sampled_from(STATUSES)), draw(st.sampled_from(WRITES))
    body = orjson.dumps(
        {
            "kind": draw(st.sampled_from(["Status", "Page"])),
            "reason": draw(st.sampled_from(REASONS) | said),
            "message": draw(said),
            "details": {"causes": causes, "name": draw(said)},
        }
    )
    if draw(st.booleans()):
        body = draw(said).encode()
    return response_error(code, body, verb=verb, resource=resource, retry_after=draw(st.none() | said))


@given(st.data(), values)
def test_no_text_of_a_server_reveals_a_value_of_a_secret(data: st.DataObject, value: str):
    error = data.draw(refusals(value, "secrets shop/a"))
    assert "q7zx" not in f"{error} {error!r} {error.args} {error.redacted}".lower()


@given(st.data(), values)
def test_the_redacted_message_of_any_other_object_reveals_no_value(data: st.DataObject, value: str):
    error = data.draw(refusals(value, "deployments.apps shop/a"))
    assert "q7zx" not in error.redacted.lower()


@given(st.text(), st.text(), st.text())
def test_a_redacted_message_is_one_line_with_a_fixed_beginning(reason: str, field: str, mistake: str):
    text = redacted(422, reason, [Cause(field, mistake, "x")])
    assert text.startswith("rejected by the API server (422")
    assert "\n" not in text
