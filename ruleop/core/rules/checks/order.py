"""The order of children. Children that a child reads or depends on are rendered and written before it.

The order is topological, with ties in the order of the file, so that unrelated edits do not change it. A cycle is an
error that lists all its links with their places; the shortest cycle is a child that reads itself. Deletions follow the
reverse where the rules ask for it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.core.reachable import reached
from ruleop.core.rules.checks.read_names import names_read_by_let, unknown_child

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.core.errors import Site
    from ruleop.core.rules.checks.scopes import Compiled, Part
    from ruleop.core.rules.findings import Findings
    from ruleop.core.rules.language.parsed import ChildDraft, Draft
    from ruleop.core.templating import Reference


@dataclass(frozen=True, slots=True)
class Link:
    """The reason why one child comes after another."""

    target: str
    site: Site
    word: str = ""  # the name that reads it: an id, or `ready`; empty for dependsOn
    start: Site | None = None  # the start of the text that reads it


@dataclass(frozen=True, slots=True)
class ChildReads:
    """The other children that one child reads."""

    mentions: frozenset[str]
    links: tuple[Link, ...]  # to other children and to itself, also by `dependsOn`


def reads(draft: Draft, parts: Iterable[Part]) -> dict[str, ChildReads]:
    """The reads of every child, including finalize children."""
    own: dict[str, list[Part]] = {child.id: [] for child in draft.everyone}
    for part in parts:
        if part.child is not None:
            own[part.child.id].append(part)
    return {child.id: _reads(draft, child, own[child.id]) for child in draft.everyone}


def _reads(draft: Draft, child: ChildDraft, parts: list[Part]) -> ChildReads:
    links = [link for part in parts for link in _links(part)]
    peers = draft.peers(child)
    depends = [Link(word.text, word.site) for word in child.table.depends_on if word.text in peers]
    return ChildReads(frozenset(link.target for link in links), (*links, *depends))


def ids_read(draft: Draft, texts: Sequence[Compiled]) -> frozenset[str]:
    """The ids of all children and observed resources that are read, also through `let`, `live.` and `ready.`."""
    names = {name for compiled in texts for name in compiled.names}
    names |= {read for name in names for read in names_read_by_let(draft, name)}
    names |= {name for compiled in texts for reference in compiled.references for name in _id_below(reference)}
    return frozenset(names & ({each.id for each in draft.everyone} | set(draft.observed)))


def _id_below(reference: Reference) -> Iterator[str]:
    """The id in `live.id` or `ready.id`."""
    head, *rest = reference.path
    if head in ("live", "ready") and rest and rest[0] is not None:
        yield rest[0]


def _links(part: Part) -> Iterator[Link]:
    for reference in part.compiled.references:
        head, *rest = reference.path
        name = rest[0] if head == "ready" and rest else head
        if name in part.view.ready:
            yield Link(name, reference.site, reference.name, part.site)


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


def check_cycles(children: Mapping[str, ChildDraft], read: Mapping[str, ChildReads], findings: Findings) -> None:
    """Reports each child on a cycle once, in the shortest cycle through the first of them in the file."""
    unordered = set(children) - set(order(children, read))
    for name in children:
        if name not in unordered:
            continue
        cycle = _shortest_cycle(name, read)
        if not cycle:
            continue  # it comes after a cycle
        first = cycle[0]
        findings.mistake("cycle", _cycle_message(name, cycle, findings), first.site, word=first.word, start=first.start)
        unordered -= {link.target for link in cycle}


def _shortest_cycle(start: str, read: Mapping[str, ChildReads]) -> list[Link]:
    """The shortest path from a child back to itself, by breadth-first search."""
    paths: dict[str, list[Link]] = {start: []}
    frontier = [start]
    while frontier:
        next_frontier = []
        for name in frontier:
            for link in read[name].links:
                if link.target == start:
                    return [*paths[name], link]
                if link.target not in paths and link.target in read:
                    paths[link.target] = [*paths[name], link]
                    next_frontier.append(link.target)
        frontier = next_frontier
    return []


def _cycle_message(start: str, cycle: list[Link], findings: Findings) -> str:
    if len(cycle) == 1 and cycle[0].word:
        return f'"{start}" reads itself: read the existing object with `live.{start}`'
    if len(cycle) == 1:
        return f'"{start}" depends on itself: remove it from its `dependsOn`'
    source = start
    links = []
    for link in cycle:
        site = findings.with_column(link.site, link.word, link.start)
        links.append(f'"{source}" {"reads" if link.word else "depends on"} "{link.target}" ({site})')
        source = link.target
    return f"a cycle: {', '.join(links)}; break it by reading the existing object with `live.<id>`, which does not wait"


# -- the order of deletions --------------------------------------------------------------------------------------------


def deleted_after(draft: Draft, read: Mapping[str, ChildReads]) -> dict[str, frozenset[str]]:
    """By child, directly and by way of others: what is between two children may be gone already, as a finished Job."""
    graph = _graph(draft, read)
    found: dict[str, frozenset[str]] = {}
    for name in topological(graph):
        found[name] = frozenset(graph[name]).union(*(found[each] for each in graph[name] if each in found))
    return found


def check_deletion_order(draft: Draft, read: Mapping[str, ChildReads], findings: Findings) -> None:
    """Checks the ids in `deleteAfter`, and reports a child that would wait for itself."""
    for child in draft.final.values():
        if child.table.delete_after:
            message = f'"{child.id}" is removed when its work is done: `deleteAfter` is for `children`'
            findings.mistake("out-of-place", message, child.table.delete_after[0].site)
    graph = _graph(draft, read)
    for child in draft.children.values():
        for word in child.table.delete_after:
            if word.text not in draft.children:
                findings.mistake("unknown-id", unknown_child(word.text, draft.children), word.site)
            elif child.id in reached([word.text], lambda name: graph.get(name, ())):
                first = "itself" if word.text == child.id else f'"{word.text}", which is deleted after "{child.id}"'
                findings.mistake("cycle", f'"{child.id}" cannot be deleted after {first}', word.site)


def check_run_cycles(draft: Draft, findings: Findings) -> None:
    """Reports children whose request ids read each other's runs: each run would begin another one."""
    runs = {child.id: child.table.once for child in draft.children.values() if child.table.once is not None}
    read = {
        id_: {name for reference in once.compiled.references for name in _id_below(reference)} & runs.keys()
        for id_, once in runs.items()
    }
    for id_, once in runs.items():
        if others := sorted(name for name in read[id_] - {id_} if id_ in reached([name], read.__getitem__)):
            message = f'`live.{others[0]}`: the runs of "{id_}" and "{others[0]}" would begin each other without end'
            findings.mistake("cycle", message, once.node.site)


def check_item_ends(draft: Draft, findings: Findings) -> None:
    """Checks the ids in `forEachOf`."""
    for child in draft.everyone:
        if (word := child.table.for_each_of) is None:
            continue
        named = draft.children.get(word.text)
        if not child.final:
            message = f'"{child.id}" is made while its item exists: `forEachOf` is for `finalize`'
            findings.mistake("out-of-place", message, child.table.key_sites["forEachOf"])
        elif word.text in draft.final:
            message = f'"{word.text}" is a finalize child: `forEachOf` names a child with `forEach`'
            findings.mistake("out-of-place", message, word.site)
        elif named is None:
            findings.mistake("unknown-id", unknown_child(word.text, draft.children), word.site)
        elif not named.table.for_each or named.table.patch is not None:
            message = f'"{word.text}" makes no object for each item of a `forEach`, so it has no items that end'
            findings.mistake("conflict", message, word.site)
        elif named.run is not None:
            message = f'"{word.text}" has `once`: its objects end with their runs, and stand for no item'
            findings.mistake("conflict", message, word.site)
        elif named.table.template is not None and named.table.template.compiled.many:
            message = (
                f'"{word.text}" makes several objects for each item, and one of them has to stand for the item: '
                "make several children of its template"
            )
            findings.mistake("conflict", message, word.site)


def _graph(draft: Draft, read: Mapping[str, ChildReads]) -> dict[str, set[str]]:
    graph = {name: {word.text for word in child.table.delete_after} for name, child in draft.children.items()}
    if draft.table.deletion_order == "reverse":
        for name in draft.children:
            for link in read[name].links:
                if link.target in graph:
                    graph[link.target].add(name)
    return graph
