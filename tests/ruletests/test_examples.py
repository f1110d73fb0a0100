"""The rule tests of the examples pass."""

from __future__ import annotations

import pytest

from ruleop.ruletests.cases import find_files, parse_file
from ruleop.ruletests.projects import Projects
from ruleop.ruletests.report import failure_text
from ruleop.ruletests.runner import Runner
from ruleop.ruletests.snapshots import Snapshots
from tests.docs.messages import ROOT

PROJECTS = sorted(file.parent for file in (ROOT / "examples").glob("*/watches.yaml"))


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_the_tests_of_an_example_pass(project):
    snapshots = Snapshots()
    runner = Runner(Projects(project, {}), snapshots)
    files = [parse_file(path, str(path), path.read_text("utf-8")) for path in find_files(project)]
    assert files
    assert [str(each) for file in files for each in file.findings] == []
    results = [runner.run(case) for file in files for case in file.cases]
    assert "".join(failure_text(each) for each in results if not each.passed) == ""
    assert snapshots.stale({file.path.parent for file in files}) == []
