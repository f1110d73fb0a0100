"""Any history of a collection, a server and a network, against what a store must hold at the end and may never hold in
between."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.operator.wire.watch.reflector import Fetch, Follow, Reflector, Rest
from ruleop.operator.wire.watch.store import Store, StoreChange, StoreState
from tests.exploration import examples
from tests.operator.wire.model_server import SOURCE, ModelServer, bookmark, line, refusal

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


class World(RuleBasedStateMachine):
    """Each rule is one thing that may happen. The reflector's driver is here, so that it can be interrupted
    anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.server = ModelServer()
        self.store = Store(SOURCE)
        self.store.subscribe(self.hear)
        self.mirror: dict[Any, tuple[str, int]] = {}
        self.newest: dict[Any, int] = {}
        self.version = 0
        self.paged = False
        self.reflector = self.new_reflector()
        self.stream: list[bytes] | None = None
        self.sent = 0  # the stream has brought the log up to here
        self.answers: list[dict[str, Any]] = []
        self.dead: set[str] = set()  # uids that a live read did not find

    def new_reflector(self) -> Reflector:
        return Reflector(SOURCE, self.store, chance=lambda: 0.5, highest=self.store.version)

    def hear(self, change: StoreChange) -> None:
        """A listener that follows the changes has the contents of the store: no change is reported twice, out of order,
        or not at all."""
        known = self.mirror.get(change.key)
        assert known == (None if change.old is None else (change.old.uid, change.old.version))
        if change.new is None:
            del self.mirror[change.key]
            return
        assert change.new.uid not in self.dead, "gone is gone"
        assert change.new.version > self.newest.get(change.key, 0), "back in time"
        assert change.old is None or change.old.uid == change.new.uid, "a new uid is another object"
        self.newest[change.key] = change.new.version
        self.mirror[change.key] = (change.new.uid, change.new.version)

    # What happens to the objects

    @rule(name=NAMES, spec=st.integers(0, 3), ours=st.booleans())
    def somebody_writes(self, name, spec, ours):
        answer = self.server.write(name, spec={"size": spec})
        if ours:
            self.answers.append(answer)

    @rule(name=NAMES)
    def status_is_written(self, name):
        if name in self.server.objects:
            self.server.write(name, status={"at": self.server.version})

    @rule(name=NAMES, again=st.booleans())
    def somebody_deletes(self, name, again):
        self.delete(name, again)

    def delete(self, name, again):
        if name in self.server.objects:
            self.server.delete(name)
            if again:
                self.server.write(name, spec={"size": 9})

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def an_answer_to_our_write_arrives(self, data):
        self.store.put(self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1))))

    @rule(name=NAMES)
    def a_live_read_tells_what_is_gone(self, name):
        self.look_for(name)

    def look_for(self, name):
        """A live read is about the object that the store has."""
        key = ObjectKey("example.com", "Widget", f"ns-{name}", name)
        entry, live = self.store.entry(key), self.server.objects.get(name)
        if entry is not None and (live is None or live["metadata"]["uid"] != entry.uid):
            self.dead.add(entry.uid)
            self.store.remove(key, entry.uid)
            assert self.store.entry(key) is None

    @rule(name=NAMES, again=st.booleans())
    def we_write_what_somebody_deletes(self, name, again):
        """A live read finds it gone before the watch has reported either change."""
        self.store.put(self.server.write(name, spec={"size": 4}))
        self.delete(name, again)
        self.look_for(name)

    @rule()
    def the_server_forgets(self):
        self.server.compacted = self.server.version

    # What the driver does

    @rule(
        lag=st.sampled_from([0, 0, 0, 1, 3]),
        fault=st.sampled_from([None, None, None, 403, 404, 410, 429, 500, "unreachable"]),
    )
    def the_driver_goes_on(self, lag, fault):
        if self.stream is not None:
            return
        step = self.reflector.next(self.now)
        if isinstance(step, Rest):
            assert step.until > self.now
            return
        if fault is not None:
            status = 503 if fault == "unreachable" else fault
            self.reflector.failed(refusal(status, retry_after="1" if fault == 429 else None), self.now)
            self.look_at_state()
            return
        self.perform(step, max(10, self.server.version - lag))

    def perform(self, step: Any, at: int) -> None:
        """`at`: the version that the answering server has; one that lags behind is not to be believed."""
        query = dict(parse_qsl(step.request.query))
        try:
            if isinstance(step, Fetch):
                self.reflector.page(self.server.page(query, at), self.now)
                return
            assert isinstance(step, Follow)
            if "sendInitialEvents" in query:
                if self.paged:
                    raise refusal(422, "Invalid")
                self.stream, self.sent = self.server.initial(at), at
            else:
                self.server.since(int(query["resourceVersion"]))
                self.stream, self.sent = [], int(query["resourceVersion"])
            self.reflector.opened(self.now)
        except ApiError as error:
            self.stream = None
            self.reflector.failed(error, self.now)

    @rule(count=st.integers(1, 6), twice=st.booleans())
    def the_stream_brings(self, count, twice):
        if self.stream is None:
            return
        self.fill()
        lines, self.stream = self.stream[:count], self.stream[count:]
        self.reflector.lines(lines, self.now)
        if twice and self.reflector.reading:
            self.reflector.lines(lines, self.now)
        self.look_at_stream()

    def fill(self) -> None:
        assert self.stream is not None
        if not self.stream:
            self.stream = self.server.since(max(self.sent, self.server.compacted))
            if self.sent < self.server.compacted:
                self.stream = [line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})]
            elif not self.stream:
                self.stream = [bookmark(self.server.version)]
            self.sent = self.server.version

    def look_at_state(self) -> None:
        if self.store.state is StoreState.UNSERVED:
            self.newest.clear()  # when the kind is back, so are the objects, perhaps just as they were

    def look_at_stream(self) -> None:
        if not self.reflector.reading:
            self.stream = None

    @rule(event=st.sampled_from([410, 429, 500, 403, 404, 504]))
    def the_stream_says_error(self, event):
        if self.stream is not None:
            status = {"kind": "Status", "code": event, "reason": {410: "Expired"}.get(event, "")}
            self.reflector.lines([line("ERROR", status)], self.now)
            self.look_at_stream()
            self.look_at_state()
            assert self.stream is None, "an error ends it"

    @rule(how=st.sampled_from(["closed", "broken", "half a line", "silent", "nonsense"]))
    def the_stream_ends(self, how):
        if self.stream is None:
            return
        if how == "silent":
            self.now = self.reflector.deadline
            self.reflector.silent(self.now)
        elif how == "closed":
            self.reflector.closed(self.now)
        elif how == "broken":
            self.reflector.failed(refusal(503), self.now)
        else:
            said = b"<html>" if how == "nonsense" else b'{"type":"ADDED","object":{"metad'
            with pytest.raises(ApiError) as raised:
                self.reflector.lines([said], self.now)
            self.reflector.failed(raised.value, self.now)
        self.stream = None
        assert not self.reflector.reading

    @rule(seconds=st.sampled_from([0.1, 1.0, 10.0, 400.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def somebody_wakes_it(self):
        self.reflector.wake(self.now)

    @rule()
    def the_driver_crashes(self):
        self.stream = None
        self.reflector = self.new_reflector()

    @rule(paged=st.booleans())
    def another_api_server_answers(self, paged):
        self.paged = paged

    @invariant()
    def nothing_goes_back(self):
        assert self.store.listener_failures == 0, "what `hear` found wrong stands in the log"
        assert self.store.version >= self.version
        self.version = self.store.version
        assert self.mirror == {
            key: (entry.uid, entry.version)
            for key, entry in ((k, self.store.entry(k)) for k in self.store.select_keys())
        }

    def teardown(self) -> None:
        """Peace: after some time the store holds what the server holds."""
        for answer in self.answers:
            self.store.put(answer)
        for _ in range(60):
            if self.stream is not None:
                self.fill()
                lines, self.stream = self.stream, []
                self.reflector.lines(lines, self.now)
                self.look_at_stream()
                if self.stream is not None and self.sent == self.server.version:
                    break
                continue
            step = self.reflector.next(self.now)
            if isinstance(step, Rest):
                self.now = step.until
            else:
                self.perform(step, self.server.version)
        self.fill()
        self.reflector.lines(self.stream or [], self.now)
        assert self.store.state is StoreState.SYNCED
        assert self.store.problem == ""
        held = {obj["metadata"]["name"]: obj for obj in self.store.select()}
        for name, obj in self.server.objects.items():
            wanted = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
            assert held.pop(name) == wanted
        assert held == {}, "a deletion was lost"
        self.nothing_goes_back()


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=examples(120), stateful_step_count=40, deadline=None)

if __name__ == "__main__":
    pytest.main([__file__])
