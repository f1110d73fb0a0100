"""Objects of kinds from tables: those that are valid, with fields merged into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ruleop.localcluster.objects.patches import merge_patch
from tests.contract.client import Reply, Server

CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding", "IngressClass", "PersistentVolume")


class Cases:
    """A table beside the tests: for each kind, or part of one, its path, a valid object, and cases in groups."""

    def __init__(self, name: str) -> None:
        self._table = yaml.load(Path(__file__).with_name(name).read_text(), Loader=yaml.CSafeLoader)

    def named(self, group: str) -> list[Any]:
        found = [(about, name) for about, row in self._table.items() for name in row.get(group, ())]
        return [pytest.param(about, name, id=f"{about}: {name}") for about, name in found]

    def fields(self, about: str, group: str, name: str) -> Any:
        return self._table[about][group][name]

    def is_namespaced(self, about: str) -> bool:
        return about not in CLUSTER_WIDE

    def path(self, about: str, namespace: str) -> str:
        root, plural = self._table[about]["path"].split()
        return f"{root}/namespaces/{namespace}/{plural}" if self.is_namespaced(about) else f"{root}/{plural}"

    def obj(self, about: str, fields: Any, name: str = "a") -> Any:
        row = self._table[about]
        version = row["path"].split()[0].removeprefix("/apis/").removeprefix("/api/")
        head = {"apiVersion": version, "kind": row.get("kind", about), "metadata": {"name": name}}
        return merged_at({**head, **row["valid"]}, row.get("at", ()), fields)

    def create(self, server: Server, namespace: str, about: str, fields: Any, name: str = "a") -> Reply:
        return server.send("POST", f"{self.path(about, namespace)}?dryRun=All", self.obj(about, fields, name))


def merged_at(value: Any, place: Sequence[Any], fields: Any) -> Any:
    """The value with fields merged into what is at a place in it."""
    if not place:
        return merge_patch(value, fields)
    found = value.copy()
    found[place[0]] = merged_at(value[place[0]], place[1:], fields)
    return found


CREATIONS = Cases("creation_errors.yaml")
