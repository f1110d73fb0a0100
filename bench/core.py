"""What rendering, planning and merging cost, beside their budgets and beside a naive implementation of the same work.

    make bench        or        python bench/core.py

The naive implementation is Jinja to text, PyYAML's safe_load, and jsonpatch to find out whether something changed.
Nothing is asserted: timings on a shared machine vary.
"""

from __future__ import annotations

import copy
import gc
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import jsonpatch
import yaml

from ruleop.kinds import Kind
from ruleop.merge import create_fields, three_way
from ruleop.offline.cluster import OfflineKinds, prepare
from ruleop.planning import FixedObjects, Observed, choose_rule, plan
from ruleop.planning.rendering.scope import Scope
from ruleop.rules import Project, load_project
from ruleop.schema.table import builtin_shape

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent


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
    resource, _ = prepare(project, yaml.safe_load((ROOT / "examples/app.yaml").read_text()))
    resource, live = live_of(project, resource)
    rule = choose_rule(project.rules, resource)
    assert rule is not None
    observed = Observed(FixedObjects(live), OfflineKinds(project))
    edited = copy.deepcopy(resource)
    edited["spec"]["deployment"]["replicas"] += 1

    def render() -> None:
        names = Scope(rule, resource, observed).names
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
        ("render two children", measure(render), 0.15, measure(lambda: naive.render(resource))),
        (
            "render + plan, nothing changed",
            measure(lambda: plan(rule, resource, observed)),
            0.2,
            measure(lambda: naive.plan(resource, live)),
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
    ]
    show(rows)


def show(rows: list[tuple[str, float, float | None, float | None]]) -> None:
    print(f"{'what':<38}{'ms':>9}{'budget':>9}{'used':>8}{'naive, ms':>12}{'ratio':>8}")
    for name, cost, budget, other in rows:
        share = f"{cost / budget:.0%}" if budget else ""
        ratio = f"{other / cost:.0f}x" if other else ""
        print(f"{name:<38}{cost:>9.3f}{budget or '':>9}{share:>8}{f'{other:.2f}' if other else '':>12}{ratio:>8}")


if __name__ == "__main__":
    main()
