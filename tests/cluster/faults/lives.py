"""Lives of custom resources, which a test disturbs: whatever the disturbance, all ends as it does without one, with the same objects, each
made and deleted as often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tests.cluster.faults.lab import Lab, differences, quiet
from tests.cluster.seeds import ROOT
from tests.cluster.server import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.faults.conftest import Make

FOREIGN = {"app": "myApp", "note": "not yours"}


@dataclass
class Course:
    """What happened in a life: what there was after each step, and what was created and deleted."""

    stages: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    writes: list[str] = field(default_factory=list)
    foreign: str = ""  # the version of somebody else's object, at the end less the beginning


class AppLife:
    """An App is made, edited, given another Service, and deleted."""

    def __str__(self) -> str:
        return "app"

    project = ROOT
    spec: ClassVar[dict[str, Any]] = {
        "deployment": {"name": "web-app", "image": "nginx:1", "replicas": 2},
        "service": {"name": "web-service"},
    }

    def steps(self, lab: Lab) -> Iterator[Any]:
        lab.make("apps", "web", "App", spec=self.spec)
        yield lambda: lab.is_told("apps", "web")
        lab.edit("apps", "web", {"spec": {"deployment": {"image": "nginx:2", "replicas": 3}}})
        yield lambda: lab.is_told("apps", "web")
        lab.edit("apps", "web", {"spec": {"service": {"name": "web-other"}}})
        yield lambda: lab.is_told("apps", "web")
        lab.admin.delete(lab.path("apps", "web"))
        yield lambda: gone(lab, "apps", "web")


class LedgerLife:
    """With a finalizer, an order among its children, one that is not wanted any more, and an observed object that changes."""

    def __str__(self) -> str:
        return "ledger"

    project = None

    def steps(self, lab: Lab) -> Iterator[Any]:
        lab.make("configmaps", "all-settings", "ConfigMap", data={"currency": "EUR"})
        lab.make("ledgers", "all", "Ledger", spec={"text": "one", "pages": ["a", "b"], "contents": True})
        yield lambda: lab.is_told("ledgers", "all", "Ready")
        lab.edit("ledgers", "all", {"spec": {"text": "two", "pages": ["b", "c"], "contents": False}})
        yield lambda: lab.is_told("ledgers", "all", "Ready")
        lab.edit("configmaps", "all-settings", {"data": {"currency": "CHF"}})
        yield lambda: lab.get("configmaps", "all-book")["data"]["currency"] == "CHF"
        lab.admin.delete(lab.path("ledgers", "all"))
        yield lambda: lab.get("configmaps", "all-closing")
        lab.edit("configmaps", "all-closing", {"metadata": {"annotations": {"example.com/done": "yes"}}})
        yield lambda: gone(lab, "ledgers", "all")


def gone(lab: Lab, resource: str, name: str) -> bool:
    try:
        lab.get(resource, name)
    except RefusedError as error:
        return error.code == 404
    return False


def undisturbed(make: Make, life: Any) -> Course:
    course = Course()
    with opened(make, life) as lab:
        lab.start_and_wait()
        foreign = lab.make("configmaps", "foreign", "ConfigMap", data=FOREIGN)
        for probe in life.steps(lab):
            lab.eventually("the next step", probe)
            while not quiet(lab.proxy):
                pass
            course.stages.append(lab.snapshot())
        ended(lab, course, foreign)
    return course


def disturbed(make: Make, life: Any, disturb: Callable[[Lab], None], course: Course) -> list[str]:
    """The same life with a disturbance, compared with its undisturbed course at each step. Gives what it was that was disturbed."""
    with opened(make, life) as lab:
        disturb(lab)
        lab.start()
        foreign = lab.make("configmaps", "foreign", "ConfigMap", data=FOREIGN)
        found: dict[str, Any] = {}
        for number, _ in enumerate(life.steps(lab)):

            def as_it_was(number: int = number) -> bool:
                nonlocal found
                found = lab.snapshot()
                return found == course.stages[number]

            try:
                lab.eventually("what was there without a fault", as_it_was)
            except AssertionError as error:
                raise AssertionError(f"step {number}: {differences(found, course.stages[number])}") from error
        mine = Course()
        ended(lab, mine, foreign)
        lab.check()
        assert mine.counts == course.counts
        assert mine.foreign == course.foreign
        return [str(call) for call in lab.proxy.calls if call.hit]


def opened(make: Make, life: Any) -> Lab:
    return make("life", project=life.project) if life.project else make("life")


def ended(lab: Lab, course: Course, foreign: Any) -> None:
    course.counts = lab.proxy.comings_and_goings()
    course.writes = lab.proxy.told()
    now = lab.get("configmaps", "foreign")["metadata"]
    course.foreign = "untouched" if now["resourceVersion"] == foreign["metadata"]["resourceVersion"] else "touched"


LIVES = (AppLife(), LedgerLife())
