"""What rendering, planning and merging cost, beside their budgets and beside a naive implementation of the same work.

    make bench        or        python bench/core.py

The naive implementation is Jinja to text, PyYAML's safe_load, and jsonpatch to find out whether something changed.
Nothing is asserted: timings on a shared machine vary.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import logging
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import jsonpatch
import structlog
import yaml

from ruleop.authoring.offline import OfflineKinds, prepare
from ruleop.authoring.ruletests.cases import parse_file
from ruleop.authoring.ruletests.runner import Projects, Runner, Snapshots
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import create_fields, three_way
from ruleop.language.rules.checking import load_project
from ruleop.planning import FixedObjects, Observed, choose_rule, plan
from ruleop.planning.rendering.scope import ResourceScope

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the corpus belongs to the tests

from tests.limits.large import Large  # noqa: E402
from tests.limits.shapes import SHAPES, Shape  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.language.rules import Project


def measure(work: Callable[[], object], *, seconds: float = 1.0) -> float:
    """The median time of one call, in milliseconds, over rounds that together take about `seconds`."""
    work()
    start = time.perf_counter()
    work()
    once = max(time.perf_counter() - start, 1e-7)
    calls = max(1, int(seconds / 7 / once))
    rounds = []
    gc.collect()
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        rounds.append((time.perf_counter() - start) / calls)
    return statistics.median(rounds) * 1000


def live_of(project: Project, resource: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The App with its status, and its children as an API server would return them."""
    rule = choose_rule(project.rules, resource)
    assert rule is not None
    made = plan(rule, resource, Observed(FixedObjects(), OfflineKinds(project)))
    live = []
    for number, action in enumerate(made.actions):
        obj = json.loads(json.dumps(action.object))  # type: ignore[union-attr]
        uid = f"00000000-0000-0000-0000-00000000000{number}"
        obj["metadata"] |= {"uid": uid, "resourceVersion": str(100 + number), "generation": 1}
        if obj["kind"] == "Deployment":
            replicas = obj["spec"]["replicas"]
            obj["status"] = {
                "observedGeneration": 1,
                "replicas": replicas,
                "updatedReplicas": replicas,
                "readyReplicas": replicas,
                "availableReplicas": replicas,
            }
        live.append(obj)
    settled = plan(rule, resource, Observed(FixedObjects(live), OfflineKinds(project)))
    assert settled.status is not None
    return {**resource, "status": settled.status.status}, live


class Naive:
    """Jinja to text, text to YAML, and a JSON patch from the live object to the desired one."""

    def __init__(self) -> None:
        environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined, loader=jinja2.FileSystemLoader(ROOT / "templates"), trim_blocks=True
        )
        self.templates = [environment.get_template(f"app/{name}.yaml.j2") for name in ("deployment", "service")]

    def render(self, resource: dict[str, Any]) -> list[Any]:
        names = {"metadata": resource["metadata"], "spec": resource["spec"]}
        return [yaml.safe_load(template.render(names)) for template in self.templates]

    def plan(self, resource: dict[str, Any], live: list[dict[str, Any]]) -> list[Any]:
        patches = []
        for desired, now in zip(self.render(resource), live, strict=True):
            merged = overlay(now, desired)
            patches.append(jsonpatch.make_patch(now, merged))
        return patches


def overlay(now: Any, desired: Any) -> Any:
    if isinstance(now, dict) and isinstance(desired, dict):
        return {**now, **{key: overlay(now.get(key), value) for key, value in desired.items()}}
    return copy.deepcopy(desired)


def main() -> None:
    project = load_project(ROOT, environ={})
    app, _ = prepare(project, yaml.safe_load((ROOT / "examples/app.yaml").read_text()))
    app, live = live_of(project, app)
    rule = choose_rule(project.rules, app)
    assert rule is not None
    observed = Observed(FixedObjects(live), OfflineKinds(project))
    edited = copy.deepcopy(app)
    edited["spec"]["deployment"]["replicas"] += 1

    def render() -> None:
        names = ResourceScope(rule, app, observed, observed.objects).names
        for child in rule.children.values():
            child.body.render(names)

    shape = builtin_shape(Kind("apps", "v1", "Deployment"))
    assert shape is not None
    deployment = live[0]
    desired = {key: deployment[key] for key in ("apiVersion", "kind", "metadata", "spec")}
    fields = create_fields(desired, shape)
    changed = copy.deepcopy(desired)
    changed["spec"]["replicas"] += 1
    changed["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    naive = Naive()
    rows: list[tuple[str, float, float | None, float | None]] = [
        ("render two children", measure(render), 0.15, measure(lambda: naive.render(app))),
        (
            "render + plan, nothing changed",
            measure(lambda: plan(rule, app, observed)),
            0.2,
            measure(lambda: naive.plan(app, live)),
        ),
        (
            "render + plan, changed",
            measure(lambda: plan(rule, edited, observed)),
            1.0,
            measure(lambda: naive.plan(edited, live)),
        ),
        (
            "merge a Deployment, nothing changed",
            measure(lambda: three_way(deployment, desired, fields, shape)),
            None,
            measure(lambda: jsonpatch.make_patch(deployment, overlay(deployment, desired))),
        ),
        (
            "merge a Deployment, changed",
            measure(lambda: three_way(deployment, changed, fields, shape)),
            None,
            measure(lambda: jsonpatch.make_patch(deployment, overlay(deployment, changed))),
        ),
        ("load the project", measure(lambda: load_project(ROOT, environ={})), None, None),
        *rule_tests(),
    ]
    show(rows)
    show_limits()
    show_turns()


def rule_tests() -> list[tuple[str, float, float | None, float | None]]:
    """Cases of tests/app.test.yaml: with one pass, and with five steps."""
    runner = Runner(Projects(ROOT, {}), Snapshots())
    path = ROOT / "tests/app.test.yaml"
    one, several, *_ = parse_file(path, path.name, path.read_text("utf-8")).cases
    assert runner.run(one).passed
    assert runner.run(several).passed
    steps = len(several.steps)
    return [
        ("rule test of one step", measure(lambda: runner.run(one)), 1.5, None),
        (f"rule test of {steps} steps", measure(lambda: runner.run(several)), 1.5 * steps, None),
    ]


LIMITS = 1.0, 64.0
"""Seconds and MiB that one pass may take, beyond what the resource and its children take."""


def show_limits() -> None:
    """The most expensive passes that are known, each in a process of its own: seconds, memory, and what is counted."""
    print(f"\n{'the most expensive passes':<52}{'s':>8}{'MiB':>8}{'counted':>9}")
    for shape in SHAPES:
        seconds, memory, counted = in_process(lambda shape=shape: cost_of(shape))  # type: ignore[misc]
        mark = " over the limit" if seconds > LIMITS[0] or memory > LIMITS[1] else ""
        print(f"{shape.name:<52}{seconds:>8.3f}{memory:>8.1f}{counted:>9.1f}{mark}")


def cost_of(shape: Shape) -> tuple[float, float, float]:
    found = shape.prepared()
    gc.collect()
    before, start = resource_usage(), time.process_time()
    found.run()
    seconds = time.process_time() - start
    return seconds, resource_usage() - before, found.account.bytes / 2**20


def resource_usage() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_process(work: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
    """The numbers that the work returns in a child process, so that its memory is its own."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.write(writer, json.dumps(work()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        found: tuple[float, ...] = tuple(json.load(answer))
    os.waitpid(child, 0)
    return found


def show_turns() -> None:
    """The longest turn of the event loop while several resources with a thousand children each are reconciled."""
    print(f"\n{'16 resources with 1,000 children each':<38}{'longest turn, ms':>18}{'turns':>8}")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    gc.freeze()
    gc.set_threshold(5000, 5, 80)  # as in the operator
    large = Large(16, 1000)
    with asyncio.Runner() as runner:
        for what in ("created", "at rest", "all edited", "at rest again"):
            if what == "all edited":
                large.edit()
            turns = runner.run(large.reconcile())
            print(f"{what:<38}{max(turns) * 1000:>18.0f}{len(turns):>8}")


def show(rows: list[tuple[str, float, float | None, float | None]]) -> None:
    print(f"{'what':<38}{'ms':>9}{'budget':>9}{'used':>8}{'naive, ms':>12}{'ratio':>8}")
    for name, cost, budget, other in rows:
        share = f"{cost / budget:.0%}" if budget else ""
        ratio = f"{other / cost:.0f}x" if other else ""
        print(f"{name:<38}{cost:>9.3f}{budget or '':>9}{share:>8}{f'{other:.2f}' if other else '':>12}{ratio:>8}")


if __name__ == "__main__":
    main()
