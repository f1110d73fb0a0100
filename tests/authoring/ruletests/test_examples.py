"""The rule tests of the examples pass."""

from __future__ import annotations

import pytest

from ruleop.authoring.ruletests.cases import find_files, parse_file
from ruleop.authoring.ruletests.runner import Projects, Runner, Snapshots
from tests.authoring.ruletests.running import failure_text
from tests.docs.messages import ROOT
from tests.exploration import others_slow

PROJECTS = sorted(file.parent for file in (ROOT / "examples").glob("*/watches.yaml"))


@pytest.mark.parametrize("project", others_slow(PROJECTS, ROOT / "examples/crontab"), ids=lambda project: project.name)
def test_the_tests_of_an_example_pass(project):
    snapshots = Snapshots()
    runner = Runner(Projects(project, {}), snapshots)
    files = [parse_file(path, str(path), path.read_text("utf-8")) for path in find_files(project)]
    assert files
    assert [str(each) for file in files for each in file.findings] == []
    results = [runner.run(case) for file in files for case in file.cases]
    assert "".join(failure_text(each) for each in results if not each.passed) == ""
    assert snapshots.stale({file.path.parent for file in files}) == []


LIFE = """\
- name: a life
  resource: examples/{name}.yaml
  existing: [{existing}{{from: render, ready: true}}]
  expect: {{actions: [], waits: {{}}, conditions: {{Ready: "True"}}}}
  then:
    - {{deleted: true, expect: {{}}}}
    - {{existing: [{{ready: true}}], expect: {{gone: true}}}}
"""
SAMPLES = sorted(
    file
    for pattern in ("examples/*/examples/*.yaml", "tests/projects/*/examples/*.yaml")
    for file in ROOT.glob(pattern)
)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.parts[-3]}-{sample.stem}")
def test_every_sample_becomes_ready_and_can_be_deleted(sample):
    root = sample.parents[1]
    existing = f"existing/{sample.name}, " if (root / "existing" / sample.name).exists() else ""
    [case] = parse_file(root / "life.test.yaml", "life", LIFE.format(name=sample.stem, existing=existing)).cases
    result = Runner(Projects(root, {}), Snapshots()).run(case)
    assert result.passed, failure_text(result)
