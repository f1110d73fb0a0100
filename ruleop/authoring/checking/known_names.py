"""Names of objects and values of labels, as far as they are known before anything is rendered.

`{{ metadata.name }}-config` is known up to the name of the CR. A text is followed through `let`, `{% set %}`, macros,
`vars`, and the names of children and observed objects, so that two texts that are written differently can be compared.
What depends on the spec or a filter is unknown, and equal to itself; what depends on an item may be any text, and so
may a text of very many parts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ruleop.language.templates import TextTemplate, syntax
from ruleop.language.templates.syntax import chain_of, find, names_in
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.checking.dataflow import Sources
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import YamlNode
    from ruleop.language.templates.bodies.body import Body, BodyField, FieldPath, Printed


@dataclass(frozen=True, slots=True)
class UnknownName:
    """Any text. `expression`, if it has one text in all of a CR's children: equal ones are equal texts."""

    expression: str = ""


KnownName = tuple[str | UnknownName, ...]
"""Text with `{{ metadata.name }}` for the name of the CR."""

OF_CR: Final = "{{ metadata.name }}"
ANY: Final[KnownName] = (UnknownName(),)
_NAME: Final = ("metadata", "name")
_AROUND_NAME: Final = frozenset({(), ("metadata",)})
_IDENTITY: Final = {name: f"{{{{ metadata.{name} }}}}" for name in ("name", "namespace", "uid")}
_OF_CR_ALONE: Final = frozenset({"cr", "metadata", "spec", "status", "vars"})
_MAX_DEPTH: Final = 30  # of expressions in each other
_MAX_PARTS: Final = 64


def text_of(name: KnownName) -> str:
    """The text of a name that is known as a whole; "" of others."""
    return "" if any(isinstance(part, UnknownName) for part in name) else "".join(map(str, name))


def shown(name: KnownName) -> str:
    """The name for a message."""
    return "".join(
        part if isinstance(part, str) else f"{{{{ {part.expression} }}}}" if part.expression else "\u2026"
        for part in name
    )


@lru_cache(maxsize=4096)
def may_be(name: KnownName, other: KnownName) -> bool:
    """Whether two names may be the same text, where a CR's name is none that is written out."""
    return _may_be(_tokens(name), _tokens(other))


def can_be(name: KnownName, other: KnownName) -> bool:
    """Whether two names may be the same text for some CR."""
    return _may_be(_tokens(map(_of_any_cr, name)), _tokens(map(_of_any_cr, other)))


def _of_any_cr(part: str | UnknownName) -> str | UnknownName:
    return UnknownName(part) if isinstance(part, str) and part in _IDENTITY.values() else part


_Token = str | UnknownName


def _tokens(name: Iterable[str | UnknownName]) -> list[_Token]:
    return [token for part in name for token in ([part] if isinstance(part, UnknownName) else part)]


def _may_be(one: list[_Token], other: list[_Token]) -> bool:
    """A common beginning and a common end do not count. In the rest, each unknown part may be any text."""
    while one and other and _are_equal(one[0], other[0]):
        one, other = one[1:], other[1:]
    while one and other and _are_equal(one[-1], other[-1]):
        one, other = one[:-1], other[:-1]
    seen, waiting = {(0, 0)}, [(0, 0)]
    while waiting:
        at, beside = waiting.pop()
        if (at, beside) == (len(one), len(other)):
            return True
        this = one[at] if at < len(one) else None
        that = other[beside] if beside < len(other) else None
        steps = []
        if isinstance(this, UnknownName):
            steps += [(at + 1, beside), *([(at, beside + 1)] if that is not None else [])]
        if isinstance(that, UnknownName):
            steps += [(at, beside + 1), *([(at + 1, beside)] if this is not None else [])]
        if this is not None and this == that:
            steps.append((at + 1, beside + 1))
        waiting += [each for each in steps if each not in seen]
        seen.update(steps)
    return False


def _are_equal(one: _Token, other: _Token) -> bool:
    return one == other and one != UnknownName()


@dataclass(slots=True)
class KnownMembers:
    """The entries of a mapping of texts, such as labels."""

    known: dict[str, KnownName] = field(default_factory=dict)
    is_open: bool = False  # there may be others
    fields: dict[str, BodyField] = field(default_factory=dict)  # of the entries that are written in the body

    def add(self, others: KnownMembers) -> None:
        self.known = {**others.known, **self.known}
        self.is_open |= others.is_open


_OPEN: Final = KnownMembers(is_open=True)


@dataclass(slots=True)
class KnownNames:
    """Of one watch."""

    sources: Sources
    _assigned: dict[int, dict[str, syntax.Node | None]] = field(default_factory=dict)
    _paths: dict[tuple[int, tuple[object, ...]], KnownName] = field(default_factory=dict)
    _depth: int = 0

    def of_field(self, found: BodyField, part: RulePart) -> KnownName:
        """The text that a field of a child will have. Of a text with a condition in it, a body shows one outcome."""
        if found.spread or found.chosen:
            return ANY
        return self._of_pieces(found.pieces, part) if found.pieces else (str(found.value),)

    def of_object(self, body: Body, part: RulePart) -> KnownName:
        """The name of the object in a body."""
        names = [each for each in body.fields if each.path == _NAME or (each.spread and each.path in _AROUND_NAME)]
        return self.of_field(names[0], part) if len(names) == 1 else ANY

    def of_members(self, body: Body, path: FieldPath, part: RulePart) -> KnownMembers:
        """The entries of a mapping in a body."""
        found = KnownMembers()
        for each in body.fields:
            if len(each.path) <= len(path):
                if each.path == path[: len(each.path)] and each.pieces:
                    found.add(self._members_of(each, part) if each.path == path else _OPEN)
            elif each.path[: len(path)] == path:
                key = each.path[len(path)]
                if key == "*" or not isinstance(key, str) or each.chosen:
                    found.is_open = True
                else:
                    found.known[key], found.fields[key] = self.of_field(each, part), each
        return found

    def _members_of(self, found: BodyField, part: RulePart) -> KnownMembers:
        """The entries of a mapping that is printed as a whole, if it is that of a `let` or of another child."""
        path = chain_of(found.pieces[0].node) if not isinstance(found.pieces[0], str) else ()
        if not path or len(found.pieces) != 1 or self._depth > _MAX_DEPTH or found.chosen:
            return _OPEN
        head, *rest = path
        if head in self._set_in(part):
            return _OPEN
        self._depth += 1
        try:
            let = next((each for each in self.sources.watch.parts if each.let == head), None)
            if let is not None:
                return self._members_of_let(let, [str(step) for step in rest])
            child = self._single(str(head))
            bodies = self.sources.bodies(child) if child is not None else ()
            if child is None or len(bodies) != 1 or not rest:
                return _OPEN
            of_child = self.of_members(bodies[0], tuple(str(step) for step in rest), child)
            return KnownMembers(of_child.known, of_child.is_open)
        finally:
            self._depth -= 1

    def _members_of_let(self, let: RulePart, path: list[str]) -> KnownMembers:
        node = let.node.member(*path)
        if node is None or not isinstance(node.value, dict) or any("{" in key for key in node.value):
            return _OPEN
        return KnownMembers({key: self.of_text(member, let) for key, member in node.value.items()})

    def of_text(self, node: YamlNode, part: RulePart) -> KnownName:
        """The text of a string of watches.yaml."""
        if not isinstance(node.value, str):
            return ANY
        body = self.sources.loaded.library.written_string(node.value, node.site).body
        parts = [each.value if isinstance(each, syntax.Print) else each for each in body]
        return self._joined(parts, part) if all(isinstance(each, (syntax.Data, syntax.Expr)) for each in parts) else ANY

    def _of_pieces(self, pieces: Iterable[str | Printed], part: RulePart) -> KnownName:
        found: list[str | UnknownName] = []
        for piece in pieces:
            if isinstance(piece, str):
                found.append(piece)
            elif piece.captured is not None:
                found += self._of_pieces(piece.captured, part)
            else:
                found += self._of_node(piece.node, part, piece.place.expression)
        return tuple(found) if len(found) <= _MAX_PARTS else ANY

    def _joined(self, operands: Iterable[syntax.Node], part: RulePart) -> KnownName:
        found = tuple(text for each in operands for text in self._of_node(each, part))
        return found if len(found) <= _MAX_PARTS else ANY

    def _of_node(self, node: syntax.Node, part: RulePart, expression: str = "") -> KnownName:
        if self._depth > _MAX_DEPTH:
            return ANY
        self._depth += 1
        try:
            match node:
                case syntax.Data():
                    return (node.text,)
                case syntax.Const():
                    return (str(node.value),)
                case syntax.Concat():
                    return self._joined(node.parts, part)
                case syntax.Operation(left, "+", right):
                    return self._joined((left, right), part)
            path = chain_of(node)
            found = self._of_path(path, part) if path else ANY
            return (
                (UnknownName(expression),) if found == ANY and expression and names_in(node) <= _OF_CR_ALONE else found
            )
        finally:
            self._depth -= 1

    def _of_path(self, path: tuple[object, ...], part: RulePart) -> KnownName:
        key = (id(part), path)
        if key not in self._paths:
            self._paths[key] = ANY  # of a name that refers to itself
            self._paths[key] = self._looked_up([str(step) for step in path], part)
        return self._paths[key]

    def _looked_up(self, path: list[str], part: RulePart) -> KnownName:
        head, *rest = path[1:] if path[0] in ("cr", "live") and len(path) > 1 else path
        watch = self.sources.watch
        if head == "metadata" and len(rest) == 1 and rest[0] in _IDENTITY:
            return (_IDENTITY[rest[0]],)
        if head in (assigned := self._set_in(part)):
            value = assigned[head]
            return self._of_node(value, part) if value is not None and not rest else ANY
        if head == "vars":
            constant: JSON = dict(self.sources.watch.draft.vars)
            for step in rest:
                constant = constant.get(step) if isinstance(constant, dict) else None
            return (constant,) if isinstance(constant, str) else ANY
        let = next((each for each in watch.parts if each.let == head), None)
        if let is not None:
            node = let.node.member(*rest)
            return self.of_text(node, let) if node is not None else ANY
        if rest != ["metadata", "name"]:
            return ANY
        child = self._single(head)
        if child is not None:
            names = {self.of_object(body, child) for body in self.sources.bodies(child)}
            return names.pop() if len(names) == 1 else ANY
        observed = watch.draft.observed.get(head)
        table = observed.value if observed is not None else None
        return (
            self.of_text(table.name.node, part)
            if table is not None and table.name is not None and not table.many
            else ANY
        )

    def _single(self, id_: str) -> RulePart | None:
        """The body of a child that is one object."""
        found = next((each for each in self.sources.body_parts if each.child and each.child.id == id_), None)
        return found if found is not None and found.child is not None and not found.child.many else None

    def _set_in(self, part: RulePart) -> dict[str, syntax.Node | None]:
        """The names that a template sets, with their values where there is one; a parameter has many."""
        found = self._assigned.get(id(part))
        if found is None:
            found = self._assigned[id(part)] = {}
            if isinstance(part.compiled, TextTemplate):
                trees = self.sources.loaded.library.written_trees([part.compiled.name])
                set_names = Counter(name for tree in trees for name in _names_set_in(tree))
                found.update(dict.fromkeys(set_names))
                for each in (each for tree in trees for each in find(tree, syntax.Set)):
                    if isinstance(each.target, syntax.Variable) and set_names[each.target.name] == 1:
                        found[each.target.name] = each.value
        return found


def _names_set_in(tree: syntax.Template) -> Iterator[str]:
    """The names that a file sets, and the parameters of its macros."""
    yield from (each.name for each in find(tree, syntax.Variable))
    yield from (name for macro in find(tree, syntax.Macro) for name in macro.params)
    yield from (name for block in find(tree, syntax.CallBlock) for name in block.params)
