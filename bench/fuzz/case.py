"""A case: a rule, a custom resource of a size, and what happens to the resource and its children between two passes.

A case is a small YAML file whatever the size of the resource, because its values are Python expressions. They are
evaluated with the few names below; nobody but the search and the people of this project writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MAX_RESOURCE: Final = 1536 * 1024
"""Bytes of a custom resource: what the API server accepts."""

OPEN: Final = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}}}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {spec}
            status: {status}
"""
ENTRIES: Final = (
    "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, "
    "x-kubernetes-preserve-unknown-fields: true, properties: {name: {type: string}}, required: [name]}}"
)
MEMBERS: Final = "{type: array, x-kubernetes-list-type: set, items: {type: string}}"
DEFINITIONS: Final = {
    "crds/app.yaml": DEFINITION.format(kind="App", plural="apps", spec=OPEN, status=OPEN),
    "crds/thing.yaml": DEFINITION.format(
        kind="Thing",
        plural="things",
        spec=f"{{{OPEN[1:-1]}, properties: {{entries: {ENTRIES}, members: {MEMBERS}}}}}",
        status=OPEN,
    ),
}


def nested(depth: int, width: int = 1) -> Any:
    """Lists in lists."""
    value: Any = ["x"] * width
    for _ in range(max(0, min(depth, 100) - 1)):
        value = [value, *["x"] * (width - 1)]
    return value


def tree(depth: int, name: str = "a") -> Any:
    """Mappings in mappings."""
    value: Any = "x"
    for _ in range(min(depth, 100)):
        value = {name: value}
    return value


_NAMES: Final = {"__builtins__": {}, "range": range, "str": str, "chr": chr, "nested": nested, "tree": tree}


def value_of(expression: str) -> Any:
    return eval(expression, dict(_NAMES))  # noqa: S307 - written by the search itself, or by people of this project


# -- what happens between two passes -----------------------------------------------------------------------------------


def _altered(value: Any) -> Any:
    if isinstance(value, str):
        return f"{value}~"
    if isinstance(value, dict):
        return {name: _altered(member) for name, member in value.items()}
    return [_altered(item) for item in value] if isinstance(value, list) else value


def _lists(change: Callable[[list[Any]], list[Any]], *, inner: bool = True) -> Callable[[Any], Any]:
    """Changes lists of several items, because a single container has to stay. `inner`: also lists inside lists; where
    that is false, no change can multiply itself."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(member) for name, member in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) < 2:
            return [changed(item) for item in value]
        return change([changed(item) for item in value] if inner else value)

    return changed


def _half(value: Any) -> Any:
    if isinstance(value, dict):
        names = list(value)
        return {name: _half(value[name]) for name in names[: (len(names) + 1) // 2]}
    return value[: len(value) // 2] if isinstance(value, (str, list)) else value


def _filled(value: Any, number: int = 3000) -> Any:
    """Adds to the outermost containers that can take more; others may."""
    if isinstance(value, dict):
        inner = {name: _filled(member, number) for name, member in value.items()}
        return {**inner, **{f"f{index}": "" for index in range(number)}} if inner == value else inner
    if not isinstance(value, list) or not value:
        return value
    if isinstance(value[0], dict):
        return [*value, *({**value[0], "name": f"f{index}"} for index in range(number))]
    return [*value, *(f"f{index}" for index in range(number))] if isinstance(value[0], str) else value


CHANGES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "none": lambda value: value,
    "reversed": _lists(lambda items: items[::-1]),
    "rotated": _lists(lambda items: items[1:] + items[:1]),
    "without every second": _lists(lambda items: items[::2]),
    "without the first": _lists(lambda items: items[1:]),
    "doubled": _lists(lambda items: items + [_altered(item) for item in items], inner=False),
    "repeated": _lists(lambda items: items + items, inner=False),
    "altered": _altered,
    "filled": _filled,
    "altered and filled": lambda value: _filled(_altered(value), 300),
    "half": _half,
}


@dataclass(frozen=True)
class Case:
    files: Mapping[str, str]  # watches.yaml and templates
    spec: Mapping[str, str] = field(default_factory=dict)  # expressions by field
    annotations: str = "{}"  # an expression
    status: str = "{}"  # an expression: the status that the resource has before the first pass
    seen: Mapping[str, str] = field(default_factory=dict)  # expressions: the objects that each observed id refers to
    change: str = "none"  # of the spec, between the passes
    others: str = "none"  # what another client does to the children between the passes
    deleted: bool = False  # the resource is deleted at last
    shown: bool = False  # the plan as text is measured too
    found: Mapping[str, Any] = field(default_factory=dict)  # the reading when it was found
    note: str = ""

    def resource(self) -> dict[str, Any]:
        return {
            "apiVersion": "example.com/v1",
            "kind": "App",
            "metadata": {
                "name": "app",
                "namespace": "default",
                "uid": "00000000-0000-0000-0000-000000000001",
                "resourceVersion": "1",
                "generation": 1,
                "creationTimestamp": "1970-01-01T00:00:00Z",
                "annotations": value_of(self.annotations),
            },
            "spec": {name: value_of(text) for name, text in self.spec.items()},
            **({"status": status} if (status := value_of(self.status)) else {}),
        }

    def observed(self) -> list[dict[str, Any]]:
        """The objects of others: Pods with the label of their id, of which the first has its name too."""
        return [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{id_}-{number}",
                    "namespace": "default",
                    "uid": f"{id_}-{number}",
                    "resourceVersion": "1",
                    "labels": {"seen": id_},
                },
                "spec": value,
            }
            for id_, text in self.seen.items()
            for number, value in enumerate(value_of(text))
        ]

    def changed(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        metadata = {**resource["metadata"], "generation": 2, "resourceVersion": "2"}
        return {**resource, "metadata": metadata, "spec": CHANGES[self.change](resource["spec"])}

    def text(self) -> str:
        found = {name: getattr(self, name) for name in _WRITTEN}
        document = {name: value for name, value in found.items() if value and value not in ("none", "{}")}
        return yaml.dump(
            {**document, "files": dict(self.files)}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120
        )


_WRITTEN: Final = (
    "note", "found", "spec", "annotations", "status", "seen", "change", "others", "deleted", "shown",
)  # fmt: skip


def read(path: Path) -> Case:
    return Case(**yaml.safe_load(path.read_text(encoding="utf-8")))


def size(resource: Mapping[str, Any]) -> int:
    return len(orjson.dumps(resource))


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
