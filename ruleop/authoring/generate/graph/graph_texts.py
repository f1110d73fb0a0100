"""The graph of rules as text: Mermaid, and the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.dot import digraph, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.generate.graph.rule_graph import Graph, Role, Why

_ROLES: Final[dict[Role, tuple[str, str, str]]] = {  # the brackets of Mermaid, the colour in Graphviz
    "resource": ("([", "])", "lightsteelblue"),
    "child": ("[", "]", "white"),
    "observed": ("[/", "/]", "lightgrey"),
    "status": ("(", ")", "honeydew"),
}
_ARROWS: Final[dict[Why, tuple[str, str]]] = {
    "creates": ("-->", "solid"),
    "reads": ("-->", "solid"),
    "waits": ("==>", "bold"),
    "observes": ("-.->", "dashed"),
    "reports": ("-.->", "dotted"),
}
_PLAIN: Final = frozenset(" ./_:,()=+←…")


def mermaid(graphs: Sequence[Graph]) -> str:
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _mermaid_lines(graphs)), ""])


def _mermaid_lines(graphs: Sequence[Graph]) -> Iterator[str]:
    conditional = []
    for number, graph in enumerate(graphs):
        names = _names(number, graph)
        for node in graph.nodes:
            start, end, _ = ("[[", "]]", "") if node.repeated else _ROLES[node.role]
            yield f'{names[node.name]}{start}"{"<br/>".join(map(_mermaid_text, node.shown))}"{end}'
        for edge in graph.edges:
            yield f"{names[edge.source]} {_ARROWS[edge.why][0]} {names[edge.target]}"
        conditional += [names[node.name] for node in graph.nodes if node.conditional]
    if conditional:
        yield "classDef conditional stroke-dasharray: 5 4"
        yield f"class {','.join(conditional)} conditional"


def _names(number: int, graph: Graph) -> dict[str, str]:
    """Names that are keywords of neither language."""
    return {node.name: f"r{number}n{index}" for index, node in enumerate(graph.nodes)}


def _mermaid_text(text: str) -> str:
    """Entities for all that Mermaid, its Markdown or HTML could read as something else."""
    return "".join(each if each.isalnum() or each in _PLAIN else f"#{ord(each)};" for each in text)


def dot(graphs: Sequence[Graph]) -> str:
    return digraph("rules", _dot_lines(graphs))


def _dot_lines(graphs: Sequence[Graph]) -> Iterator[str]:
    for number, graph in enumerate(graphs):
        names = _names(number, graph)
        for node in graph.nodes:
            style = ', style="rounded,filled,dashed"' if node.conditional else ""
            style += ", peripheries=2" if node.repeated else ""
            yield f"{names[node.name]} [label={quoted(*node.shown)}, fillcolor={_ROLES[node.role][2]}{style}];"
        for edge in graph.edges:
            yield f"{names[edge.source]} -> {names[edge.target]} [style={_ARROWS[edge.why][1]}];"
