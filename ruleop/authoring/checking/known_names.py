"""The names of objects as far as they are known before anything is rendered: `{{ metadata.name }}-config`.

A name is followed through `let`, `{% set %}`, macros, `vars`, and the names of children and observed objects, so that
two names that are written differently can be compared. What depends on the spec, an item or a filter is unknown, and so
is a name of very many parts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from jinja2 import nodes

from ruleop.authoring.checking.typing.environments import attribute_path
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.authoring.checking.dataflow.sources import Sources
    from ruleop.core.kinds import JSON
    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.templating import YamlNode
    from ruleop.core.templating.bodies.body import Body, Field
    from ruleop.core.templating.bodies.body_writer import Printed

KnownName = tuple[str | None, ...]
"""Text with `{{ metadata.name }}` for the name of the CR; None is any text."""

OF_CR: Final = "{{ metadata.name }}"
_ANY: Final[KnownName] = (None,)
_NAME: Final = ("metadata", "name")
_AROUND_NAME: Final = frozenset({(), ("metadata",)})
_IDENTITY: Final = frozenset({"name", "namespace", "uid"})
_MAX_DEPTH: Final = 30  # of expressions in each other
_MAX_PARTS: Final = 64


def text_of(name: KnownName) -> str:
    """The text of a name that is known as a whole; "" of others."""
    return "" if None in name else "".join(part or "" for part in name)


def may_be(name: KnownName, text: str) -> bool:
    """Whether a name may have this text."""
    first, *others = "".join("\0" if part is None else part for part in name).split("\0")
    if not others:
        return text == first
    *middle, last = others
    at, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last)):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


@dataclass(slots=True)
class KnownNames:
    """Of one watch."""

    sources: Sources
    _lines: dict[str, list[str]] = field(default_factory=dict)  # of files
    _assigned: dict[int, dict[str, nodes.Node]] = field(default_factory=dict)
    _paths: dict[tuple[int, tuple[object, ...]], KnownName] = field(default_factory=dict)
    _depth: int = 0

    def of_field(self, found: Field, part: Part) -> KnownName:
        """The text that a field of a child will have. Of a line with a condition, a body shows one outcome only."""
        if found.spread or "{%" in self._line(found):
            return _ANY
        return self._of_pieces(found.pieces, part) if found.pieces else (str(found.value),)

    def of_object(self, body: Body, part: Part) -> KnownName:
        """The name of the object in a body."""
        names = [each for each in body.fields if each.path == _NAME or (each.spread and each.path in _AROUND_NAME)]
        return self.of_field(names[0], part) if len(names) == 1 else _ANY

    def of_text(self, node: YamlNode, part: Part) -> KnownName:
        """The text of a string of watches.yaml."""
        if not isinstance(node.value, str):
            return _ANY
        body = self.sources.loaded.library.written_string(node.value, node.site).body
        if not all(isinstance(each, nodes.Output) for each in body):
            return _ANY
        return self._joined((each for output in body for each in output.iter_child_nodes()), part)

    def _line(self, found: Field) -> str:
        path = found.site.path
        if path not in self._lines:
            self._lines[path] = self.sources.loaded.files.get(path, "").split("\n")
        lines = self._lines[path]
        return lines[found.site.line - 1] if 0 < found.site.line <= len(lines) else ""

    def _of_pieces(self, pieces: Iterable[str | Printed], part: Part) -> KnownName:
        found: list[str | None] = []
        for piece in pieces:
            if isinstance(piece, str):
                found.append(piece)
            elif piece.captured is not None:
                found += self._of_pieces(piece.captured, part)
            else:
                found += self._of_node(piece.node, part)
        return tuple(found) if len(found) <= _MAX_PARTS else _ANY

    def _joined(self, operands: Iterable[nodes.Node], part: Part) -> KnownName:
        found = tuple(text for each in operands for text in self._of_node(each, part))
        return found if len(found) <= _MAX_PARTS else _ANY

    def _of_node(self, node: nodes.Node, part: Part) -> KnownName:
        if self._depth > _MAX_DEPTH:
            return _ANY
        self._depth += 1
        try:
            if isinstance(node, nodes.TemplateData):
                return (str(node.data),)
            if isinstance(node, nodes.Const):
                return (str(node.value),)
            if isinstance(node, nodes.Concat):
                return self._joined(node.nodes, part)
            if isinstance(node, nodes.Add):
                return self._joined((node.left, node.right), part)
            path = attribute_path(node)
            return _ANY if path is None else self._of_path(path, part)
        finally:
            self._depth -= 1

    def _of_path(self, path: tuple[object, ...], part: Part) -> KnownName:
        key = (id(part), path)
        if key not in self._paths:
            self._paths[key] = _ANY  # of a name that refers to itself
            self._paths[key] = self._looked_up([str(step) for step in path], part)
        return self._paths[key]

    def _looked_up(self, path: list[str], part: Part) -> KnownName:
        head, *rest = path[1:] if path[0] in ("cr", "live") and len(path) > 1 else path
        watch = self.sources.watch
        if head == "metadata" and len(rest) == 1 and rest[0] in _IDENTITY:
            return (f"{{{{ metadata.{rest[0]} }}}}",)
        if not rest and (assigned := self._set_once(part).get(head)) is not None:
            return self._of_node(assigned, part)
        if head == "vars":
            return self._of_var(rest)
        let = next((each for each in watch.parts if each.let == head), None)
        if let is not None:
            return self._of_let(let, rest)
        if rest != ["metadata", "name"]:
            return _ANY
        child = next((each for each in self.sources.body_parts if each.child and each.child.id == head), None)
        if child is not None and child.child is not None and not child.child.many:
            names = {self.of_object(body, child) for body in self.sources.bodies(child)}
            return names.pop() if len(names) == 1 else _ANY
        observed = watch.draft.observed.get(head)
        table = observed.value if observed is not None else None
        return (
            self.of_text(table.name.node, part)
            if table is not None and table.name is not None and not table.many
            else _ANY
        )

    def _of_var(self, path: list[str]) -> KnownName:
        value: JSON = dict(self.sources.watch.draft.vars)
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return (value,) if isinstance(value, str) else _ANY

    def _of_let(self, let: Part, path: list[str]) -> KnownName:
        node: YamlNode | None = let.node
        for step in path:
            node = node.value.get(step) if node is not None and isinstance(node.value, dict) else None
        return self.of_text(node, let) if node is not None else _ANY

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
