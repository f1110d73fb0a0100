"""What is true of each new project: check finds nothing, its tests pass, and its samples are planned without a
problem."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import yaml

from ruleop.authoring.checking import check_project
from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.offline import EPOCH, OfflineKinds, as_live, dropped, identified, prepare
from ruleop.authoring.ruletests.cases import find_files, parse_file
from ruleop.authoring.ruletests.runner import Projects, Runner, Snapshots
from ruleop.authoring.scaffold.new_project import NewProject, project_files, write_files
from ruleop.language.rules.checking import load_with_sources
from ruleop.planning import FixedObjects, Observed, Plan, choose_rule, plan
from tests.authoring.ruletests.running import failure_text


def planned(
    project: NewProject,
    root: Path,
    allowed: Collection[str] = (),
    *,
    more: Sequence[NewProject] = (),
    tested: bool = True,
) -> list[Plan]:
    """Writes the project, checks it, and plans each sample among the objects that users make. Secrets that are not
    among the manifests of an application are missing in its project, too. `allowed` are the names of more checks that
    may find something. `more` are its other kinds. `tested`: whether it has tests."""
    files = project_files(project, {}, more)
    write_files(root, files)
    loaded = load_with_sources(root, environ={})
    unsaid = {"missing-reference", "immutable-change", "stale-job"}  # what the objects do not say
    assert [str(each) for each in check_project(loaded) if each.code not in {*unsaid, *allowed}] == []
    assert bool(cases_pass(root)) == tested
    loaded = with_definitions(loaded)
    kinds = OfflineKinds(loaded.project)
    texts = {name: yaml.load(text, yaml.CSafeLoader) for name, text in files.items() if name.endswith(".yaml")}
    live = as_live([each for name, each in texts.items() if name.startswith("existing/")], kinds)
    plans = []
    for name, sample in texts.items():
        if name.startswith("examples/"):
            assert dropped(loaded.project, sample) == []
            resource, findings = prepare(loaded.project, identified(sample, live, kinds))
            assert findings == []
            rule = choose_rule(loaded.project.rules, resource)
            assert rule is not None
            plans.append(plan(rule, resource, Observed(FixedObjects([*live, resource]), kinds, now=EPOCH, seed=b"")))
    for each in plans:
        assert each.problems == ()
        assert each.waits == ()
    return plans


def cases_pass(root: Path) -> int:
    """How many cases the tests of the project have; all must pass. `ruleop test` runs them in the same way, and
    tests/cli/test_init.py runs that."""
    runner, passed = Runner(Projects(root, {}), Snapshots(ci=True)), 0
    for path in find_files(root):
        file = parse_file(path, path.name, path.read_text(encoding="utf-8"))
        assert file.findings == ()
        failed = [failure_text(result) for case in file.cases if not (result := runner.run(case)).passed]
        assert failed == []
        passed += len(file.cases)
    return passed


def rendered(plans: list[Plan]) -> dict[str, Any]:
    """The rendered objects of the first sample, by kind and name."""
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for _, _, obj in plans[0].rendered}
