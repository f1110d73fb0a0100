"""Custom resources from their creation to their deletion, with a fault in between: the objects are the same as without
the fault, and each was created and deleted as often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

from tests.cluster.example_projects import ROOT
from tests.cluster.faults.lab import Lab, Make, differences, is_quiet
from tests.cluster.server import RefusedError

FOREIGN = {"app": "myApp", "note": "not yours"}


@dataclass
class Recording:
    """The objects after each step of a scenario, and the creations and deletions."""

    stages: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    writes: list[str] = field(default_factory=list)
    foreign: str = ""  # the version of somebody else's object, at the end less the beginning


class AppScenario:
    """An App is created, edited, gets another Service, and is deleted."""

    def __str__(self) -> str:
        return "app"

    project = ROOT
    spec: ClassVar[dict[str, Any]] = {
        "deployment": {"name": "web-app", "image": "nginx:1", "replicas": 2},
        "service": {"name": "web-service"},
    }

    def steps(self, lab: Lab) -> Iterator[Any]:
        lab.make("apps", "web", "App", spec=self.spec)
        yield lambda: lab.is_observed("apps", "web")
        lab.edit("apps", "web", {"spec": {"deployment": {"image": "nginx:2", "replicas": 3}}})
        yield lambda: lab.is_observed("apps", "web")
        lab.edit("apps", "web", {"spec": {"service": {"name": "web-other"}}})
        yield lambda: lab.is_observed("apps", "web")
        lab.admin.delete(lab.path("apps", "web"))
        yield lambda: gone(lab, "apps", "web")


class LedgerScenario:
    """An App with a finalizer, ordered children, a child that is no longer desired, and an observed object that
    changes."""

    def __str__(self) -> str:
        return "ledger"

    project = None

    def steps(self, lab: Lab) -> Iterator[Any]:
        lab.make("configmaps", "all-settings", "ConfigMap", data={"currency": "EUR"})
        lab.make("ledgers", "all", "Ledger", spec={"text": "one", "pages": ["a", "b"], "contents": True})
        yield lambda: lab.is_observed("ledgers", "all", "Ready")
        lab.edit("ledgers", "all", {"spec": {"text": "two", "pages": ["b", "c"], "contents": False}})
        yield lambda: lab.is_observed("ledgers", "all", "Ready")
        lab.edit("configmaps", "all-settings", {"data": {"currency": "CHF"}})
        yield lambda: lab.get("configmaps", "all-book")["data"]["currency"] == "CHF"
        lab.admin.delete(lab.path("ledgers", "all"))
        yield lambda: lab.get("configmaps", "all-closing")
        lab.edit("configmaps", "all-closing", {"metadata": {"annotations": {"example.com/done": "yes"}}})
        yield lambda: gone(lab, "ledgers", "all")


class StackScenario:
    """An App with an order of deletion loses children, gets them again, and is deleted."""

    def __str__(self) -> str:
        return "stack"

    project = None

    def steps(self, lab: Lab) -> Iterator[Any]:
        lab.make("stacks", "high", "Stack", spec={"layers": ["floor", "roof"]})
        yield lambda: lab.is_observed("stacks", "high", "Ready")
        lab.edit("stacks", "high", {"spec": {"layers": []}})
        yield lambda: lab.is_observed("stacks", "high", "Ready")
        lab.edit("stacks", "high", {"spec": {"layers": ["floor", "roof"]}})
        yield lambda: lab.is_observed("stacks", "high", "Ready")
        lab.admin.delete(lab.path("stacks", "high"))
        yield lambda: gone(lab, "stacks", "high")
        found = [each.rpartition("-")[2] for each in lab.proxy.written() if each.startswith("delete configmaps ")]
        assert [each for each, _ in groupby(found)] == ["roof", "floor", "roof", "floor", "ground"]


class OnceScenario:
    """Work that is done once for each request: it ends, its object is deleted, and the next requests come."""

    def __str__(self) -> str:
        return "once"

    project = None

    def steps(self, lab: Lab) -> Iterator[Any]:
        lab.make("stacks", "flat", "Stack", spec={"migrated": "one"})
        for number, request in enumerate(("one", "two", "three")):
            lab.edit("stacks", "flat", {"spec": {"migrated": request}})
            yield lambda request=request: self.running(lab, request)
            work = self.running(lab, request)
            lab.edit("configmaps", work, {"metadata": {"annotations": {"example.com/done": "yes"}}})
            yield lambda request=request: lab.get("configmaps", "flat-result")["data"] == {"of": request}
            if number == 0:
                lab.admin.delete(lab.path("configmaps", work))
        yield lambda: [each["result"] for each in self.runs(lab)] == ["Succeeded"] * 3
        lab.admin.delete(lab.path("stacks", "flat"))
        yield lambda: gone(lab, "stacks", "flat")

    @staticmethod
    def runs(lab: Lab) -> list[dict[str, str]]:
        runs: list[dict[str, str]] = lab.get("stacks", "flat")["status"]["ruleop"]["once"]["work"]
        return runs

    def running(self, lab: Lab, request: str) -> str:
        """The object of this request, while it runs; empty before and after."""
        return next(
            (each["object"] for each in self.runs(lab) if each["id"] == request and each["result"] == "Running"), ""
        )


class RoomScenario:
    """An item is removed, comes back while it is ended, and all end with their custom resource."""

    def __str__(self) -> str:
        return "room"

    project = None

    def steps(self, lab: Lab) -> Iterator[Any]:
        lab.make("stacks", "wide", "Stack", spec={"rooms": ["hall", "attic"]})
        yield lambda: lab.is_observed("stacks", "wide", "Ready")
        lab.edit("stacks", "wide", {"spec": {"rooms": ["hall"]}})
        yield lambda: lab.get("configmaps", "wide-clearing-attic")["data"] == {"of": "attic"}
        uid = lab.get("configmaps", "wide-room-attic")["metadata"]["uid"]
        lab.edit("stacks", "wide", {"spec": {"rooms": ["hall", "attic"]}})
        yield lambda: lab.is_observed("stacks", "wide", "Waiting")
        self.clear(lab, "attic")
        yield lambda: lab.is_observed("stacks", "wide", "Ready")
        assert lab.get("configmaps", "wide-room-attic")["metadata"]["uid"] != uid
        lab.admin.delete(lab.path("stacks", "wide"))
        yield lambda: lab.get("configmaps", "wide-clearing-attic") and lab.get("configmaps", "wide-clearing-hall")
        for name in ("attic", "hall"):
            self.clear(lab, name)
        yield lambda: gone(lab, "stacks", "wide")
        found = [each.partition("-")[2] for each in lab.proxy.written() if each.startswith("delete configmaps ")]
        for name in ("attic", "hall"):
            ended = [each for each in found if each.endswith(name)]
            assert [each for each, _ in groupby(ended)] == [f"room-{name}", f"clearing-{name}"] * (
                1 + (name == "attic")
            )

    @staticmethod
    def clear(lab: Lab, name: str) -> None:
        done = {"metadata": {"annotations": {"example.com/done": "yes"}}}
        lab.edit("configmaps", f"wide-clearing-{name}", done)


class MarkScenario:
    """A custom resource sets fields of somebody else's objects: other fields, those of another object, and none."""

    def __str__(self) -> str:
        return "mark"

    project = None

    def steps(self, lab: Lab) -> Iterator[Any]:
        for name in ("one", "two"):
            lab.make("configmaps", name, "ConfigMap", data=FOREIGN)
        lab.make("marks", "red", "Mark", spec={"target": "one", "text": "a"})
        yield lambda: lab.is_observed("marks", "red", "Ready")
        lab.edit("marks", "red", {"spec": {"text": "b"}})
        yield lambda: lab.is_observed("marks", "red", "Ready")
        lab.edit("marks", "red", {"spec": {"target": "two"}})
        yield lambda: lab.is_observed("marks", "red", "Ready")
        lab.edit("marks", "red", {"spec": {"target": None}})
        yield lambda: lab.is_observed("marks", "red", "Ready")
        lab.edit("marks", "red", {"spec": {"target": "one"}})
        yield lambda: lab.is_observed("marks", "red", "Ready")
        assert lab.get("configmaps", "one")["data"] == {**FOREIGN, "b": "noted"}
        lab.admin.delete(lab.path("marks", "red"))
        yield lambda: gone(lab, "marks", "red")
        for name in ("one", "two"):
            found = lab.get("configmaps", name)
            assert found["data"] == FOREIGN
            assert not {"labels", "annotations", "ownerReferences"} & found["metadata"].keys()


def gone(lab: Lab, resource: str, name: str) -> bool:
    try:
        lab.get(resource, name)
    except RefusedError as error:
        return error.code == 404
    return False


def run_without_faults(make: Make, scenario: Any) -> Recording:
    recording = Recording()
    with new_lab(make, scenario) as lab:
        lab.start_and_wait()
        foreign = lab.make("configmaps", "foreign", "ConfigMap", data=FOREIGN)
        for probe in scenario.steps(lab):
            lab.eventually("the next step", probe)
            while not is_quiet(lab.proxy):
                pass
            recording.stages.append(lab.snapshot())
        record_end(lab, recording, foreign)
    return recording


def run_with_fault(make: Make, scenario: Any, inject_fault: Callable[[Lab], None], recording: Recording) -> list[str]:
    """Runs a scenario with a fault, and compares each step with the recording without it. Returns the requests that it
    hit."""
    with new_lab(make, scenario) as lab:
        inject_fault(lab)
        lab.start()
        foreign = lab.make("configmaps", "foreign", "ConfigMap", data=FOREIGN)
        found: dict[str, Any] = {}
        for number, _ in enumerate(scenario.steps(lab)):

            def as_it_was(number: int = number) -> bool:
                nonlocal found
                found = lab.snapshot()
                return found == recording.stages[number]

            try:
                lab.eventually("what was there without a fault", as_it_was)
            except AssertionError as error:
                raise AssertionError(f"step {number}: {differences(found, recording.stages[number])}") from error
        mine = Recording()
        record_end(lab, mine, foreign)
        lab.check()
        assert mine.counts == recording.counts
        assert mine.foreign == recording.foreign
        return [str(call) for call in lab.proxy.calls if call.hit]


def new_lab(make: Make, scenario: Any) -> Lab:
    return make("scenario", project=scenario.project) if scenario.project else make("scenario")


def record_end(lab: Lab, recording: Recording, foreign: Any) -> None:
    recording.counts = lab.proxy.creates_and_deletes()
    recording.writes = lab.proxy.written()
    now = lab.get("configmaps", "foreign")["metadata"]
    recording.foreign = "untouched" if now["resourceVersion"] == foreign["metadata"]["resourceVersion"] else "touched"


SCENARIOS = (AppScenario(), LedgerScenario(), StackScenario(), OnceScenario(), RoomScenario(), MarkScenario())
