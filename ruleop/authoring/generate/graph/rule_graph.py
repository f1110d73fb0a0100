"""The graph of a rule: the custom resource, its children, the objects that it observes, and its status. An edge leads
from what is there first to what depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from ruleop.authoring.checking.object_names import NAME, NAMESPACE, text_of
from ruleop.authoring.report import digraph, quoted
from ruleop.kubernetes.kinds import NAMESPACE_KIND
from ruleop.language.rules import ItemEnd, Patched
from ruleop.language.rules.order import ids_read
from ruleop.language.rules.scopes import possible_in
from ruleop.language.templates import Tree
from ruleop.messages import shortened
from ruleop.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Child, Observe, Rule
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.templates.bodies.body import FieldPath


Role = Literal["resource", "child", "observed", "status"]
Why = Literal["creates", "reads", "waits", "observes", "reports"]

RESOURCE: Final = "cr"
STATUS: Final = "status"
"""Names of nodes. No child can have them: they are reserved in the rules."""
_MAX_LINE: Final = 36  # characters
_MAX_FIELDS: Final = 12  # of the status


@dataclass(frozen=True, slots=True)
class GraphNode:
    name: str
    role: Role
    lines: tuple[str, ...]  # the first is the title
    conditional: bool = False
    repeated: bool = False
    state: str = ""  # of the objects of one custom resource, as a class of the style sheet
    href: str = ""  # to more about it

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(printable(shortened(" ".join(line.split()), _MAX_LINE)) for line in self.lines)


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    target: str
    why: Why


@dataclass(frozen=True, slots=True)
class RuleGraph:
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]  # no two of the same nodes


def rule_graph(watch: Watch, loaded: Loaded) -> RuleGraph:
    rule = watch.rule
    status = dict(_status(watch, loaded))
    nodes = [GraphNode(RESOURCE, "resource", (rule.kind.kind, rule.kind.api_version, *filter(None, [rule.name])))]
    nodes += [
        GraphNode(each.id, "observed", (each.id, each.kind.kind, _how_many(each))) for each in rule.observe.values()
    ]
    nodes += [_child_node(child) for child in _ordered(rule)]
    if status:
        lines = [f"{name} ← {', '.join(sorted(ids))}" if ids else name for name, ids in status.items()]
        more = [f"and {len(lines) - _MAX_FIELDS} more"] if len(lines) > _MAX_FIELDS else []
        nodes.append(GraphNode(STATUS, "status", (STATUS, *lines[:_MAX_FIELDS], *more)))
    found: dict[tuple[str, str], Edge] = {}
    for edge in _edges(watch, loaded, status):
        found.setdefault((edge.source, edge.target), edge)
    inner = {edge.target for edge in found.values() if edge.why in ("reads", "waits")}
    roots = [child.id for child in _ordered(rule) if child.id not in inner]
    return RuleGraph(tuple(nodes), (*(Edge(RESOURCE, id_, "creates") for id_ in roots), *found.values()))


def kinds_of(kinds: Iterable[Kind]) -> str:
    return ", ".join(sorted({kind.kind for kind in kinds})) or "any kind"


def written_names(id_: str, watch: Watch, loaded: Loaded, path: FieldPath = NAME) -> list[str]:
    """The names of a child's objects, or another field of them, as the rules write it; "" for one that depends on what
    a template does."""
    (part,) = (part for part in watch.parts if part.body and part.child is not None and part.child.id == id_)
    fields = [field for body in possible_in(part, loaded.library).bodies for field in body.fields]
    return [*dict.fromkeys(text_of(field, part) for field in fields if field.path == path and not field.spread)]


def _ordered(rule: Rule) -> Iterator[Child]:
    yield from (rule.children[id_] for id_ in rule.order.children)
    yield from (rule.finalize[id_] for id_ in rule.order.final)


def _how_many(observe: Observe) -> str:
    if observe.owned_by is not None:
        return f"owned by {observe.owned_by.child}"
    return "a list" if observe.many else "one object"


def _child_node(child: Child) -> GraphNode:
    lines = [child.id, kinds_of(child.kinds)]
    match child.form:
        case ItemEnd(of=other):
            lines.append(f"at the end of each of {other}")
        case Patched(target=target):
            lines.append("fields of all that match" if target.many else "fields of it")
        case _ if child.final:
            lines.append("on deletion")
    lines += [f"for each {loop.name} in {loop.over.source}" for loop in child.for_each]
    if child.when is not None:
        lines.append(f"when {child.when.source}")
    return GraphNode(child.id, "child", tuple(lines), child.when is not None, child.many)


def _status(watch: Watch, loaded: Loaded) -> Iterator[tuple[str, frozenset[str]]]:
    """Each field and condition, with the ids that it reads."""
    status, draft = watch.rule.status.body, watch.draft
    if isinstance(status, Tree) and isinstance(status.node.value, dict):
        for name, node in status.node.value.items():
            yield name, ids_read(draft, [loaded.library.tree(node)])
    elif status is not None:
        yield "all fields", ids_read(draft, [status])
    for condition in watch.rule.status.conditions:
        texts = (condition.status, condition.reason, condition.message)
        yield condition.type, ids_read(draft, [each for each in texts if each is not None])


def _edges(watch: Watch, loaded: Loaded, status: Mapping[str, frozenset[str]]) -> Iterator[Edge]:
    rule = watch.rule
    for child in _ordered(rule):
        peers = rule.order.final if child.final else rule.order.children
        parts = [part.compiled for part in watch.parts if part.child is not None and part.child.id == child.id]
        namespaces = _namespaces(child, watch, loaded)
        waits = {*child.depends_on, *(id_ for id_ in peers if id_ in namespaces)}
        read = ids_read(watch.draft, parts)
        if isinstance(child.form, ItemEnd):
            yield Edge(child.form.of, child.id, "reads")
        yield from (Edge(id_, child.id, "waits") for id_ in peers if id_ in waits)
        yield from (Edge(id_, child.id, "reads") for id_ in peers if id_ in child.inputs.mentions)
        yield from (Edge(id_, child.id, "observes") for id_ in rule.observe if id_ in read)
    ids = frozenset(chain.from_iterable(status.values()))
    yield from (Edge(id_, STATUS, "reports") for id_ in (*rule.observe, *rule.children, *rule.finalize) if id_ in ids)


def _namespaces(child: Child, watch: Watch, loaded: Loaded) -> frozenset[str]:
    """The children that are the Namespace of this one's objects, by the same text."""
    given = {child.namespace.source} if child.namespace is not None else set()
    texts = given | {*written_names(child.id, watch, loaded, NAMESPACE)} - {""}
    return frozenset(
        id_
        for id_, other in watch.rule.children.items()
        if id_ != child.id
        and any(kind.versionless == NAMESPACE_KIND.versionless for kind in other.kinds)
        and not texts.isdisjoint(written_names(id_, watch, loaded))
    )


# -- graph texts -------------------------------------------------------------------------------------------------------
#
# The graph of rules as text: Mermaid, and the language of Graphviz.


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


def mermaid(graphs: Sequence[RuleGraph]) -> str:
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _mermaid_lines(graphs)), ""])


def _mermaid_lines(graphs: Sequence[RuleGraph]) -> Iterator[str]:
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


def _names(number: int, graph: RuleGraph) -> dict[str, str]:
    """Names that are keywords of neither language."""
    return {node.name: f"r{number}n{index}" for index, node in enumerate(graph.nodes)}


def _mermaid_text(text: str) -> str:
    """Entities for all that Mermaid, its Markdown or HTML could read as something else."""
    return "".join(each if each.isalnum() or each in _PLAIN else f"#{ord(each)};" for each in text)


def dot(graphs: Sequence[RuleGraph]) -> str:
    return digraph("rules", _dot_lines(graphs))


def _dot_lines(graphs: Sequence[RuleGraph]) -> Iterator[str]:
    for number, graph in enumerate(graphs):
        names = _names(number, graph)
        for node in graph.nodes:
            style = ', style="rounded,filled,dashed"' if node.conditional else ""
            style += ", peripheries=2" if node.repeated else ""
            yield f"{names[node.name]} [label={quoted(*node.shown)}, fillcolor={_ROLES[node.role][2]}{style}];"
        for edge in graph.edges:
            yield f"{names[edge.source]} -> {names[edge.target]} [style={_ARROWS[edge.why][1]}];"
