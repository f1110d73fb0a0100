"""Rules on their way from the process that loads them to the operator. Both run the same ruleop, and nothing else
writes to the pipe between them: what is read is trusted like the code.

A project is sent in parts: what is the same for all rules, each rule, and each template file. So neither side has the
bytes of a large project in memory as a whole, nor what a pickler remembers of it.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ruleop.language.rules.keys.model import Project, Rule
from ruleop.language.templates.tree.templates import File, Templates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SIZE_BYTES: Final = 8
"""Before the bytes of a part, their number."""
_DEPTH: Final = 20_000  # of nodes inside others, of which templates may have some hundreds
_TEMPLATES: Final = "templates"


def to_parts(project: Project) -> Iterator[bytes]:
    """The templates of its rules are those of one project."""
    yield _written(replace(project, rules=()), [])
    templates: list[Templates] = []
    for rule in project.rules:
        yield _written(rule, templates)
    for each in templates[:1]:
        for file in each.files.items():
            yield _written(file, [])


def from_parts(parts: Iterable[bytes]) -> Project:
    found = PartsReader()
    for each in parts:
        found.add(each)
    return found.project()


class PartsReader:
    """Reads a project whose parts arrive one after the other."""

    def __init__(self) -> None:
        self.common: Project | None = None  # without its rules
        self._templates = Templates({})
        self._rules: list[Rule] = []

    def add(self, data: bytes) -> None:
        """Raises anything for what was not written by `to_parts`."""
        match _Unpickler(io.BytesIO(data), self._templates).load():
            case Project() as found:
                self.common, self._templates = found, Templates(found.templates)
            case Rule() as found:
                self._rules.append(found)
            case str() as name, File() as file:
                self._templates.files[name] = file
            case _:
                raise pickle.UnpicklingError

    def project(self) -> Project:
        assert self.common is not None, "it is the first part"
        return replace(self.common, rules=tuple(self._rules))


def _mapping(entries: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(entries)


class _Pickler(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda proxy: (_mapping, (dict(proxy),))}

    def __init__(self, file: io.BytesIO, templates: list[Templates]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.templates = templates

    def persistent_id(self, value: object) -> str | None:
        if not isinstance(value, Templates):
            return None
        self.templates.append(value)
        return _TEMPLATES


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, templates: Templates) -> None:
        super().__init__(file)
        self.templates = templates

    def persistent_load(self, _: str) -> Templates:
        return self.templates


def _written(value: Project | Rule | tuple[str, File], templates: list[Templates]) -> bytes:
    """`templates`: is given those of the value, which are left out."""
    written, depth = io.BytesIO(), sys.getrecursionlimit()
    sys.setrecursionlimit(_DEPTH)
    try:
        _Pickler(written, templates).dump(value)
    finally:
        sys.setrecursionlimit(depth)
    return written.getvalue()
