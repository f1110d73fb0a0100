"""The pytest plugin: fixtures of the cluster in memory, and the cases of test files.

`kube_cluster` is a cluster per test; `kube_cluster_session` one per session. Any project may use them: no rules are
needed. A `*.test.yaml` with cases below a folder with a watches.yaml of ruleop is collected, as `ruleop test` runs it.
The plugin imports nothing else of ruleop until there is such a file, or a test asks for a cluster.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

RULE_TESTS = "ruleop-tests"  # the name of the plugin with the tests of rules, once there is one
OF_OPERATOR_SDK = rb"(?m)^(?:- |  )(?:role|playbook|chart):"  # keys of a watch in its Ansible and Helm operators

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ruleop.localcluster import LocalCluster


def pytest_configure(config: pytest.Config) -> None:
    """A process of pytest-xdist runs the tests of rules with the settings of `ruleop test`."""
    if settings := getattr(config, "workerinput", {}).get("ruleop"):
        from ruleop.authoring.ruletests.pytest_items import RuleTests, RunSettings  # noqa: PLC0415 - lazy

        config.pluginmanager.register(RuleTests(RunSettings(**settings)))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The cases of a test file of a project. `ruleop test` names each of its files."""
    run = parent.config.pluginmanager.get_plugin(RULE_TESTS)
    if run is not None and run.settings.root:
        if not parent.session.isinitpath(file_path):
            return None
    elif not file_path.name.endswith(".test.yaml") or not _is_of_ruleop(file_path):
        return None
    from ruleop.authoring.ruletests.pytest_items import RuleTestFile, RuleTests, RunSettings  # noqa: PLC0415 - lazy: most test runs have no such file

    if run is None:
        run = RuleTests(RunSettings())
        parent.config.pluginmanager.register(run)
    return RuleTestFile.from_parent(parent, path=file_path, run=run)


def _is_of_ruleop(file: Path) -> bool:
    """Whether the file and the nearest watches.yaml above it look like those of a project. A file that does not is
    another tool's, and no mistake: operator-sdk has files of both names."""
    watches = next((each for folder in file.parents if (each := folder / "watches.yaml").is_file()), None)
    if watches is None:
        return False
    from ruleop.files import read_regular  # noqa: PLC0415 - lazy: most test runs have no such file

    try:
        return b"resource:" in read_regular(file) and not re.search(OF_OPERATOR_SDK, read_regular(watches))
    except OSError:
        return False


@pytest.fixture
def kube_cluster() -> Iterator[LocalCluster]:
    """A Kubernetes cluster in memory, new for each test."""
    from ruleop.localcluster import LocalCluster  # noqa: PLC0415 - lazy: most test runs need no cluster

    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kube_cluster_session() -> Iterator[LocalCluster]:
    """A Kubernetes cluster in memory for all tests of the session."""
    from ruleop.localcluster import LocalCluster  # noqa: PLC0415 - lazy

    with LocalCluster() as cluster:
        yield cluster
