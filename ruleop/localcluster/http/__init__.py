"""An HTTP/1.1 server on asyncio and llhttp: requests in, responses and streams out."""

from ruleop.localcluster.http.message import (
    JSON_TYPE,
    NO_HEADERS,
    AnyResponse,
    Disconnect,
    LaterResponse,
    Request,
    Response,
    ResponseSink,
    ResponseStream,
)
from ruleop.localcluster.http.protobuf import MEDIA_TYPE, ProtobufError, read_protobuf
from ruleop.localcluster.http.server import ClusterServer

__all__ = [
    "JSON_TYPE",
    "MEDIA_TYPE",
    "NO_HEADERS",
    "AnyResponse",
    "ClusterServer",
    "Disconnect",
    "LaterResponse",
    "ProtobufError",
    "Request",
    "Response",
    "ResponseSink",
    "ResponseStream",
    "read_protobuf",
]
