"""Watches: the events of a resource from a version on, as the real server's watch cache brings them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.api.responses import ResponseForm, object_bytes, partial, table
from ruleop.localcluster.kinds import CRDS, resource_of
from ruleop.localcluster.object_store import TooOldError, stored
from ruleop.localcluster.objects import zero_object
from ruleop.localcluster.status_errors import Rejected, expired

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.options import ListOptions
    from ruleop.localcluster.api.selectors import Predicate
    from ruleop.localcluster.http.message import ResponseSink
    from ruleop.localcluster.kinds import ServedKind
    from ruleop.localcluster.object_store import Store, Stored, StoreEvent

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
        obj = {**zero_object(self.served.shape), **named}
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
