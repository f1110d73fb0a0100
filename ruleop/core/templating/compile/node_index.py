"""The nodes of a template by their class, found in one walk: a dozen readers ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

N = TypeVar("N", bound=nodes.Node)
_KEPT = "nodes_by_class"


def nodes_of(tree: nodes.Template, kind: type[N]) -> Sequence[N]:
    """All nodes of a class below a template, in the order of the source. The template does not change afterwards."""
    return _index(tree).get(kind, ())


def nodes_of_any(tree: nodes.Template, kinds: Sequence[type[N]]) -> Iterator[N]:
    """The same of several classes, one class after the other."""
    index = _index(tree)
    for kind in kinds:
        yield from index.get(kind, ())


def _index(tree: nodes.Template) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] | None = tree.__dict__.get(_KEPT)
    if found is None:
        found = {}
        pending: list[nodes.Node] = [tree]
        while pending:
            node = pending.pop()
            found.setdefault(type(node), []).append(node)
            below: list[nodes.Node] = []
            for name in node.fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    below += [each for each in value if isinstance(each, nodes.Node)]
                elif isinstance(value, nodes.Node):
                    below.append(value)
            pending += reversed(below)
        tree.__dict__[_KEPT] = found
    return found
