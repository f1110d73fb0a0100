"""Reads the objects in the files of `-f` and `--with`, with the line and column of each value for error messages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruleop.cli.findings import excerpt, mistake
from ruleop.cli.program import UsageError
from ruleop.cli.terminal import print_diagnostics
from ruleop.errors import RuleError, Site
from ruleop.templating import YamlNode, read_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.schema.schema_findings import FieldPath

STDIN = "-"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file."""

    data: dict[str, Any]
    node: YamlNode
    text: str  # of the whole file

    def site(self, path: FieldPath) -> Site:
        """The place of a field, or of the nearest parent that exists."""
        node, site = self.node, self.node.site
        for part in path:
            value = node.value
            if isinstance(part, str) and isinstance(value, dict) and part in value:
                node, site = value[part], node.key_sites[part]
            elif isinstance(part, int) and isinstance(value, list) and part < len(value):
                node, site = value[part], value[part].site
            else:
                break
        return site


def read_documents(files: Iterable[str], *, folder: str, quoting: bool = True) -> list[Document]:
    """All objects of the files and folders; a `kind: List` is split into its items. Prints mistakes, then fails.

    `quoting`: whether lines of the files may be printed. False for objects of a cluster, because some are Secrets.
    """
    found: list[Document] = []
    unusable = []
    for file in _expanded(files):
        name, text = "stdin" if file == STDIN else file, _text(file, folder)
        nodes, mistakes = read_resources(text, name)
        for node in nodes:
            try:
                found.extend(_objects(node, text))
            except RuleError as error:
                mistakes.append(error)
        for each in mistakes:
            print_diagnostics([*mistake(str(each.site), each.message), *(excerpt(text, each.site) if quoting else ())])
        unusable += [name] if mistakes else []
    if unusable:
        raise UsageError(f"{', '.join(unusable)} cannot be used")
    return found


def _expanded(files: Iterable[str]) -> Iterator[str]:
    """The files, with each folder replaced by its YAML and JSON files in order, without subfolders, as kubectl does."""
    for file in files:
        if file == STDIN or not Path(file).is_dir():
            yield file
            continue
        try:
            entries = sorted(Path(file).iterdir())
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
        found = [entry.as_posix() for entry in entries if _is_object_file(entry)]
        if not found:
            raise UsageError(f"{file}: no .yaml, .yml or .json file in this folder")
        yield from found


def _is_object_file(path: Path) -> bool:
    return path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _text(file: str, folder: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except FileNotFoundError:
        inside = Path(folder) / file
        meant = f" (paths are relative to the current folder; did you mean {inside.as_posix()}?)"
        raise UsageError(f"{file}: no such file{meant if inside.exists() else ''}") from None
    except OSError as error:
        raise UsageError(f"{'stdin' if file == STDIN else file}: cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{Site(file, line)}: not valid UTF-8") from None


def _objects(node: YamlNode, text: str) -> Iterator[Document]:
    members = node.value
    if not isinstance(members, dict):
        raise RuleError("not an object: expected a mapping with apiVersion, kind and metadata", node.site)
    if "plans" in members and "apiVersion" not in members:
        yield from _planned(members["plans"], text)
        return
    for name in ("apiVersion", "kind"):
        value = members[name].value if name in members else None
        if not isinstance(value, str) or not value:
            raise RuleError(f"{name} is missing or not a string", members[name].site if name in members else node.site)
    items = members["items"].value if "items" in members else None
    if str(members["kind"].value).endswith("List") and isinstance(items, list):
        for item in items:
            yield from _objects(item, text)
        return
    yield Document(node.data(), node, text)


def _planned(plans: YamlNode, text: str) -> Iterator[Document]:
    """The objects that a `ruleop plan -o json` would create, so that the next plan can start from there."""
    for plan in plans.value if isinstance(plans.value, list) else ():
        actions = plan.value.get("actions") if isinstance(plan.value, dict) else None
        for action in actions.value if actions is not None and isinstance(actions.value, list) else ():
            if isinstance(action.value, dict) and "object" in action.value:
                yield from _objects(action.value["object"], text)
