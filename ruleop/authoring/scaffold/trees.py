"""Paths in plain data: names of fields and indexes of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

TreePath: TypeAlias = tuple[str | int, ...]


def walk(value: Any, path: TreePath = ()) -> Iterator[tuple[TreePath, Any]]:
    """Every value in the data with its path, parents first."""
    yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from walk(member, (*path, key))


def value_at(tree: Any, path: TreePath) -> Any:
    """The value at a path; None if there is none."""
    for part in path:
        if isinstance(tree, dict) if isinstance(part, str) else isinstance(tree, list) and part < len(tree):
            tree = tree.get(part) if isinstance(tree, dict) else tree[part]
        else:
            return None
    return tree


def items_at(tree: Any, path: TreePath) -> list[Any]:
    """The list at a path; empty if there is none."""
    found = value_at(tree, path)
    return found if isinstance(found, list) else []


def replaced(tree: Any, changes: dict[TreePath, Any], path: TreePath = ()) -> Any:
    """A copy of the data with other values at some paths. What is below a changed path is not read."""
    if path in changes:
        return changes[path]
    if isinstance(tree, dict):
        return {key: replaced(member, changes, (*path, key)) for key, member in tree.items()}
    if isinstance(tree, list):
        return [replaced(member, changes, (*path, index)) for index, member in enumerate(tree)]
    return tree


def without(tree: Any, path: TreePath) -> Any:
    """A copy of the data without the field or item at a path."""
    first, *rest = path
    if isinstance(tree, dict):
        if not rest:
            return {key: member for key, member in tree.items() if key != first}
        return {key: without(member, tuple(rest)) if key == first else member for key, member in tree.items()}
    if not rest:
        return [member for index, member in enumerate(tree) if index != first]
    return [without(member, tuple(rest)) if index == first else member for index, member in enumerate(tree)]
