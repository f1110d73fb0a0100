"""`ruleop rollout status`: one number for each edit, and where `undo` goes."""

from __future__ import annotations

from dataclasses import replace

from ruleop.authoring.live.rollouts import rollout_documents, rollout_lines
from ruleop.authoring.report.spans import text_of
from ruleop.planning.rollout.rollout_record import RolloutRecord, RolloutRevision, reverted

OLD, NEW = RolloutRevision("a" * 64, "c" * 64), RolloutRevision("b" * 64, "d" * 64)
STOPPED = replace(
    RolloutRecord(NEW, OLD, "Stopped"), reason="1 failed: shop/a: no", failed={"m": "shop/a: no"}, total=3
)
RESUME = "`ruleop rollout resume` in spite of the failures"
COMPLETE = replace(RolloutRecord.complete(NEW), previous=OLD, total=3)


def table(record: RolloutRecord, *missing: str) -> list[str]:
    return text_of(rollout_lines({"Site.example.com": record}, missing)).splitlines()


def test_a_stopped_rollout_names_the_revision_to_which_undo_goes() -> None:
    assert table(STOPPED) == [
        "WATCH             PHASE    REVISION      FROM          CURRENT  PENDING  FAILED  HELD BACK",
        "Site.example.com  Stopped  dddddddddddd  cccccccccccc  0/3      0        1       3",
        "Site.example.com is stopped: 1 failed: shop/a: no",
        "  failed: shop/a: no",
        f"  next: correct the rules; or `ruleop rollout undo`, back to {OLD.short}; or {RESUME}",
    ]


def test_a_complete_rollout_shows_from_where_it_came() -> None:
    assert table(COMPLETE)[1] == "Site.example.com  Complete  dddddddddddd  cccccccccccc  all      0        0       0"
    assert table(RolloutRecord.complete(NEW))[1].split()[3] == "-"


def test_after_an_undo_there_is_nothing_to_go_back_to() -> None:
    undone = replace(reverted(COMPLETE), phase="Complete")
    lines = table(undone)
    assert lines[1].split()[2:4] == ["cccccccccccc", "-"]
    assert lines[2].startswith("Site.example.com: revision dddddddddddd was reverted; ")


def test_the_document_has_the_same_numbers() -> None:
    (found,) = rollout_documents({"Site.example.com": COMPLETE}, ["no"])
    assert (found["revision"], found["from"], found["rejected"]) == (NEW.project, OLD.project, "")
    (found,) = rollout_documents({"Site.example.com": reverted(COMPLETE)}, ["no"])
    assert (found["revision"], found["from"], found["rejected"]) == (OLD.project, "", NEW.project)
    assert found["waits"] == ["no"]


def test_a_rollout_in_progress_names_the_processes_for_which_it_waits() -> None:
    text = "32 buckets have no process: is pv-1 running?"
    assert table(replace(STOPPED, phase="Progressing", reason=""), text)[-1] == f"  waits: {text}"
    assert text not in "".join(table(COMPLETE, text) + table(STOPPED, text))
