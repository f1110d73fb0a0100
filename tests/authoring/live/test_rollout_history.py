"""`ruleop rollout history`, and `undo --to` a revision that it lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ruleop.language.rules.checking import build_project
from ruleop.operator.revisions.revision_store import pack
from ruleop.planning.rollout.rollout_record import RolloutRecord, RolloutRevision, decode, encode, member_of
from tests.authoring.live.harness import Live
from tests.authoring.live.projects import SITES, site
from tests.authoring.live.test_rollout_status import config_map, kept, records

WATCH = "Site.example.com"
FILES = {**SITES, "watches.yaml": SITES["watches.yaml"] + "  rollout: {maxUnavailable: 1}\n"}


def files(number: int) -> dict[str, str]:
    """The project after an edit. The third adds a file."""
    found = {**FILES, "watches.yaml": FILES["watches.yaml"].replace("status:", f"vars: {{size: {number}}}\n  status:")}
    found["templates/config.yaml.j2"] += f"# {number}\n"
    return found | ({"templates/new.yaml.j2": "{# of nobody #}\n"} if number == 3 else {})


EDITS = [build_project(files(number), root="", environ={}) for number in (1, 2, 3)]
FIRST, SECOND, THIRD = (RolloutRevision(each.rules[0].revision, each.revision) for each in EDITS)


def revisions(*kept: int) -> str:
    index = [{"digest": each.revision, "since": f"2026-01-0{number}T00:00:00Z"} for number, each in enumerate(EDITS, 1)]
    found = json.loads(config_map("ruleop-revisions", index=json.dumps(index)))
    packed = {EDITS[number - 1].revision: pack(EDITS[number - 1].files) for number in kept}
    return json.dumps({**found, "binaryData": packed})


@pytest.fixture
def rolled_out(sites: Live) -> Live:
    """The operator has rolled out two edits one after the other, and a third reached one of four CRs."""
    record = RolloutRecord(
        THIRD, SECOND, "Stopped", released={member_of("a"): "ready"}, previous=FIRST, total=4, reason="1 failed: a"
    )
    sites.apply(revisions(1, 2, 3))
    sites.apply(config_map("ruleop-rollouts", **{WATCH: encode(record)}))
    return sites


def record_of(live: Live) -> RolloutRecord:
    (found,) = [each for each in live.objects("ConfigMap") if each["metadata"]["name"] == "ruleop-rollouts"]
    return decode(found["data"][WATCH])


def test_the_history_lists_the_revisions_with_their_edits_and_custom_resources(rolled_out: Live) -> None:
    status, out, _ = rolled_out.run("rollout", "history")
    assert status == 0
    first, second, third = (each.revision[:12] for each in EDITS)
    assert out.split()[:6] == ["REVISION", "SINCE", "FILES", "EDITED", "CUSTOM", "RESOURCES"]
    assert [line.split()[:3] for line in out.splitlines()[1:]] == [
        [third, "2026-01-03T00:00:00Z", "kept"],
        [second, "2026-01-02T00:00:00Z", "kept"],
        [first, "2026-01-01T00:00:00Z", "kept"],
    ]
    assert _rest(out, 1).endswith(f"  1 of {WATCH}")
    assert "templates/new.yaml.j2" in _rest(out, 1)
    assert _rest(out, 2).endswith(f"  3 of {WATCH}")
    assert _rest(out, 2).startswith("templates/config.yaml.j2, watches.yaml")
    assert _rest(out, 3).split() == ["-", "-"]


def _rest(out: str, line: int) -> str:
    return out.splitlines()[line].split(maxsplit=3)[3]


def test_the_history_is_a_document(rolled_out: Live) -> None:
    found: list[dict[str, Any]] = json.loads(rolled_out.run("rollout", "history", "Site", "-o", "json")[1])
    assert [each["revision"] for each in found] == [each.revision for each in EDITS[::-1]]
    assert found[0]["watches"] == [{"watch": WATCH, "resources": 1}]
    assert found[1]["edited"] == ["templates/config.yaml.j2", "watches.yaml"]
    assert (found[2]["edited"], found[2]["watches"]) == (None, [])


@pytest.mark.parametrize("length", [12, 64])
def test_an_undo_goes_back_to_the_revision_that_is_named(rolled_out: Live, length: int) -> None:
    status, out, err = rolled_out.run("rollout", "undo", "--to", FIRST.project[:length])
    assert (status, err) == (0, "")
    assert FIRST.short in out
    record = record_of(rolled_out)
    assert (record.target, record.undo, record.rejected) == (FIRST, True, THIRD)
    assert record.revision_of(member_of("a")) == THIRD
    assert record.revision_of(member_of("b")) == SECOND


def test_a_second_undo_goes_elsewhere_and_keeps_the_rules_on_disk_back(rolled_out: Live) -> None:
    rolled_out.run("rollout", "undo")
    assert record_of(rolled_out).target == SECOND
    assert rolled_out.run("rollout", "undo", "--to", FIRST.project)[0] == 0
    record = record_of(rolled_out)
    assert (record.target, record.rejected) == (FIRST, THIRD)


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("0123", "no revision 0123; `ruleop rollout history` lists them"),
        (THIRD.project, f"Site.example.com: the rules of revision {THIRD.short} are those that are rolled out already"),
    ],
)
def test_a_revision_that_makes_no_sense_is_refused(rolled_out: Live, to: str, message: str) -> None:
    before = record_of(rolled_out)
    status, _, err = rolled_out.run("rollout", "undo", "--to", to)
    assert (status, err) == (1, f"ruleop: {message}\n")
    assert record_of(rolled_out) == before


def test_a_revision_whose_files_are_not_kept_is_refused(rolled_out: Live) -> None:
    rolled_out.apply(revisions(2, 3))
    status, _, err = rolled_out.run("rollout", "undo", "--to", FIRST.project)
    assert (status, err) == (1, f"ruleop: the rules of revision {FIRST.short} are not kept; edit the rules\n")
    assert rolled_out.run("rollout", "history")[1].splitlines()[3].split()[2] == "-"


def test_an_undo_to_the_rules_on_disk_is_refused(rolled_out: Live) -> None:
    rolled_out.run("rollout", "undo")
    status, _, err = rolled_out.run("rollout", "undo", "--to", THIRD.project)
    assert status == 1
    assert "`ruleop rollout resume` rolls them out again" in err


@pytest.mark.slow
def test_the_operator_follows_an_undo_to_an_earlier_revision(sites: Live) -> None:
    sites.apply(site("a"))
    for number in (1, 2, 3):
        for name, text in files(number).items():
            sites.write(name, text.replace("{page:", f"{{edit: '{number}', page:"))
        sites.converge(lambda number=number: len(kept(sites)) == number and is_at(sites, str(number)))
    first = kept(sites)[0]["digest"]
    assert sites.run("rollout", "undo", "Site", "--to", first[:12])[0] == 0
    sites.converge(lambda: is_at(sites, "1"))
    (found,) = [each for each in json.loads(sites.run("rollout", "history", "-o", "json")[1]) if each["watches"]]
    assert (found["revision"], found["watches"]) == (first, [{"watch": WATCH, "resources": None}])
    assert len(kept(sites)) == 3, "the rules on disk are the latest"
    assert sites.run("rollout", "resume")[0] == 0
    sites.converge(lambda: is_at(sites, "3"))


def is_at(live: Live, edit: str) -> bool:
    """Whether the rollout of this edit is complete."""
    found = [each for each in live.objects("ConfigMap") if each["metadata"]["name"] == "a-config"]
    phases = [each.phase for each in records(live)]
    return [each["data"].get("edit") for each in found] == [edit] and phases == ["Complete"]
