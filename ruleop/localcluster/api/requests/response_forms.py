"""Objects and lists in the forms that clients ask for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from ruleop.localcluster.api.requests.accept import YAML
from ruleop.localcluster.http.message import Response
from ruleop.localcluster.tables.builtin_columns import cells, columns, conditions
from ruleop.localcluster.tables.custom import custom_cells, custom_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ruleop.core.kinds import Object
    from ruleop.localcluster.api.requests.accept import Form
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.store.object_store import Stored


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
