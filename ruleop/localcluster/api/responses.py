"""Responses in the form that a client asks for (the object, its metadata only, a table), errors, and watches: the
events of a resource from a version on, as the real server's watch cache brings them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ruleop.localcluster.http import Response
from ruleop.localcluster.kinds import resource_of
from ruleop.localcluster.object_store import CRDS, TooOldError, stored
from ruleop.localcluster.objects import zero_of
from ruleop.localcluster.status_errors import Rejected, bad_request, expired
from ruleop.localcluster.tables import conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.requests import ListOptions, Predicate
    from ruleop.localcluster.http import Request, ResponseSink, ResponseStream
    from ruleop.localcluster.kinds import ServedKind
    from ruleop.localcluster.object_store import Store, Stored, StoreEvent


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
        "columnDefinitions": served.printer.definitions(),
        "rows": [_row(served, obj, form, now) for obj in objects],
    }


def _row(served: ServedKind, obj: Object, form: ResponseForm, now: float) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": served.printer.cells(obj, now)}
    if found := conditions(served.kind, obj):
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


# -- watches ---------------------------------------------------------------------------------------------------------


BOOKMARK_PERIOD: Final = 60.0  # seconds
DEFAULT_TIMEOUT: Final = 1800
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class OpenWatch:
    """One watch. `start` is called when its connection is ready."""

    def __init__(
        self,
        store: Store,
        served: ServedKind,
        namespace: str,
        selection: Predicate | None,
        options: ListOptions,
        form: ResponseForm,
    ) -> None:
        self.store, self.served, self.namespace = store, served, namespace
        self.selection, self.options, self.form = selection, options, form
        self._sink: ResponseSink
        self._sent_columns = False
        self._timers: list[asyncio.TimerHandle] = []
        self._stop_listening: Callable[[], None] = lambda: None
        self._stop_following: Callable[[], None] = lambda: None

    def start(self, sink: ResponseSink) -> Callable[[], None]:
        self._sink = sink
        try:
            self._begin()
        except Rejected as error:
            self._send("ERROR", orjson.dumps(error.document()))
            sink.end()
            return lambda: None
        self._stop_listening = self.store.listen(self.served.resource, self._event)
        if self.served.is_custom:
            self._stop_following = self.store.listen(CRDS, self._definition_changed)
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(float(self.options.timeout or DEFAULT_TIMEOUT), sink.end))
        if self.options.bookmarks:
            self._timers.append(loop.call_later(BOOKMARK_PERIOD, self._bookmark_again))
        return self.stop

    def stop(self) -> None:
        self._stop_listening()
        self._stop_following()
        for timer in self._timers:
            timer.cancel()

    def _definition_changed(self, event: StoreEvent) -> None:
        """The watches of a kind end with it, and when its definition changes."""
        if resource_of(event.new.obj) != self.served.resource:
            return
        if event.deleted or (event.old is not None and event.old.obj["spec"] != event.new.obj["spec"]):
            self._sink.end()

    def _begin(self) -> None:
        """Sends what is older than the watch's connection."""
        version = self.options.version
        if self.options.initial_events or (self.options.initial_events is None and not version):
            for each in self.store.all(self.served.resource, self.namespace):
                if self._selects(each):
                    self._send_object("ADDED", each)
            if self.options.initial_events and self.options.bookmarks:
                self._bookmark({INITIAL_EVENTS_END: "true"})
            return
        if not version:
            return
        try:
            for event in self.store.since(self.served.resource, version):
                self._event(event)
        except TooOldError:
            oldest = self.store.known_since(self.served.resource)
            raise expired(f"too old resource version: {version} ({oldest})") from None

    def _event(self, event: StoreEvent) -> None:
        if self.namespace and event.new.name.namespace != self.namespace:
            return
        before = event.old is not None and self._selects(event.old)
        after = not event.deleted and self._selects(event.new)
        if after:
            self._send_object("MODIFIED" if before else "ADDED", event.new)
        elif before:
            assert event.old is not None
            self._send_object("DELETED", event.new if event.deleted else stored(event.old.obj, event.version))

    def _selects(self, found: Stored) -> bool:
        return self.selection is None or self.selection(self.served.seen(found).obj)

    def _send_object(self, type_: str, found: Stored) -> None:
        found = self.served.seen(found)
        if self.form.name != "Table":
            self._send(type_, object_bytes(self.served, found, self.form))
            return
        self._send_table(type_, found.obj, str(found.version))

    def _send_table(self, type_: str, obj: Object, version: str) -> None:
        document = table(self.served, [obj], version, self.form)
        if self._sent_columns:  # only the first event has them
            document["columnDefinitions"] = None
        self._sent_columns = True
        self._send(type_, orjson.dumps(document))

    def _send(self, type_: str, data: bytes) -> None:
        self._sink.send(b'{"type":"%b","object":%b}\n' % (type_.encode(), data))

    def _bookmark(self, annotations: dict[str, str] | None = None) -> None:
        version, kind = str(self.store.version), self.served.kind
        metadata: dict[str, Any] = {"resourceVersion": version}
        if annotations:
            metadata["annotations"] = annotations
        # Of a built-in kind, the real server sends an empty object of its Go type.
        named = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        obj = {**zero_of(self.served.shape), **named}
        match self.form.name:
            case "Table":
                self._send_table("BOOKMARK", obj, version)
            case "":
                self._send("BOOKMARK", orjson.dumps(obj))
            case _:
                self._send("BOOKMARK", orjson.dumps(partial(obj, self.form)))

    def _bookmark_again(self) -> None:
        self._bookmark()
        self._timers.append(asyncio.get_running_loop().call_later(BOOKMARK_PERIOD, self._bookmark_again))
