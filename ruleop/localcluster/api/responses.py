"""Responses in the form that a client asks for: the object, its metadata only, a table, errors, text for people."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import yaml

from ruleop.localcluster.api.options import TRUE
from ruleop.localcluster.http.message import JSON_TYPE, Response
from ruleop.localcluster.status_errors import READ_TYPES, STREAM_TYPES, bad_request, no_representation, not_acceptable
from ruleop.localcluster.tables.builtin import cells, columns, conditions
from ruleop.localcluster.tables.custom import custom_cells, custom_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.http.message import Request, Stream
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.object_store import Stored
    from ruleop.localcluster.status_errors import Rejected

YAML: Final = "application/yaml"
_VERSIONS: Final = ("v1", "v1beta1")  # of tables and metadata
_ANY: Final = frozenset({"*/*", "application/json"})


class Form(NamedTuple):
    name: str = ""  # "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"
    is_yaml: bool = False
    version: str = "v1"  # of meta.k8s.io
    include: str = "Metadata"  # of the objects of a table's rows: None, Metadata or Object


PLAIN: Final = Form()


def choose_form(accept: str, *, is_builtin: bool, watches: bool = False) -> Form:
    """The first form in the Accept header that is served. Raises Rejected if there is none."""
    if not accept or accept in _ANY:
        return PLAIN
    known = False
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        if media not in _ANY and media != YAML:
            continue
        if media == YAML and watches:
            raise not_acceptable(f"only the following media types are accepted: {STREAM_TYPES}")
        known = True
        found = dict(each.partition("=")[::2] for each in parameters)
        name, version = found.get("as", ""), found.get("v", "")
        if not name:
            return Form(is_yaml=media == YAML)
        if found.get("g") != "meta.k8s.io" or version not in _VERSIONS:
            continue
        if name in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return Form(name, is_yaml=media == YAML, version=version)
    if is_builtin and not known:
        raise no_representation(f"{READ_TYPES}, {STREAM_TYPES}" if watches else READ_TYPES)
    raise not_acceptable(f"only the following media types are accepted: {READ_TYPES}")


def with_included(form: Form, include: str) -> Form:
    """The form of a table with the given part of its objects. Raises Rejected."""
    if include not in ("", "None", "Metadata", "Object"):
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": must be '
            "'Metadata', 'Object', 'None', or empty"
        )
    return form._replace(include=include or "Metadata")


def check_form(form: Form, served: Served, *, is_list: bool) -> None:
    """Raises Rejected where the form of an object is asked of a list, or that of a list of an object."""
    kind = f"*{served.kind.group.partition('.')[0] or 'core'}.{served.kind.kind}"
    if served.is_custom:
        kind = "*unstructured.Unstructured"
    if is_list and form.name == "PartialObjectMetadata":
        raise not_acceptable(f"you requested {form.name}, but the requested object is a list ({kind}List)")
    if not is_list and form.name == "PartialObjectMetadataList":
        raise not_acceptable(f"you requested {form.name}, but the requested object is not a list ({kind})")


def object_bytes(served: Served, found: Stored, form: Form) -> bytes:
    """An object, given as `Served.seen` shows it."""
    if form.name == "Table":
        return orjson.dumps(table(served, [found.obj], str(found.version), form))
    if form.name:
        return orjson.dumps(partial(found.obj, form))
    return found.data


def in_form(form: Form, response: Response) -> Response:
    """The response, in YAML if that is the form."""
    if not form.is_yaml:
        return response
    text = yaml.safe_dump(orjson.loads(response.body), sort_keys=True, allow_unicode=True)
    return Response(response.status, text.encode(), YAML, response.headers)


def partial(obj: Object, form: Form) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": _version(form), "metadata": obj["metadata"]}


def _version(form: Form) -> str:
    return f"meta.k8s.io/{form.version}"


def list_bytes(served: Served, found: Sequence[Stored], metadata: dict[str, Any], form: Form) -> bytes:
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


def _items(served: Served, found: Iterable[Stored]) -> Iterable[bytes]:
    """Items of built-in kinds have no kind and apiVersion, as the real server's."""
    if served.is_custom:
        return (each.data for each in found)
    return (b'{"metadata":' + each.data.partition(b',"metadata":')[2] for each in found)


def table(served: Served, objects: Iterable[Object], version: str, form: Form) -> dict[str, Any]:
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


def _row(served: Served, obj: Object, form: Form, now: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "cells": custom_cells(served.columns, obj, now) if served.is_custom else cells(served.kind, obj, now)
    }
    if not served.is_custom and (found := conditions(served.kind, obj)):
        row["conditions"] = found
    row["object"] = {"Object": obj, "None": None}[form.include] if form.include != "Metadata" else partial(obj, form)
    return row


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
