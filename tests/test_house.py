"""The order of the package: no module imports itself by way of others, not even for types alone, so that each can be
read, and moved, with what it imports. Where the `__init__` of a room has a list `__all__`, it is the room's face: other
rooms import what it lists, and nothing else of that room."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ruleop"
# Everybody may import modules of these rooms past the face: the operator and the tests of rules load a part of each,
# and a face loads all of it.
LENT_IN_PARTS = (
    "ruleop.language.rules",
    "ruleop.language.rules.loading",
    "ruleop.language.templates",
    "ruleop.language.templates.compile",
    "ruleop.localcluster",
    "ruleop.planning",
)


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


def faces(package: Path) -> dict[str, set[str]]:
    """The rooms with a face, and the names that each lends."""
    found = {}
    for path in package.rglob("__init__.py"):
        for node in ast.parse(path.read_text()).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == "__all__"
            ):
                found[_name(path.relative_to(package.parent))] = set(ast.literal_eval(node.value))
    return found


def entries_past_faces(package: Path) -> list[str]:
    """The imports of what is inside a room by modules outside it."""
    found = []
    rooms = {room: names for room, names in faces(package).items() if room not in LENT_IN_PARTS}
    for path in package.rglob("*.py"):
        name = _name(path.relative_to(package.parent))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for room, lent in rooms.items():
                    is_inside = node.module.startswith(f"{room}.")
                    is_other = node.module == room and not {each.name for each in node.names} <= lent
                    if (is_inside or is_other) and not f"{name}.".startswith(f"{room}."):
                        found.append(f"{name} imports {node.module}")
    return sorted(found)


def test_other_rooms_import_what_a_face_lists() -> None:
    assert entries_past_faces(PACKAGE) == []


def test_an_entry_past_a_face_is_found(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "room").mkdir(parents=True)
    (package / "room/__init__.py").write_text('from house.room.cupboard import cup\n\n__all__ = ["cup"]\n')
    (package / "room/cupboard.py").write_text("cup, plate = 1, 2\n")
    guest = package / "guest.py"
    guest.write_text("from house.room import cup\n")
    assert entries_past_faces(package) == []
    for entry in ("from house.room.cupboard import cup", "from house.room import cupboard"):
        guest.write_text(f"def take():\n    {entry}\n")
        assert len(entries_past_faces(package)) == 1
