"""The names of objects as far as they are known before anything is rendered: `{{ metadata.name }}-config`.

A name is followed through `let`, `{% set %}`, macros, `vars`, and the names of children and observed objects, so that
two names that are written differently can be compared. What depends on the spec, an item or a filter is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from jinja2 import nodes

from ruleop.checking.typing.environments import chain_of
from ruleop.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.checking.bodies import Body, Field
    from ruleop.checking.body_writer import Printed
    from ruleop.checking.sources import Sources
    from ruleop.kinds import JSON
    from ruleop.rules.checks.scopes import Part
    from ruleop.templating import YamlNode

KnownName = tuple[str | None, ...]
"""Text with `{{ metadata.name }}` for the name of the CR; None is any text."""

OF_CR: Final = "{{ metadata.name }}"
_ANY: Final[KnownName] = (None,)
_NAME: Final = ("metadata", "name")
_AROUND_NAME: Final = frozenset({(), ("metadata",)})
_IDENTITY: Final = frozenset({"name", "namespace", "uid"})
_MAX_DEPTH: Final = 8  # of names in each other


def text_of(name: KnownName) -> str:
    """The text of a name that is known as a whole; "" of others."""
    return "" if None in name else "".join(part or "" for part in name)


def may_be(name: KnownName, text: str) -> bool:
    pattern = "".join(".*" if part is None else re.escape(part) for part in name)
    return re.fullmatch(pattern, text, re.DOTALL) is not None


@dataclass(slots=True)
class KnownNames:
    """Of one watch."""

    sources: Sources
    _assigned: dict[int, dict[str, nodes.Node]] = field(default_factory=dict)

    def of_field(self, found: Field, part: Part, depth: int = 0) -> KnownName:
        """The text that a field of a child will have. Of a line with a condition, a body shows one outcome only."""
        lines = self.sources.loaded.files.get(found.site.path, "").split("\n")
        if found.spread or "{%" in lines[max(found.site.line - 1, 0)]:
            return _ANY
        return self._of_pieces(found.pieces, part, depth) if found.pieces else (str(found.value),)

    def of_object(self, body: Body, part: Part, depth: int = 0) -> KnownName:
        """The name of the object in a body."""
        names = [each for each in body.fields if each.path == _NAME or (each.spread and each.path in _AROUND_NAME)]
        return self.of_field(names[0], part, depth) if len(names) == 1 else _ANY

    def _of_pieces(self, pieces: Iterable[str | Printed], part: Part, depth: int) -> KnownName:
        found: list[str | None] = []
        for piece in pieces:
            if isinstance(piece, str):
                found.append(piece)
            elif piece.captured is not None:
                found += self._of_pieces(piece.captured, part, depth)
            else:
                found += self._of_node(piece.node, part, depth)
        return tuple(found)

    def of_text(self, node: YamlNode, part: Part, depth: int = 0) -> KnownName:
        """The text of a string of watches.yaml."""
        if not isinstance(node.value, str):
            return _ANY
        found: list[str | None] = []
        for output in self.sources.loaded.library.written_string(node.value, node.site).body:
            if not isinstance(output, nodes.Output):
                return _ANY
            for each in output.nodes:
                found += self._of_node(each, part, depth)
        return tuple(found)

    def _of_node(self, node: nodes.Node, part: Part, depth: int) -> KnownName:
        if depth > _MAX_DEPTH:
            return _ANY
        if isinstance(node, nodes.TemplateData):
            return (str(node.data),)
        if isinstance(node, nodes.Const):
            return (str(node.value),)
        if isinstance(node, nodes.Concat):
            return tuple(text for each in node.nodes for text in self._of_node(each, part, depth + 1))
        if isinstance(node, nodes.Add):
            return (*self._of_node(node.left, part, depth + 1), *self._of_node(node.right, part, depth + 1))
        path = chain_of(node)
        return _ANY if path is None else self._of_path([str(step) for step in path], part, depth + 1)

    def _of_path(self, path: list[str], part: Part, depth: int) -> KnownName:
        head, *rest = path[1:] if path[0] in ("cr", "live") and len(path) > 1 else path
        watch = self.sources.watch
        if head == "metadata" and len(rest) == 1 and rest[0] in _IDENTITY:
            return (f"{{{{ metadata.{rest[0]} }}}}",)
        if not rest and (assigned := self._set_once(part).get(head)) is not None:
            return self._of_node(assigned, part, depth)
        if head == "vars":
            return self._of_var(rest)
        let = next((each for each in watch.parts if each.let == head), None)
        if let is not None:
            return self._of_let(let, rest, depth)
        if rest != ["metadata", "name"]:
            return _ANY
        body = next((each for each in self.sources.body_parts if each.child and each.child.id == head), None)
        if body is not None and body.child is not None and not body.child.many:
            names = {self.of_object(each, body, depth) for each in self.sources.bodies(body)}
            return names.pop() if len(names) == 1 else _ANY
        observed = watch.draft.observed.get(head)
        table = observed.value if observed is not None else None
        return self.of_text(table.name.node, part, depth) if table is not None and table.name is not None else _ANY

    def _of_var(self, path: list[str]) -> KnownName:
        value: JSON = dict(self.sources.watch.draft.vars)
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return (value,) if isinstance(value, str) else _ANY

    def _of_let(self, let: Part, path: list[str], depth: int) -> KnownName:
        node: YamlNode | None = let.node
        for step in path:
            node = node.value.get(step) if node is not None and isinstance(node.value, dict) else None
        return self.of_text(node, let, depth) if node is not None else _ANY

    def _set_once(self, part: Part) -> dict[str, nodes.Node]:
        """The values of names that a template sets in one place."""
        found = self._assigned.get(id(part))
        if found is None:
            found = self._assigned[id(part)] = {}
            if isinstance(part.compiled, TextTemplate):
                trees = self.sources.loaded.library.written_trees([part.compiled.name])
                names = [each for tree in trees for each in tree.find_all(nodes.Name) if each.ctx != "load"]
                set_names = Counter(each.name for each in names)
                for each in (each for tree in trees for each in tree.find_all(nodes.Assign)):
                    if isinstance(each.target, nodes.Name) and set_names[each.target.name] == 1:
                        found[each.target.name] = each.node
        return found
