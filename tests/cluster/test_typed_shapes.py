"""The required fields and enumerations of the packaged types are those that the API server enforces.

The server enforces neither by its documents: each kind has validation of its own. So every required field of a full
object of each kind is removed once, and every value of an enumeration replaced.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest

from ruleop.kubernetes.builtin.builtin_types import type_schemas, typed_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import OPTIONAL_FIELDS, Shape
from tests.cluster.server import Client, RefusedError
from tests.cluster.test_at_rest import OBJECTS, path_of

pytestmark = pytest.mark.real_server("it says what the packaged types should be")

# The volumes of a StatefulSet are not validated in full.
NOT_VALIDATED = {("StatefulSet", "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource", "claimName")}


@pytest.fixture(scope="module")
def surroundings(server: Client) -> None:
    """The pod names a ServiceAccount that has to exist."""
    with contextlib.suppress(RefusedError):
        server.post(
            "/api/v1/namespaces/default/serviceaccounts",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app"}},
        )


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: f"{obj['apiVersion']} {obj['kind']}")
def test_required_fields_are_required_and_the_exceptions_are_not(server: Client, obj: dict[str, Any]) -> None:
    shape = typed_shape(Kind.of(obj))
    assert shape is not None
    assert accepted(server, obj), "as it is"
    wrong = []
    for within, path, parent in objects(shape, obj, ()):
        declared = type_schemas()[within.name].get("required", ()) if within.name else within.required
        for name in declared:
            if name not in parent or (obj["kind"], within.name, name) in NOT_VALIDATED:
                continue
            required = name not in OPTIONAL_FIELDS.get(within.name, ())
            if accepted(server, changed(obj, (*path, name), None)) == required:
                wrong.append((within.name, *path, name))
    assert wrong == []


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: f"{obj['apiVersion']} {obj['kind']}")
def test_other_values_than_those_of_an_enumeration_are_rejected(server: Client, obj: dict[str, Any]) -> None:
    shape = typed_shape(Kind.of(obj))
    assert shape is not None
    values = list(enumerated(shape, obj, ()))
    assert [path for path, value, enum in values if value and value not in enum] == [], "an empty one is a missing one"
    assert [path for path, _, _ in values if accepted(server, changed(obj, path, "Other"))] == []


def accepted(server: Client, obj: dict[str, Any]) -> bool:
    """Whether the server would create it, under a name that no other test uses; the name of a CRD is fixed."""
    name = obj["metadata"].get("name")
    if name is not None and obj["kind"] != "CustomResourceDefinition":
        name = name.replace("rich", "typed")
    try:
        server.post(f"{path_of(Kind.of(obj))}?dryRun=All", {**obj, "metadata": {**obj["metadata"], "name": name}})
    except RefusedError as error:
        if error.code == 409:
            raise
        return False
    return True


def changed(obj: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """A copy with another value at a path; without the field for None."""
    copied = copy.deepcopy(obj)
    parent: Any = copied
    for part in path[:-1]:
        parent = parent[part]
    if value is None:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return copied


def objects(
    shape: Shape | None, value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[Shape, tuple[str | int, ...], Any]]:
    """The maps in an object outside of its status, each with its shape."""
    if shape is None or path[:1] == ("status",):
        return
    if isinstance(value, dict):
        yield shape, path, value
        for name, member in value.items():
            yield from objects(shape.fields.get(name, shape.values), member, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from objects(shape.items, item, (*path, index))


def enumerated(
    shape: Shape | None, value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, tuple[str, ...]]]:
    if shape is None:
        return
    if shape.enum:
        yield path, value, shape.enum
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from enumerated(shape.fields.get(name, shape.values), member, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from enumerated(shape.items, item, (*path, index))
