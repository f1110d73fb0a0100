"""The next step of a rollout, one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.language.rules import Rollout, Share
from ruleop.planning.rollout.rollout_record import (
    RolloutRecord,
    RolloutRevision,
    begun,
    decode,
    encode,
    member_of,
    resumed,
    reverted,
)
from ruleop.planning.rollout.waves import WaveView, advance, condition_of, in_order

OLD, NEW = RolloutRevision("a" * 64, "c" * 64), RolloutRevision("b" * 64, "d" * 64)
NOW = 1_800_000_000.0
BEFORE = "2026-01-01T00:00:00Z"


def resource(
    name: str, *, revision: RolloutRevision = OLD, ready: str = "True", reason: str = "", **more: Any
) -> dict[str, Any]:
    """A CR that reports this revision, and whether it is ready; with a reason it is Stalled."""
    conditions = [
        {"type": "Ready", "status": ready, "message": reason, "lastTransitionTime": BEFORE, "observedGeneration": 1},
        {"type": "Stalled", "status": "True" if reason else "False"},
        {"type": "Rollout", "status": "True", "message": f"revision {revision.short}"},
    ]
    metadata = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": BEFORE, "generation": 1, **more}
    return {"metadata": metadata, "status": {"conditions": conditions}}


def step(record: RolloutRecord, *resources: dict[str, Any], now: float = NOW, **rollout: Any) -> RolloutRecord:
    spec = Rollout(**rollout)
    return advance(spec, record, [WaveView.of(each, spec.label) for each in resources], now)


def begin(*resources: dict[str, Any], **rollout: Any) -> RolloutRecord:
    return step(begun(RolloutRecord.complete(OLD), NEW), *resources, **rollout)


def names(record: RolloutRecord, candidates: str) -> str:
    return "".join(name for name in candidates if member_of(name) in record.released)


def test_a_cr_that_does_not_become_ready_fails_at_the_deadline() -> None:
    record = begin(resource("a"), resource("b"))
    slow = resource("a", revision=NEW, ready="False")
    assert step(record, slow, resource("b"), now=NOW + 600).phase == "Progressing"
    late = step(record, slow, resource("b"), now=NOW + 601)
    assert (late.phase, list(late.failed.values())) == ("Stopped", ["ns/a: "])
    assert names(late, "ab") == "a"


def test_a_cr_that_reports_no_revision_fails_at_the_deadline() -> None:
    record = begin(resource("a"), resource("b"))
    late = step(record, resource("a"), resource("b"), now=NOW + 601)
    assert list(late.failed.values()) == ["ns/a: not reconciled with the new rules in time"]


def test_a_stalled_cr_fails_at_once() -> None:
    record = step(
        begin(resource("a"), resource("b")), resource("a", revision=NEW, ready="False", reason="no"), resource("b")
    )
    assert (record.phase, record.reason) == ("Stopped", "1 failed: ns/a: no")


def test_a_cr_that_was_not_ready_before_is_done_when_it_is_reconciled() -> None:
    record = begin(resource("a", ready="False"), resource("b"))
    record = step(record, resource("a", revision=NEW, ready="False"), resource("b"))
    assert names(record, "ab") == "ab"


def test_a_cr_that_was_stalled_before_does_not_fail() -> None:
    record = begin(resource("a", ready="False", reason="typo"), resource("b"))
    record = step(record, resource("a", revision=NEW, ready="False", reason="typo"), resource("b"))
    assert (record.failed, names(record, "ab")) == ({}, "ab")


def test_a_cr_that_breaks_later_stops_the_rollout() -> None:
    record = step(
        begin(resource("a"), resource("b"), resource("c")), resource("a", revision=NEW), resource("b"), resource("c")
    )
    assert names(record, "abc") == "ab"
    broken = resource("a", revision=NEW, ready="False", reason="gone")
    record = step(record, broken, resource("b", revision=NEW), resource("c"))
    assert (record.phase, names(record, "abc")) == ("Stopped", "ab")


def test_an_edited_cr_is_not_ready_until_its_generation_is_observed() -> None:
    record = step(begin(resource("a"), resource("b")), resource("a", revision=NEW, generation=2), resource("b"))
    assert (record.failed, names(record, "ab")) == ({}, "a")


def test_paused_and_deleted_crs_do_not_take_part() -> None:
    paused = resource("a", annotations={"ruleop.dev/paused": "true"})
    deleted = resource("b", deletionTimestamp=BEFORE)
    record = begin(paused, deleted, resource("c"))
    assert names(record, "abc") == "c"
    assert step(record, paused, deleted, resource("c", revision=NEW)).is_complete


def test_failures_within_the_threshold_do_not_hold_up_the_others() -> None:
    record = begin(resource("a"), resource("b"), failure_threshold=Share(1))
    failed = resource("a", revision=NEW, ready="False", reason="no")
    record = step(record, failed, resource("b"), failure_threshold=Share(1))
    assert (record.phase, names(record, "ab")) == ("Progressing", "ab")
    record = step(record, failed, resource("b", revision=NEW), failure_threshold=Share(1))
    assert (record.phase, list(record.failed.values())) == ("Complete", ["ns/a: no"])


def test_failures_do_not_count_again_after_resume() -> None:
    failed = resource("a", revision=NEW, ready="False", reason="no")
    record = resumed(step(begin(resource("a"), resource("b")), failed, resource("b")))
    record = step(record, failed, resource("b"))
    assert (record.phase, names(record, "ab")) == ("Progressing", "ab")


def test_a_new_cr_begins_with_the_rules_before() -> None:
    record = begin(resource("a"), resource("b"))
    assert record.revision_of(member_of("new")) == OLD
    assert condition_of(record, "new").message == f"revision {OLD.short}"


def test_a_revision_is_named_by_the_files_of_its_edit_as_in_the_revisions_of_the_project() -> None:
    record = begin(resource("a"), resource("b"))
    assert condition_of(record, "a").message == f"revision {'d' * 12}"
    assert condition_of(record, "b").message == f"revision {'c' * 12}"


def test_an_edit_of_another_watch_changes_no_status() -> None:
    """Its files are those from which the rules are loaded again."""
    record = decode(encode(begun(RolloutRecord.complete(NEW), RolloutRevision(NEW.rule, "e" * 64))))
    assert condition_of(record, "a") == condition_of(RolloutRecord.complete(NEW), "a")
    assert {each.project for each in record.revisions} == {"e" * 64}
    record = decode(encode(begun(record, RolloutRevision(OLD.rule, "f" * 64))))
    assert condition_of(record, "a") == condition_of(RolloutRecord.complete(NEW), "a"), "it waits for its wave"
    assert begun(RolloutRecord.complete(NEW), NEW) == RolloutRecord.complete(NEW)
    assert begun(
        begun(RolloutRecord.complete(NEW), RolloutRevision(NEW.rule, "e" * 64)), NEW
    ) == RolloutRecord.complete(NEW)


def test_an_edit_back_to_rules_that_some_still_have_has_one_number() -> None:
    record = begun(begin(resource("a"), resource("b")), again := RolloutRevision(OLD.rule, "e" * 64))
    assert condition_of(record, "b").message == f"revision {again.short}"
    assert condition_of(record, "a").message == f"revision {NEW.short}", "it waits for its wave"


def test_the_revision_before_is_the_one_to_which_undo_goes() -> None:
    assert RolloutRecord.complete(OLD).before is None
    record = begin(resource("a"))
    assert record.before == OLD
    complete = step(record, resource("a", revision=NEW))
    assert (complete.phase, complete.before) == ("Complete", OLD)
    undone = reverted(complete)
    assert (undone.target, undone.before) == (OLD, None), "undo of undo is refused"


def test_after_an_undo_only_an_edit_of_the_rules_ends_it() -> None:
    """As GitOps does it: the reverted rules are synced repeatedly; a revert in Git; a later commit."""
    undone = reverted(begin(resource("a"), resource("b")))
    assert begun(undone, NEW) == undone, "the same rules on disk"
    assert begun(undone, NEW._replace(project="e" * 64)) == undone, "an edit of another watch"
    back = begun(undone, OLD)
    assert (back.target, back.rejected, back.undo) == (OLD, None, False)
    assert {back.revision_of(member) for member in back.released} <= {OLD}
    later = RolloutRevision("3" * 64, "f" * 64)
    assert (begun(undone, later).target, begun(undone, later).rejected) == (later, None)


@pytest.mark.parametrize(
    ("rollout", "expected"),
    [
        (Rollout(), "abcd"),
        (Rollout(order="newest"), "dcba"),
        (Rollout(order="label", label="ring"), "cbad"),
    ],
)
def test_crs_come_in_the_order_of_the_rollout(rollout: Rollout, expected: str) -> None:
    rings = {"a": {"ring": "late"}, "b": {"ring": "10"}, "c": {"ring": "9"}, "d": {}}
    views = [
        WaveView.of(resource(name, labels=labels, creationTimestamp=f"2026-01-0{number}T00:00:00Z"), rollout.label)
        for number, (name, labels) in enumerate(rings.items(), start=1)
    ]
    assert "".join(view.title[-1] for view in in_order(rollout, views)) == expected


@pytest.mark.parametrize("time", ["", "x", "0001-01-01", "9999-12-31T23:59:59", 5, None])
def test_any_time_in_a_status_can_be_read(time: Any) -> None:
    found = resource("a", ready="False")
    found["status"]["conditions"][0]["lastTransitionTime"] = time
    assert isinstance(WaveView.of(found, "").since, float)
