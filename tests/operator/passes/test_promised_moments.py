"""No promised moment is lost: a CR for which nothing happens any more is reconciled at each moment that a pass has
promised, and reaches the state of a CR that was never disturbed.

The model is the reconciler with the real queue, an API server in memory and a clock. Only changes by others cause
events, as in the operator: ruleop's own writes cause none, so nothing but a promise leads to the next pass.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.operator.queue.work_queue import Backoff, WorkQueue
from ruleop.planning.changes.drift import CAP, ENOUGH, FIRST, QUIET
from ruleop.planning.history import CONFLICT_CAP, REFUSED_CAP, STATUS_REFUSED_FOR
from ruleop.planning.model.marks import PAUSED
from tests.operator.children import child
from tests.operator.passes.reconciler_harness import WEB, ReconcilerHarness
from tests.operator.server import Answer

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {v: '1'}\n"
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ spec.size }}"}}}
"""
RULES = """
reconcilePeriod: 0s
children: {a: {template: a.yaml}, b: {template: b.yaml}, claim: {template: claim.yaml}}
status: {v: "{{ a.data.v }}"}
"""
SOON = 1.0  # seconds within which a promise is kept


class Cluster(ReconcilerHarness):
    """A CR, its queue, and others that change its children."""

    def __init__(self):
        files = {name: CONFIG.replace("NAME", name) for name in ("a", "b")}
        super().__init__(RULES, {"size": "1Gi"}, **files, claim=CLAIM)
        self.queue = WorkQueue()
        self.size = 1
        self.not_before = 0.0  # the server asked to wait until then

    # -- events --------------------------------------------------------------------------------------------------------

    async def event(self):
        self.queue.add(WEB, now=self.time)
        await self.settle()

    async def settle(self):
        """All passes that are due."""
        for _ in range(40):
            if self.queue.take(now=self.time) is None:
                return self.check_promises()
            result = await self.reconcile()
            self.queue.done(
                WEB,
                now=self.time,
                failed=result.failed,
                retry_after=result.retry_after,
                requeue_after=result.requeue_after,
            )
            self.not_before = self.time + (result.retry_after or 0.0)
            self.time += 0.001
        raise AssertionError(f"it does not come to rest: {result}")

    async def wait(self, seconds):
        """Time passes, and nothing else happens."""
        end = self.time + seconds
        while (due := self.queue.next_due()) is not None and due <= end:
            self.time = max(self.time, due)
            await self.settle()
        self.time = end

    def check_promises(self):
        """Each moment that the history knows lies ahead of a pass that is due by then."""
        history, due = self.reconciler.histories.get(WEB), self.queue.next_due()
        if history is None:
            return
        moments = [each.due for each in history.conflicting.values()]
        moments += [each.due for each in history.drift.values() if each.message and each.drifted]
        moments += [
            each.until
            for key, each in history.refusals.items()
            if (self.server.live(key) or {}).get("metadata", {}).get("resourceVersion") != each.version
        ]
        if history.refused_status is not None:
            moments.append(history.refused_status.until)
        for moment in moments:
            if moment >= self.time:
                assert due is not None, f"nothing leads to a pass at {moment - self.time:g} s"
                assert due <= max(moment, self.not_before) + SOON, (
                    f"due in {due - self.time:g} s instead of {moment - self.time:g} s"
                )

    # -- what others do ------------------------------------------------------------------------------------------------

    async def change(self, name):
        if self.server.live(self.key(name)) is not None:
            self.edit(name, data={"v": "theirs"})
        await self.event()

    async def change_often(self, name):
        """Until it is a conflict; then nobody changes it any more."""
        for _ in range(ENOUGH + 1):
            await self.change(name)

    async def delete(self, name):
        if self.server.live(self.key(name)) is not None:
            self.remove(name)
        await self.event()

    async def replace(self, name):
        """Somebody creates an object of that name, which is not a child."""
        if self.server.live(self.key(name)) is not None:
            self.remove(name)
        self.server.make(child(name, owner=None, data={}))
        self.stores.catch_up()
        await self.event()

    def free(self, name):
        """No event reports that an object of somebody else is gone."""
        live = self.server.live(self.key(name))
        if live is not None and not (live["metadata"].get("ownerReferences")):
            self.remove(name)

    async def grow(self, *_):
        """The claim is not bound, so it cannot grow."""
        self.size += 1
        self.edit_app(spec={"size": f"{self.size}Gi"})
        await self.event()

    async def bind(self, *_):
        key = self.key("claim", "PersistentVolumeClaim")
        if self.server.live(key) is not None:
            self.server.edit(key, status={"phase": "Bound"})
            self.stores.catch_up()
            await self.event()

    async def refuse_status(self, *_):
        self.server.answer_with("status", "web", Answer.INVALID)
        await self.grow()

    async def fail(self, name):
        for _ in range(3):
            self.server.answer_with("patch", name, Answer.BROKEN)
        await self.change(name)

    async def throttle(self, name):
        self.server.answer_with("patch", name, Answer.THROTTLED)
        await self.change(name)

    async def pause(self, *_):
        self._annotate({PAUSED: "true"})
        await self.event()

    async def resume(self, *_):
        self._annotate({})
        await self.event()

    def _annotate(self, annotations):
        self.edit_app(metadata={**self.app["metadata"], "annotations": annotations})

    async def end_disturbances(self):
        self.server.answers.clear()
        for name in ("a", "b"):
            self.free(name)
        await self.resume()
        await self.bind()

    def state(self):
        ready = self.condition()
        claim = self.live("claim", "PersistentVolumeClaim")["spec"]["resources"]["requests"]["storage"]
        return {
            "children": [(self.live(name) or {}).get("data") for name in ("a", "b")],
            "grown": claim == f"{self.size}Gi",
            "ready": (ready["reason"], ready.get("message")),
            "status": self.app["status"].get("v"),
        }


async def undisturbed():
    cluster = Cluster()
    await cluster.event()
    await cluster.bind()
    return cluster


DISTURBANCES = (
    "change", "change_often", "delete", "replace", "grow", "bind", "refuse_status", "fail", "throttle", "pause",
    "resume",
)  # fmt: skip
steps = st.lists(
    st.tuples(
        st.sampled_from(DISTURBANCES),
        st.sampled_from("ab"),
        st.sampled_from([0.0, 0.5, 1.5, FIRST, FIRST + 1, 35.0, STATUS_REFUSED_FOR, QUIET, CAP]),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(steps)
def test_a_cr_reaches_its_desired_state_after_any_disturbances_without_further_events(history):
    async def scenario():
        expected = (await undisturbed()).state()
        cluster = await undisturbed()
        for name, who, seconds in history:
            await getattr(cluster, name)(who)
            await cluster.wait(seconds)
        await cluster.end_disturbances()
        await cluster.wait(2 * REFUSED_CAP + CONFLICT_CAP + CAP + QUIET)
        assert cluster.state() == expected

    asyncio.run(scenario())


async def test_a_child_that_others_no_longer_change_is_reverted_after_the_first_backoff():
    """A ConfigMap has no controller that would change it once more: the promise alone leads to the next pass."""
    cluster = await undisturbed()
    await cluster.change_often("a")
    assert cluster.condition()["reason"] == "FieldConflict"
    await cluster.wait(FIRST - SOON)
    assert cluster.live("a")["data"] == {"v": "theirs"}
    await cluster.wait(2 * SOON)
    assert cluster.live("a")["data"] == {"v": "1"}
    await cluster.wait(QUIET + SOON)
    assert cluster.condition()["reason"] != "FieldConflict"


@pytest.mark.slow
async def test_the_backoff_of_a_failing_child_does_not_delay_the_check_of_another():
    cluster = await undisturbed()
    await cluster.replace("a")
    cluster.server.answer_with("patch", "b", *[Answer.BROKEN] * 100)
    await cluster.change("b")
    await cluster.wait(1000)
    assert Backoff().delay(cluster.queue.failures(WEB)) > CONFLICT_CAP + SOON
    cluster.free("a")
    await cluster.wait(CONFLICT_CAP + SOON)
    assert cluster.live("a")["data"] == {"v": "1"}
