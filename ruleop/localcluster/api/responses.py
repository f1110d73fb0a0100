"""Responses in the form that a client asks for: the object, its metadata only, a table; and errors."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ruleop.localcluster.http.message import Response
from ruleop.localcluster.status_errors import Rejected, bad_request
from ruleop.localcluster.tables import cells, columns, conditions, custom_cells, custom_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.http.message import Request, ResponseStream
    from ruleop.localcluster.kinds import ServedKind
    from ruleop.localcluster.object_store import Stored

_TABLES: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_ANY: Final = frozenset({"", "*/*", "application/json", "application/*"})


class ResponseForm(NamedTuple):
    name: str = ""  # "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"
    version: str = "v1"  # of meta.k8s.io
    include: str = "Metadata"  # of the objects of a table's rows: None, Metadata or Object


PLAIN: Final = ResponseForm()


def form_asked(request: Request) -> ResponseForm:
    """The first form in the Accept header that is served. Raises Rejected if there is none."""
    for entry in request.headers.get("accept", "").split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        found = dict(each.partition("=")[::2] for each in parameters)
        name, version = found.get("as", ""), found.get("v", "")
        if media in _ANY and not name:
            return PLAIN
        if media in _ANY and name in _TABLES and found.get("g") == "meta.k8s.io" and version in ("v1", "v1beta1"):
            return ResponseForm(name, version, _included(request))
    raise Rejected(406, "NotAcceptable", "only the following media types are accepted: application/json")


def _included(request: Request) -> str:
    """The part of the objects that a table's rows have. Raises Rejected."""
    include = request.query.get("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise bad_request(f"includeObject must be None, Metadata or Object, not {include}")
    return include


def object_bytes(served: ServedKind, found: Stored, form: ResponseForm) -> bytes:
    """An object, given as `Served.seen` shows it."""
    if form.name == "Table":
        return orjson.dumps(table(served, [found.obj], str(found.version), form))
    if form.name:
        return orjson.dumps(partial(found.obj, form))
    return found.data


def partial(obj: Object, form: ResponseForm) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": _version(form), "metadata": obj["metadata"]}


def _version(form: ResponseForm) -> str:
    return f"meta.k8s.io/{form.version}"


def list_bytes(served: ServedKind, found: Sequence[Stored], metadata: dict[str, Any], form: ResponseForm) -> bytes:
    if form.name == "Table":
        document = table(served, [each.obj for each in found], metadata["resourceVersion"], form)
        document["metadata"] = metadata
        return orjson.dumps(document)
    if form.name:
        items = [partial(each.obj, form) for each in found]
        kind = {"kind": "PartialObjectMetadataList", "apiVersion": _version(form)}
        return orjson.dumps({**kind, "metadata": metadata, "items": items})
    if served.is_custom:
        metadata = {"continue": "", **metadata}
    head = orjson.dumps({"kind": served.list_kind, "apiVersion": served.kind.api_version, "metadata": metadata})
    return b"".join((head[:-1], b',"items":[', b",".join(_items(served, found)), b"]}"))


def _items(served: ServedKind, found: Iterable[Stored]) -> Iterable[bytes]:
    """Items of built-in kinds have no kind and apiVersion, as the real server's."""
    if served.is_custom:
        return (each.data for each in found)
    return (b'{"metadata":' + each.data.partition(b',"metadata":')[2] for each in found)


def table(served: ServedKind, objects: Iterable[Object], version: str, form: ResponseForm) -> dict[str, Any]:
    """The rows of `kubectl get`."""
    now = time.time()
    return {
        "kind": "Table",
        "apiVersion": _version(form),
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [
            each.as_json() for each in (custom_columns(served.columns) if served.is_custom else columns(served.kind))
        ],
        "rows": [_row(served, obj, form, now) for obj in objects],
    }


def _row(served: ServedKind, obj: Object, form: ResponseForm, now: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "cells": custom_cells(served.columns, obj, now) if served.is_custom else cells(served.kind, obj, now)
    }
    if not served.is_custom and (found := conditions(served.kind, obj)):
        row["conditions"] = found
    row["object"] = {"Object": obj, "None": None}[form.include] if form.include != "Metadata" else partial(obj, form)
    return row


def object_response(request: Request, served: ServedKind, found: Stored, status: int) -> Response:
    return Response(status, object_bytes(served, found, form_asked(request)))


def with_warnings(response: Response | ResponseStream, warnings: list[str]) -> Response | ResponseStream:
    """The response with a Warning header."""
    header = ", ".join(f"299 - {orjson.dumps(each).decode()}" for each in dict.fromkeys(warnings))
    return replace(response, headers={**response.headers, "Warning": header})


def refusal(error: Rejected) -> Response:
    return Response(error.code, orjson.dumps(error.document()), headers=error.headers)


def json_response(document: Mapping[str, Any], status: int = 200) -> Response:
    return Response(status, orjson.dumps(document))
