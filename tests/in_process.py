"""The requests of the operator's client, answered by a cluster in the same process: what a connection would send and
receive."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from ruleop.localcluster.http import Request as HttpRequest
from ruleop.localcluster.http import Response
from ruleop.operator.wire.client.server_errors import response_error
from ruleop.operator.wire.http.connection import PreparedRequest


def received(request: PreparedRequest) -> HttpRequest:
    """A request as the server receives it."""
    headers = {"content-type": request.content_type, "accept": request.accept}
    query = dict(parse_qsl(request.query))
    return HttpRequest(request.method, unquote(request.path), query, headers, request.body or b"")


def body_of(response: Response, request: PreparedRequest) -> bytes:
    """The body of an answer. Raises ApiError for an error."""
    if response.status < 300:
        return response.body
    raise response_error(
        response.status,
        response.body,
        verb=request.verb,
        resource=request.resource,
        retry_after=response.headers.get("Retry-After"),
    )
