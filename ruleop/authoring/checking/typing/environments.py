"""The environment of a place in a template: the types of names, and the facts that conditions around it have shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from jinja2 import nodes

from ruleop.authoring.checking.typing.types import UNKNOWN, Type, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Path: TypeAlias = tuple[object, ...]
"""A chain of fields from a name: ("spec", "tls", "secret")."""


@dataclass(frozen=True, slots=True)
class Environment:
    names: Mapping[str, Type] = field(default_factory=dict)
    facts: Mapping[Path, Type] = field(default_factory=dict)
    """Types that are narrower than those of the schema: inside `{% if spec.tls is defined %}`."""
    truths: frozenset[tuple[str, bool]] = frozenset()
    """Conditions that are known to hold, or not to."""

    def with_names(self, names: Mapping[str, Type]) -> Environment:
        """Names that are set here hide what was known of outer ones."""
        if not names:
            return self
        facts = self.facts
        if any(path[0] in names for path in facts):
            facts = {path: each for path, each in facts.items() if path[0] not in names}
        truths = self.truths
        if truths and any(name in text for text, _ in truths for name in names):
            truths = frozenset(each for each in truths if not any(name in each[0] for name in names))
        return Environment({**self.names, **names}, facts, truths)

    def with_fact(self, path: Path, narrowed: Type) -> Environment:
        kept = {known: each for known, each in self.facts.items() if known[: len(path)] != path or known == path}
        return replace(self, facts={**kept, path: narrowed})

    def with_truth(self, text: str, truth: bool) -> Environment:
        return replace(self, truths=self.truths | {(text, truth)})


def joined(environments: Iterable[Environment]) -> Environment:
    """The environment after branches: only the facts that hold after all of them."""
    all_of = list(environments)
    if not all_of:
        return Environment()
    first, *rest = all_of
    if not rest:
        return first
    names = dict(first.names)
    for other in rest:
        for name in names.keys() | other.names.keys():
            mine, theirs = names.get(name), other.names.get(name)
            if mine is not theirs:
                names[name] = join((mine, theirs)) if mine is not None and theirs is not None else UNKNOWN
    facts = {
        path: join(each.facts[path] for each in all_of)
        for path in first.facts
        if all(path in each.facts for each in rest)
    }
    truths = first.truths.intersection(*(each.truths for each in rest))
    return Environment(names, facts, truths)


def attribute_path(node: nodes.Node | None) -> Path | None:
    """The path of an expression that is a chain of fields from a name."""
    steps: list[object] = []
    while isinstance(node, (nodes.Getattr, nodes.Getitem)):
        if isinstance(node, nodes.Getattr):
            steps.append(node.attr)
        elif isinstance(node.arg, nodes.Const):
            steps.append(node.arg.value)
        else:
            return None
        node = node.node
    if not isinstance(node, nodes.Name):
        return None
    return (node.name, *reversed(steps))


def text_of(node: nodes.Node | None) -> str:
    """The source text of a chain of fields, as far as it is one."""
    if isinstance(node, nodes.Name):
        return str(node.name)
    if isinstance(node, nodes.Getattr):
        before = text_of(node.node)
        return f"{before}.{node.attr}" if before else ""
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        before = text_of(node.node)
        return f"{before}[{node.arg.value!r}]" if before else ""
    return ""


def canonical(node: nodes.Node) -> str:
    """A text that is equal for equal expressions."""
    return repr(node)
