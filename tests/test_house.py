"""The order of the package: no module imports itself by way of others, not even for types alone, so that each can be
read, and moved, with what it imports."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ruleop"


def imports(package: Path) -> dict[str, set[str]]:
    """The modules of the package that each of them imports: at the top, for types, or in functions."""
    paths = {_name(path.relative_to(package.parent)): path for path in package.rglob("*.py")}
    return {name: _imported(path, paths.keys()) - {name} for name, path in paths.items()}


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, modules: set[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            members = {f"{node.module}.{each.name}" for each in node.names}
            found |= members & modules
            if members - modules:
                found.add(node.module or "")
    return found & modules


def circle(package: Path) -> list[str]:
    """The modules of one circle of imports; empty if there is none."""
    try:
        TopologicalSorter(imports(package)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.slow
def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle(PACKAGE) == []


def test_a_circle_of_imports_for_types_and_in_functions_is_found(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "wing").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "wing/__init__.py").write_text("from house.wing.door import open_door\n")
    (package / "wing/door.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.key\n")
    (package / "key.py").write_text("def turned():\n    return 1\n")
    assert circle(package) == []
    (package / "key.py").write_text("def turned():\n    from house.wing import open_door\n    return open_door\n")
    assert set(circle(package)) == {"house.wing", "house.wing.door", "house.key"}
