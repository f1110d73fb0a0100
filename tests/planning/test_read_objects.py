"""The objects that a plan reads: each child is parsed once, and each object is charged once."""

from __future__ import annotations

from typing import Any

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.planning import FixedObjects
from ruleop.planning.model.marks import PART_OF
from ruleop.planning.model.observed import ReadObjects

KEY = ObjectKey("apps", "Deployment", "shop", "web")


class Parsing(FixedObjects):
    """Each request parses the object again, and says in which version."""

    def __init__(self) -> None:
        super().__init__()
        self.parsed: list[str] = []

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> dict[str, Any] | None:
        self.parsed.append(version)
        metadata = {"name": key.name, "namespace": key.namespace, "labels": {PART_OF: "label"}}
        return {"apiVersion": f"apps/{version or 'v2'}", "kind": key.kind, "metadata": metadata}

    def children(self, part_of: str) -> list[Any]:
        assert part_of == "label"
        return [self.get(KEY, version="v1")]


def test_a_child_is_parsed_and_charged_once():
    objects, charged = Parsing(), list[int]()
    reading = ReadObjects(objects, charged.append)
    (child,) = reading.children("label")
    assert reading.get(KEY, version="v1") is child
    assert objects.parsed == ["v1"]
    assert len(charged) == 1


def test_a_child_is_read_again_in_another_version():
    objects = Parsing()
    reading = ReadObjects(objects, lambda _: None)
    (child,) = reading.children("label")
    for version in ("v2", ""):
        found = reading.get(KEY, version=version)
        assert found is not None
        assert found is not child
        assert Kind.of(found).version == "v2"
    assert objects.parsed == ["v1", "v2", ""]


def test_only_children_are_kept():
    objects = Parsing()
    reading = ReadObjects(objects, lambda _: None)
    assert reading.get(KEY, version="v1") == reading.get(KEY, version="v1")
    assert objects.parsed == ["v1", "v1"]
