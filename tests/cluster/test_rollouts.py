"""An edit of the rules reaches sixty CRs in waves. A bad one breaks at most the threshold and one wave."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.audit import Mark
from controlplane.cluster import ControlPlane

from ruleop.planning.rollout.rollout_record import RolloutRecord, decode
from tests.cluster.operator import TIMEOUT, Operator, Permissions, eventually
from tests.cluster.server import CRDS, RefusedError
from tests.definitions import definition

GROUP = "example.com"
COUNT = 60
PERMISSIONS = Permissions(watched=[f"rollers.{GROUP}"], children=["secrets"])
GOOD, BETTER = "'one'", "'two'"
BROKEN = "{{ spec.missing if spec.n % 10 == 3 else 'two' }}"  # one in ten cannot be rendered


def secret(text: str) -> str:
    return (
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\nstringData: {{text: {text}}}\n"
    )


def watches(rollout: str = "maxUnavailable: 5") -> str:
    return (
        f"- group: {GROUP}\n  version: v1\n  kind: Roller\n"
        f"  children: {{secret: {{template: secret.yaml}}}}\n  rollout: {{{rollout}}}\n"
    )


class Boxes:
    """Sixty CRs with a Secret each, and the operator that has the rules for them."""

    def __init__(self, operator: Operator, namespace: str) -> None:
        self.operator, self.admin, self.namespace = operator, operator.admin, namespace
        self.path = f"/apis/{GROUP}/v1/namespaces/{namespace}/rollers"
        self.record_path = f"/api/v1/namespaces/{operator.name}/configmaps/ruleop-rollouts"
        self.ever: set[str] = set()  # those that were seen with the text `two`, or broken
        for number in range(COUNT):
            self.create(f"box-{number:02}", number)
        self.wait_until("all to be ready", lambda: len(self.ready()) == COUNT)
        self.wait_until("a record", lambda: self.record() is not None)

    def create(self, name: str, number: int) -> None:
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Roller", "metadata": {"name": name}, "spec": {"n": number}}
        self.admin.post(self.path, body)

    def write(self, text: str, rollout: str = "maxUnavailable: 5") -> None:
        (self.operator.project / "watches.yaml").write_text(watches(rollout))
        (self.operator.project / "templates/secret.yaml").write_text(secret(text))

    # -- what there is -------------------------------------------------------------------------------------------------

    def boxes(self) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in self.admin.get(self.path)["items"]}

    def condition(self, box: dict[str, Any], type_: str) -> dict[str, Any]:
        found = (box.get("status") or {}).get("conditions") or []
        return next((each for each in found if each["type"] == type_), {})

    def with_condition(self, type_: str, **fields: str) -> set[str]:
        return {name for name, box in self.boxes().items() if fields.items() <= self.condition(box, type_).items()}

    def ready(self) -> set[str]:
        return self.with_condition("Ready", status="True")

    def broken(self) -> set[str]:
        return self.with_condition("Ready", status="False", reason="RenderFailed")

    def texts(self) -> dict[str, str]:
        found = self.admin.get(f"/api/v1/namespaces/{self.namespace}/secrets")["items"]
        return {each["metadata"]["name"]: base64.b64decode(each["data"]["text"]).decode() for each in found}

    def having(self, text: str) -> set[str]:
        return {name for name, found in self.texts().items() if found == text}

    def record(self) -> RolloutRecord | None:
        try:
            data = self.admin.get(self.record_path).get("data") or {}
        except RefusedError:
            return None
        return decode(data[f"Roller.{GROUP}"]) if f"Roller.{GROUP}" in data else None

    def phase(self) -> str:
        record = self.record()
        return record.phase if record is not None else ""

    def wait_until(self, what: str, holds: Callable[[], object]) -> None:
        def probe() -> object:
            self.ever |= self.having("two") | self.broken()
            return holds()

        eventually(what, probe, 120.0)

    def wait_for_phase(self, phase: str) -> None:
        self.wait_until(f"the rollout to be {phase}", lambda: self.phase() == phase)

    def command(self, *arguments: str) -> str:
        """What `ruleop rollout` prints."""
        return self.run("rollout", *arguments)

    def run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "ruleop", *arguments, "--operator-namespace", self.operator.name]
        command += ["--kubeconfig", str(self.operator.plane.kubeconfig("admin"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
        assert not done.stderr, done.stderr
        return done.stdout

    def events(self, reason: str) -> set[str]:
        found = self.admin.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        return {each["regarding"]["name"] for each in found if each["reason"] == reason}

    def writes(self, mark: Mark) -> list[str]:
        return self.operator.writes(mark, self.namespace)


@pytest.fixture(scope="module", autouse=True)
def kinds(control_plane: ControlPlane) -> Iterator[None]:
    admin = control_plane.api()
    admin.post(CRDS, yaml.safe_load(definition("Roller")))
    control_plane.until_served(f"crd/rollers.{GROUP}")
    yield
    admin.delete(f"{CRDS}/rollers.{GROUP}")


@pytest.fixture
def operator(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
    source = tmp_path / "source"
    (source / "templates").mkdir(parents=True)
    (source / "watches.yaml").write_text(watches())
    (source / "templates/secret.yaml").write_text(secret(GOOD))
    (tmp_path / "operator").mkdir()
    log = tmp_path / "operator" / "log"
    only_here = ["--namespaces", namespace]  # the CRs of other tests may still be there
    with Operator(control_plane, source, PERMISSIONS, log, "--prune-after-reload", "0s", *only_here) as running:
        yield running
        running.check()
        running.kill()


@pytest.fixture
def boxes(operator: Operator, namespace: str) -> Boxes:
    return Boxes(operator, namespace)


def test_a_good_edit_reaches_all(boxes: Boxes, tmp_path: Path) -> None:
    edited = tmp_path / "edited"
    shutil.copytree(boxes.operator.project, edited)
    (edited / "templates/secret.yaml").write_text(secret(BETTER))
    plan = ["plan", "--live", "--all", "-n", boxes.namespace]
    shown = boxes.run(*plan, "-C", str(edited))
    assert f"{COUNT} in waves of at most 5; stops when more than 0 fail" in shown
    assert "waves" not in boxes.run(*plan, "-C", str(boxes.operator.project)), "these rules are in force"
    boxes.write(BETTER)
    boxes.wait_until("all to have it", lambda: len(boxes.having("two")) == COUNT)
    boxes.wait_for_phase("Complete")
    boxes.wait_until("all to be ready", lambda: len(boxes.ready()) == COUNT)
    record = boxes.record()
    assert record is not None
    boxes.wait_until(
        "all to name it",
        lambda: len(boxes.with_condition("Rollout", status="True", message=f"revision {record.target.short}")) == COUNT,
    )


def test_a_bad_edit_breaks_one_wave_and_stops(boxes: Boxes) -> None:
    boxes.write(BROKEN)
    boxes.wait_for_phase("Stopped")
    boxes.wait_until("the others to say so", lambda: boxes.with_condition("Rollout", reason="HeldBack"))
    record = boxes.record()
    assert record is not None
    assert len(record.failed) == 1
    assert len(boxes.broken()) == 1, record.failed
    released = {name for name, text in boxes.texts().items() if text == "two"}
    held = COUNT - len(record.released)
    assert len(released) <= 8  # box-03 is in the first wave
    boxes.wait_until("all of them", lambda: len(boxes.with_condition("Rollout", reason="HeldBack")) == held)
    boxes.wait_until("their Events", lambda: boxes.events("HeldBack"))
    table = boxes.command("status")
    assert f"Roller.{GROUP}" in table
    assert "Stopped" in table
    assert "box-03: secret: templates/secret.yaml:4" in table
    (shown,) = json.loads(boxes.command("status", "-o", "json"))
    assert (shown["phase"], shown["heldBack"], shown["failed"], shown["total"]) == ("Stopped", held, 1, COUNT)
    assert "[-] rollout Roller" in boxes.operator.probe("/readyz?verbose")[1]
    boxes.wait_until("the log", lambda: any(line["event"] == "rollout stopped" for line in boxes.operator.warnings()))


def test_a_restart_in_the_middle_continues(boxes: Boxes) -> None:
    boxes.write(BETTER, "maxUnavailable: 1")
    boxes.wait_until("some to have it", lambda: len(boxes.having("two")) >= 2)
    boxes.command("pause")
    boxes.wait_for_phase("Paused")
    boxes.command("resume")
    boxes.operator.kill()
    assert len(boxes.having("two")) < COUNT
    before = boxes.record()
    assert before is not None
    assert len(boxes.having("two")) <= len(before.released)
    boxes.operator.start()
    boxes.wait_for_phase("Complete")
    assert len(boxes.having("two")) == COUNT
    assert boxes.broken() == set()


def test_a_bad_edit_and_restarts_break_no_more(boxes: Boxes) -> None:
    """The rules on disk are the bad ones each time that it starts."""
    boxes.write(BROKEN)
    for _ in range(3):
        boxes.wait_until("a release", lambda: (record := boxes.record()) is not None and record.released)
        boxes.operator.kill()
        boxes.operator.start()
    boxes.wait_for_phase("Stopped")
    assert len(boxes.ever & boxes.broken()) == 1
    record = boxes.record()
    assert record is not None
    untouched = COUNT - len(record.released)
    assert len(boxes.having("one")) >= untouched
    mark = boxes.operator.mark()
    boxes.admin.merge(f"{boxes.path}/box-59", {"spec": {"n": 1059}}, "somebody")  # the old rules still serve it
    boxes.wait_until("box-59 to be ready", lambda: "box-59" in boxes.ready())
    boxes.admin.delete(f"/api/v1/namespaces/{boxes.namespace}/secrets/box-59")
    boxes.wait_until("its Secret to be back", lambda: "box-59" in boxes.having("one"))
    assert boxes.writes(mark)


def test_an_undo_in_the_middle_leads_back(boxes: Boxes) -> None:
    boxes.write(BROKEN)
    boxes.wait_for_phase("Stopped")
    boxes.command("undo")
    boxes.wait_for_phase("Complete")
    boxes.wait_until("all to have the old rules", lambda: len(boxes.having("one")) == COUNT)
    boxes.wait_until("all to be ready", lambda: len(boxes.ready()) == COUNT)
    boxes.operator.kill()
    boxes.operator.start()  # the rules on disk are still those that were reverted
    mark = boxes.operator.mark()
    boxes.create("late", 3)
    boxes.wait_until("a new one", lambda: "late" in boxes.having("one") and "late" in boxes.ready())
    assert [each for each in boxes.writes(mark) if "late" not in each] == []


def test_an_edit_in_the_middle_goes_to_the_newest(boxes: Boxes) -> None:
    boxes.write(BROKEN)
    boxes.wait_for_phase("Stopped")
    boxes.write("'three'")
    boxes.wait_for_phase("Complete")
    boxes.wait_until("all to have it", lambda: len(boxes.having("three")) == COUNT)
    boxes.wait_until("all to be ready", lambda: len(boxes.ready()) == COUNT)
    assert len(boxes.ever) <= 9  # eight, and box-03, which is broken


def test_a_rollout_pauses_after_some_until_resume(boxes: Boxes) -> None:
    boxes.write(BETTER, "maxUnavailable: 5, pauseAfter: 7")
    boxes.wait_for_phase("Paused")
    assert len(boxes.having("two")) == 7
    boxes.command("resume", "Roller")
    boxes.wait_for_phase("Complete")
    assert len(boxes.having("two")) == COUNT


def test_nothing_is_written_when_nothing_changed(boxes: Boxes) -> None:
    boxes.write(BETTER, "maxUnavailable: 50%")
    boxes.wait_until("all to have it", lambda: len(boxes.having("two")) == COUNT and len(boxes.ready()) == COUNT)
    boxes.wait_for_phase("Complete")
    boxes.operator.kill()
    mark = boxes.operator.mark()
    boxes.operator.start()
    boxes.create("late", 1)
    boxes.wait_until("a new one", lambda: "late" in boxes.ready())
    assert [each for each in boxes.writes(mark) if "late" not in each] == []
    requests = boxes.operator.requests(mark)
    own = [each for each in requests if (each.get("objectRef") or {}).get("name") == "ruleop-rollouts"]
    assert {each["verb"] for each in own} <= {"get", "list", "watch"}
