"""The operator deletes what no error concerns in the pass in which it finds it, and reports what it holds back."""

from __future__ import annotations

from tests.operator.passes.reconciler_harness import WEB, ReconcilerHarness
from tests.operator.server import Answer

MEMBER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ item }}'}\n"
QUOTA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: quota}\ndata: {cpu: '{{ spec.cpu }}'}\n"
TEAM = "children: {quota: {template: quota.yaml}, members: {template: member.yaml, forEach: spec.members}}"


async def team(*members: str) -> ReconcilerHarness:
    harness = ReconcilerHarness(TEAM, {"cpu": "1", "members": list(members)}, quota=QUOTA, member=MEMBER)
    await harness.until_settled()
    return harness


async def test_a_removed_member_goes_in_the_pass_in_which_another_write_is_rejected() -> None:
    harness = await team("ada", "joe")
    harness.server.answer_with("patch", "quota", Answer.INVALID)
    harness.edit_app(spec={"cpu": "ten", "members": ["joe"]})
    assert (await harness.reconcile()).failed
    assert harness.live("ada") is None
    assert harness.live("joe") is not None
    assert harness.condition()["reason"] == "ApplyFailed"


async def test_a_deletion_that_is_held_back_is_counted_and_recorded_as_an_event_once() -> None:
    harness = await team("ada", "joe")
    harness.edit_app(spec={"cpu": "1", "members": ["joe", "Not Valid"]})
    for _ in range(3):
        await harness.reconcile()
    assert harness.live("ada") is not None
    assert harness.reconciler.pass_log.reported[WEB].held == 1
    held = [message for _, reason, message in harness.events if reason == "DeletionHeldBack"]
    assert held == ["The deletion of 1 object is held back by an error of members: ConfigMap/ada"]
    harness.edit_app(spec={"cpu": "1", "members": ["joe"]})
    await harness.until_settled()
    assert harness.live("ada") is None
    assert harness.reconciler.pass_log.reported[WEB].held == 0
