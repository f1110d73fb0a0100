"""Stores that contain what is put into them: children by ruleop's label, and the CR itself, without managedFields."""

from __future__ import annotations

from collections.abc import Iterable

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.planning.model.marks import PART_OF
from ruleop.planning.model.observed import KindInfo


class FakeStores:
    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self.objects: dict[ObjectKey, Object] = {}
        for obj in objects:
            self.put(obj)

    def info(self, kind: Kind) -> KindInfo:
        return KindInfo(kind, shape=builtin_shape(kind) or UNKNOWN)

    def put(self, obj: Object) -> bool:
        if not selects(obj):
            return False
        self.objects[ObjectKey.of(obj)] = as_kept(obj)
        return True

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        found = self.objects.get(key)
        if found is not None and found["metadata"]["uid"] == uid:
            del self.objects[key]


def selects(obj: Object) -> bool:
    return obj["kind"] == "App" or PART_OF in (obj["metadata"].get("labels") or {})


def as_kept(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
