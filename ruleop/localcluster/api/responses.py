"""Responses in the form that a client asks for: objects, errors, warnings, and text for people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.api.requests.response_forms import (
    Form,
    check_form,
    choose_form,
    in_form,
    object_bytes,
    with_included,
)
from ruleop.localcluster.http.message import JSON_TYPE, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.localcluster.http.message import Request, Stream
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.status_errors import Rejected
    from ruleop.localcluster.store.object_store import Stored

TRUE: Final = ("true", "1", "True")
_BROWSERS: Final = ("curl", "Wget", "Mozilla/5.0")


def object_response(request: Request, served: Served, found: Stored, status: int) -> Response:
    form = form_asked(request, served)
    check_form(form, served, is_list=False)
    return in_form(form, Response(status, object_bytes(served, found, form)))


def is_for_people(request: Request) -> bool:
    """Whether somebody reads the response in a terminal or a browser."""
    asked = request.query.get("pretty")
    if asked is None:
        return request.headers.get("user-agent", "").startswith(_BROWSERS)
    return asked in TRUE


def indented(response: Response) -> Response:
    if not response.body or not response.content_type.startswith(JSON_TYPE):
        return response
    text = orjson.dumps(orjson.loads(response.body), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return replace(response, body=text)


def with_warnings(response: Response | Stream, warnings: list[str]) -> Response | Stream:
    """The response with a Warning header."""
    header = ", ".join(f"299 - {orjson.dumps(each).decode()}" for each in dict.fromkeys(warnings))
    return replace(response, headers={**response.headers, "Warning": header})


def refusal(error: Rejected) -> Response:
    return Response(error.code, orjson.dumps(error.document()), headers=error.headers)


def form_asked(request: Request, served: Served, *, watches: bool = False) -> Form:
    form = choose_form(request.headers.get("accept", ""), is_builtin=not served.is_custom, watches=watches)
    return form if form.name != "Table" else with_included(form, request.query.get("includeObject", ""))


def json_response(document: Mapping[str, Any], status: int = 200) -> Response:
    return Response(status, orjson.dumps(document))
