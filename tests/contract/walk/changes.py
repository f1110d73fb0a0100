"""Random changes of an object, and random patches."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.contract.walk.making import NAMES, Chance

Path = tuple[Any, ...]
# Where pods get their service account from: the real server reads it only if its controllers run.
_PINNED = ("automountServiceAccountToken", "serviceAccountName")
_OPERATIONS = ("add", "replace", "remove", "test", "copy", "move")


def changed(chance: Chance, obj: dict[str, Any]) -> dict[str, Any]:
    """The object with one random change: a field is gone, has another value, or a list another order."""
    obj = copy.deepcopy(obj)
    paths = [path for path in _paths(obj) if path[0] not in ("apiVersion", "kind") and path[-1] not in _PINNED]
    if not paths:
        return obj
    *outer, last = chance.random.choice(paths)
    parent: Any = obj
    for step in outer:
        parent = parent[step]
    if chance.happens(0.4):
        parent.pop(last)
    else:
        parent[last] = _other(chance, chance.value(parent[last]))
    return obj


def _other(chance: Chance, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return chance.random.choice(NAMES)
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list) and value:
        found = chance.random.sample(value, len(value))
        return [*found, copy.deepcopy(chance.random.choice(value))] if chance.happens(0.3) else found
    return value


def partial(chance: Chance, obj: dict[str, Any], *, strategic: bool) -> dict[str, Any]:
    """A patch with some of the fields of a changed object, sometimes with null or a directive."""
    found = {
        name: value
        for name, value in changed(chance, obj).items()
        if name not in ("apiVersion", "kind") and chance.happens(0.6)
    }
    if isinstance(metadata := found.get("metadata"), dict):
        found["metadata"] = {name: value for name, value in metadata.items() if name != "name"}
    spec = found.get("spec")
    if not isinstance(spec, dict) or not spec:
        return found
    if chance.happens(0.3):
        name = chance.random.choice(sorted(spec))
        spec = found["spec"] = {name: None if chance.happens(0.4) else spec[name]}
    if strategic:
        _add_directives(chance, spec)
    return found


def _add_directives(chance: Chance, spec: dict[str, Any]) -> None:
    if chance.happens(0.1):
        spec["$patch"] = chance.random.choice(("replace", "delete", "merge"))
    template = spec.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(pod, dict):
        return
    if isinstance(containers := pod.get("containers"), list) and chance.happens(0.3):
        name = chance.random.choice(NAMES)
        directives = ({"$patch": "delete", "name": name}, {"$patch": "replace"}, {"$patch": "merge", "name": name})
        containers.append(chance.random.choice(directives))
    if chance.happens(0.1):
        pod["$setElementOrder/containers"] = [{"name": chance.random.choice(NAMES)} for _ in range(2)]
    if chance.happens(0.1):
        pod["$retainKeys"] = ["containers"]


def operations(chance: Chance, obj: dict[str, Any]) -> list[dict[str, Any]]:
    """A JSON patch."""
    paths = [_pointer(path) for path in _paths(obj) if path[0] not in ("apiVersion", "kind", *_PINNED)] or ["/x"]
    found = []
    for _ in range(chance.random.randint(1, 3)):
        operation = {"op": chance.random.choice(_OPERATIONS), "path": chance.random.choice(paths)}
        if operation["op"] in ("add", "replace", "test"):
            operation["value"] = chance.value(chance.random.choice(("a", 1, {}, [], {"name": "a"})))
        if operation["op"] in ("copy", "move"):
            operation["from"] = chance.random.choice(paths)
        found.append(operation)
    return found


def _pointer(path: Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from _paths(inner, (*path, step))
