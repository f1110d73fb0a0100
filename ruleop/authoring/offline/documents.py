"""The objects in a file of YAML or JSON, with the line and column of each value for error messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.errors import RuleError, Site
from ruleop.language.templates.resource_reader import read_resources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.schema import FieldPath
    from ruleop.language.templates import YamlNode

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
    _require_metadata(members)
    yield Document(node.data(), node, text)


def _require_metadata(members: dict[str, YamlNode]) -> None:
    """Raises RuleError if something that identifies an object has another form. What is missing is reported later."""
    metadata = members.get("metadata")
    if metadata is None or metadata.value is None:
        return
    if not isinstance(metadata.value, dict):
        raise RuleError("metadata must be a mapping", metadata.site)
    for name in ("name", "namespace"):
        found = metadata.value.get(name)
        if found is not None and not isinstance(found.value, str | None):
            hint = "" if isinstance(found.value, dict | list) else ": put it in quotes"
            raise RuleError(f"metadata.{name} must be a string{hint}", found.site)
    for name in ("labels", "annotations"):
        found = metadata.value.get(name)
        if found is not None and not isinstance(found.value, dict | None):
            raise RuleError(f"metadata.{name} must be a mapping", found.site)
    owners = metadata.value.get("ownerReferences")
    if owners is not None and owners.value is not None:
        items = owners.value if isinstance(owners.value, list) else [owners]
        if not all(isinstance(item.value, dict) for item in items):
            raise RuleError("metadata.ownerReferences must be a list of mappings", owners.site)


def _planned(plans: YamlNode, text: str) -> Iterator[Document]:
    """The objects that a `ruleop plan -o json` would create, so that the next plan can start from there."""
    for plan in plans.value if isinstance(plans.value, list) else ():
        actions = plan.value.get("actions") if isinstance(plan.value, dict) else None
        for action in actions.value if actions is not None and isinstance(actions.value, list) else ():
            if isinstance(action.value, dict) and "object" in action.value:
                yield from _objects(action.value["object"], text)
