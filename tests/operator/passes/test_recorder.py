"""`--record`: each plan of a pass is a file that can be planned again."""

from __future__ import annotations

from dataclasses import replace

import orjson
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.passes import recorder
from ruleop.operator.passes.recorder import PassFiles
from ruleop.planning import plan
from ruleop.planning.recording.recording import read_document
from tests.operator.passes.reconciler_harness import ReconcilerHarness

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
KEY = ObjectKey("example.com", "App", "shop", "web")


def recording(folder):
    harness = ReconcilerHarness("children: {a: {template: a.yaml}}\n", {"v": "1"}, a=A)
    planning = harness.reconciler.planning
    planning.environment = replace(planning.environment, pass_files=PassFiles(folder))
    return harness


async def test_each_plan_of_a_pass_is_recorded_for_its_owner_only(tmp_path):
    harness = recording(tmp_path / "passes")
    await harness.until_settled()
    files = sorted((tmp_path / "passes").iterdir())
    assert [file.name for file in files][:2] == [
        "App_example.com_shop_web_000001.json",
        "App_example.com_shop_web_000002.json",
    ]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    first, last = (read_document(orjson.loads(file.read_bytes())) for file in (files[0], files[-1]))
    (rule,) = harness.project.rules
    create, quiet = (
        plan(rule, each.resource, each.observed, each.history, predict_status=each.predict_status)
        for each in (first, last)
    )
    assert [action.key.name for action in create.actions] == ["a"]
    assert quiet.quiet


def test_only_the_last_recordings_of_each_resource_are_kept(tmp_path):
    files = PassFiles(tmp_path)
    for number in range(recorder.KEPT + 3):
        files.write(KEY, {"number": number})
    files.write(replace_name(KEY), {})
    kept = sorted(tmp_path.glob("*_web_*.json"))
    assert len(kept) == recorder.KEPT
    assert orjson.loads(kept[0].read_bytes()) == {"number": 3}
    assert len(list(tmp_path.iterdir())) == recorder.KEPT + 1


def replace_name(key):
    return ObjectKey(key.group, key.kind, key.namespace, "other")


async def test_a_folder_that_cannot_be_written_is_logged_once_and_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    harness = recording(tmp_path / "file")
    with capture_logs() as logs:
        await harness.until_settled()
    assert harness.condition()["status"] == "True"
    assert [log["event"] for log in logs].count("pass not recorded") == 1
