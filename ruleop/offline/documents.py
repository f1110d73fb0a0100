"""The objects in a file of YAML or JSON, with the line and column of each value for error messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.errors import RuleError, Site
from ruleop.templating import YamlNode, read_resources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.schema.schema_findings import FieldPath

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


def documents_in(text: str, name: str) -> tuple[list[Document], list[RuleError]]:
    """The objects of a file, and the mistakes in it. A `kind: List` is split into its items."""
    found: list[Document] = []
    nodes, mistakes = read_resources(text, name)
    for node in nodes:
        try:
            found.extend(_objects(node, text))
        except RuleError as error:
            mistakes.append(error)
    return found, mistakes


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
