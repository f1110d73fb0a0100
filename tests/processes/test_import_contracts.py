"""The contracts of the imports hold, and a broken one is found: the image of the operator needs none of the tools."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BREAKAGES = (
    ("operator/passes/executor.py", "from ruleop.localcluster.local_cluster import LocalCluster"),
    ("planning/planner.py", "from ruleop.authoring.checking import check_project"),
    ("cli/run.py", "from ruleop.authoring.ruletests.runner import Runner"),
    ("language/rules/loading.py", "from ruleop.authoring.live.open_cluster import Cluster"),
    ("operator/wire/client/client.py", "from ruleop.authoring.dev import Session"),
    ("kubernetes/merge/patch.py", "from ruleop.kubernetes.validation.validators import creation_errors"),
    ("language/templates/compile/library.py", "from ruleop.authoring.scaffold.new_project import NewProject"),
)
CONTRACT = "importlinter:contract:operator"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, with the one contract."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "ruleop", folder / "ruleop", ignore=shutil.ignore_patterns("__pycache__"))
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    for section in contracts.sections():
        if section not in {"importlinter", CONTRACT}:
            contracts.remove_section(section)
    with (folder / ".importlinter").open("w") as file:
        contracts.write(file)
    return folder


def broken(folder: Path) -> str:
    """The report of the contracts that do not hold; empty if all do."""
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts: " in run.stdout, run.stdout + run.stderr
    return run.stdout.partition("Broken contracts")[2]


@pytest.mark.slow
def test_the_operator_imports_no_tool(copy: Path) -> None:
    assert broken(copy) == ""


@pytest.mark.slow
@pytest.mark.parametrize(("file", "statement"), BREAKAGES, ids=[file for file, _ in BREAKAGES])
def test_an_import_of_a_tool_is_found(copy: Path, file: str, statement: str) -> None:
    path = copy / "ruleop" / file
    before = path.read_text()
    path.write_text(
        before.replace("from __future__ import annotations\n", f"from __future__ import annotations\n{statement}\n", 1)
    )
    try:
        assert file.removesuffix(".py").replace("/", ".") in broken(copy)
    finally:
        path.write_text(before)
