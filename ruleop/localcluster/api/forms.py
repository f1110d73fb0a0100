"""Objects and lists in the forms that clients ask for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.tables.builtin import cells, columns, conditions
from ruleop.localcluster.tables.custom import custom_cells, custom_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ruleop.kinds import Object
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.store.store import Stored

_META: Final = "meta.k8s.io/v1"


def object_bytes(served: Served, found: Stored, form: str) -> bytes:
    """An object, given as `Served.seen` shows it."""
    if form == "Table":
        return orjson.dumps(table(served, [found.obj], str(found.version), "Metadata"))
    if form in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        return orjson.dumps(partial(found.obj))
    return found.data


def partial(obj: Object) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def list_bytes(served: Served, found: Sequence[Stored], metadata: dict[str, Any], form: str, include: str) -> bytes:
    if form == "Table":
        document = table(served, [each.obj for each in found], metadata["resourceVersion"], include)
        document["metadata"] = metadata
        return orjson.dumps(document)
    if form in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        items = [partial(each.obj) for each in found]
        return orjson.dumps(
            {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": items}
        )
    if served.is_custom:
        metadata = {"continue": "", **metadata}
    head = orjson.dumps({"kind": served.list_kind, "apiVersion": served.kind.api_version, "metadata": metadata})
    return b"".join((head[:-1], b',"items":[', b",".join(_items(served, found)), b"]}"))


def _items(served: Served, found: Iterable[Stored]) -> Iterable[bytes]:
    """Items of built-in kinds have no kind and apiVersion, as the real server's."""
    if served.is_custom:
        return (object_bytes(served, each, "") for each in found)
    return (b'{"metadata":' + each.data.partition(b',"metadata":')[2] for each in found)


def table(served: Served, objects: Iterable[Object], version: str, include: str) -> dict[str, Any]:
    """The rows of `kubectl get`."""
    now = time.time()
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [
            each.as_json() for each in (custom_columns(served.columns) if served.is_custom else columns(served.kind))
        ],
        "rows": [_row(served, obj, include, now) for obj in objects],
    }


def _row(served: Served, obj: Object, include: str, now: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "cells": custom_cells(served.columns, obj, now) if served.is_custom else cells(served.kind, obj, now)
    }
    if not served.is_custom and (found := conditions(served.kind, obj)):
        row["conditions"] = found
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = partial(obj)
    return row
