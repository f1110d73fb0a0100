"""A collection as an API server serves it: versions, a log of events that is compacted, pages, and streams. No I/O, and
no time."""

from __future__ import annotations

import copy
from typing import Any

import orjson

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.client.server_errors import ApiError, response_error

WIDGETS = ResourceInfo("widgets", namespaced=True, status_subresource=True, kind=Kind("example.com", "v1", "Widget"))
SOURCE = ObjectSource(WIDGETS)


def refusal(
    status: int, reason: str = "", *, verb: str = "watch", retry_after: str | None = None, **details: Any
) -> ApiError:
    body = orjson.dumps(
        {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": reason, "details": details}
    )
    return response_error(status, body, verb=verb, resource="widgets.example.com", retry_after=retry_after)


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": obj})


def bookmark(version: int, *, ends: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if ends:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": metadata})


class ModelServer:
    def __init__(self) -> None:
        self.version = 10
        self.compacted = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self.snapshots: dict[int, dict[str, dict[str, Any]]] = {10: {}}
        self.uids = 0

    def write(self, name: str, **fields: Any) -> dict[str, Any]:
        """Creates it, or changes its fields (spec, status, labels)."""
        self.version += 1
        known = self.objects.get(name)
        if known is None:
            self.uids += 1
            obj: dict[str, Any] = {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "metadata": {"name": name, "namespace": f"ns-{name}", "uid": f"uid-{self.uids}"},
                "spec": {},
            }
        else:
            obj = copy.deepcopy(known)
        labels = fields.pop("labels", None)
        if labels is not None:
            obj["metadata"]["labels"] = labels
        obj.update(fields)
        obj["metadata"]["resourceVersion"] = str(self.version)
        obj["metadata"]["managedFields"] = [{"manager": "test", "time": str(self.version)}]
        self.objects[name] = obj
        self._record("MODIFIED" if known else "ADDED", obj)
        return copy.deepcopy(obj)

    def delete(self, name: str) -> None:
        self.version += 1
        obj = copy.deepcopy(self.objects.pop(name))
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._record("DELETED", obj)

    def _record(self, kind: str, obj: dict[str, Any]) -> None:
        self.log.append((self.version, kind, obj))
        self.snapshots[self.version] = dict(self.objects)

    def since(self, version: int) -> list[bytes]:
        """What a watch from `version` brings; raises what the server says when it no longer knows."""
        if version < self.compacted:
            raise refusal(410, "Expired")
        return [line(kind, obj) for at, kind, obj in self.log if at > version]

    def initial(self, at: int) -> list[bytes]:
        """A streaming list: in no order, ended by a bookmark."""
        return [
            *(line("ADDED", obj) for _, obj in sorted(self.snapshots[at].items(), reverse=True)),
            bookmark(at, ends=True),
        ]

    def page(self, query: dict[str, str], at: int) -> bytes:
        """A page; the token holds the version that the list began with."""
        begun, _, skip = query.get("continue", f"{at}/0").partition("/")
        if int(begun) < self.compacted and "continue" in query:
            raise refusal(410, "Expired", verb="list")
        items = [obj for _, obj in sorted(self.snapshots[int(begun)].items())]
        limit = min(int(query.get("limit", "0")), 2) or len(items)
        shown = items[int(skip) : int(skip) + limit]
        metadata: dict[str, Any] = {"resourceVersion": begun}
        if int(skip) + limit < len(items):
            metadata["continue"] = f"{begun}/{int(skip) + limit}"
        bare = [{name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}} for obj in shown]
        return orjson.dumps({"kind": "WidgetList", "metadata": metadata, "items": bare})
