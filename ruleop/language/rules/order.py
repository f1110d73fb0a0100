"""The order of children. Children that a child reads or depends on are rendered and written before it.

The order is topological, with ties in the order of the file, so that unrelated edits do not change it. Deletions follow
the reverse where the rules ask for it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from ruleop.language.templates.values.data import PARTIAL
from ruleop.reachable import reached
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.errors import Site
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.scopes import Compiled, RulePart
    from ruleop.language.templates import Reference


# -- reads -------------------------------------------------------------------------------------------------------------
#
# The names that a watch reads through its lets, and the observed resources of which it reads the metadata alone.
#
# Of some observed resources only the metadata is read. ruleop then requests nothing else from the API server: neither
# the values of a Secret nor the megabytes of a kind that is only counted.
#
# When in doubt, the whole object is watched: if it is passed on as a value, if the name of a field is computed, or if a
# template is included where a loop variable is visible.


def names_read_by_let(draft: Draft, name: str) -> frozenset[str]:
    """The names that a let reads, directly or through other lets. `cr.status` counts as `status`."""
    lets = {entry.name: entry.value.compiled for entry in draft.let if entry.value is not None}
    trees = [lets[each] for each in reached({name} & lets.keys(), lambda let: lets[let].names & lets.keys())]
    reads_status = any(reference.path[:2] == ("cr", "status") for tree in trees for reference in tree.references)
    return frozenset({"status"} if reads_status else ()).union(*(tree.names for tree in trees))


def metadata_only_ids(draft: Draft, parts: Iterable[RulePart]) -> frozenset[str]:
    """The ids of observed resources of which only the metadata is read."""
    whole = {
        name for name, entry in draft.observed.items() if entry.value is not None and entry.value.where is not None
    }
    for part in parts:
        read = [reference for reference in part.compiled.references if reference.name in draft.observed]
        whole |= {
            reference.name for reference in read if not _is_partial(reference, many=_is_list(draft, reference.name))
        }
        whole |= (part.compiled.names & set(draft.observed)) - {reference.name for reference in read}
    return frozenset(draft.observed) - whole


def _is_list(draft: Draft, name: str) -> bool:
    table = draft.observed[name].value
    return table is not None and table.many


def _is_partial(reference: Reference, *, many: bool) -> bool:
    steps = list(reference.path[1:])
    if any(step is not None and "," in step for step in steps):  # sort(attribute='a,b') reads two fields
        return False
    if many:
        if not steps:
            return reference.passes
        if steps[0] == "?":  # the number of items
            return True
        if steps.pop(0) is not None:
            return False
    return bool(steps) and steps[0] in PARTIAL


# -- order -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link:
    """The reason why one child comes after another."""

    target: str
    site: Site
    word: str = ""  # the name that reads it: an id, or `ready`; empty for dependsOn


@dataclass(frozen=True, slots=True)
class ChildReads:
    """The other children that one child reads."""

    mentions: frozenset[str]
    links: tuple[Link, ...]  # to other children and to itself, also by `dependsOn`


def reads(draft: Draft, parts: Iterable[RulePart]) -> dict[str, ChildReads]:
    """The reads of every child, including finalize children."""
    own: dict[str, list[RulePart]] = {child.id: [] for child in draft.everyone}
    for part in parts:
        if part.child is not None:
            own[part.child.id].append(part)
    return {child.id: _reads(draft, child, own[child.id]) for child in draft.everyone}


def _reads(draft: Draft, child: ChildDraft, parts: list[RulePart]) -> ChildReads:
    links = [link for part in parts for link in _links(part)]
    peers = draft.peers(child)
    depends = [Link(word.text, word.site) for word in child.table.depends_on if word.text in peers]
    return ChildReads(frozenset(link.target for link in links), (*links, *depends))


def ids_read(draft: Draft, texts: Sequence[Compiled]) -> frozenset[str]:
    """The ids of all children and observed resources that are read, also through `let`, `live.` and `ready.`."""
    names = {name for compiled in texts for name in compiled.names}
    names |= {read for name in names for read in names_read_by_let(draft, name)}
    names |= {name for compiled in texts for reference in compiled.references for name in id_below(reference)}
    return frozenset(names & ({each.id for each in draft.everyone} | set(draft.observed)))


def id_below(reference: Reference) -> Iterator[str]:
    """The id in `live.id` or `ready.id`."""
    head, *rest = reference.path
    if head in ("live", "ready") and rest and rest[0] is not None:
        yield rest[0]


def _links(part: RulePart) -> Iterator[Link]:
    for reference in part.compiled.references:
        head, *rest = reference.path
        name = rest[0] if head == "ready" and rest else head
        if name in part.view.ready:
            yield Link(name, reference.site, reference.name)


def topological(graph: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The keys in topological order, targets first; ties in the given order. Keys on a cycle or after one are left
    out."""
    position = {name: number for number, name in enumerate(graph)}
    unmet = {name: {target for target in targets if target in position} for name, targets in graph.items()}
    dependents: dict[str, list[str]] = {name: [] for name in graph}
    for name, targets in unmet.items():
        for target in targets:
            dependents[target].append(name)
    ready = [position[name] for name, targets in unmet.items() if not targets]
    names = list(graph)
    order: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for follower in dependents[name]:
            unmet[follower].discard(name)
            if not unmet[follower]:
                heapq.heappush(ready, position[follower])
    return tuple(order)


def order(children: Mapping[str, ChildDraft], read: Mapping[str, ChildReads]) -> tuple[str, ...]:
    return topological({name: [link.target for link in read[name].links] for name in children})


# -- the order of deletions --------------------------------------------------------------------------------------------


def deleted_after(draft: Draft, read: Mapping[str, ChildReads]) -> dict[str, frozenset[str]]:
    """By child, directly and by way of others: what is between two children may be gone already, as a finished Job."""
    graph = deletion_graph(draft, read)
    found: dict[str, frozenset[str]] = {}
    for name in topological(graph):
        found[name] = frozenset(graph[name]).union(*(found[each] for each in graph[name] if each in found))
    return found


def deletion_graph(draft: Draft, read: Mapping[str, ChildReads]) -> dict[str, set[str]]:
    graph = {name: {word.text for word in child.table.delete_after} for name, child in draft.children.items()}
    if draft.table.deletion_order == "reverse":
        for name in draft.children:
            for link in read[name].links:
                if link.target in graph:
                    graph[link.target].add(name)
    return graph
