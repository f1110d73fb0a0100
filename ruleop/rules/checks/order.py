"""Which child comes first. What a child mentions, or depends on, is rendered and written before it.

The order is topological and keeps to the order of the file wherever that is free to choose, so that a plan does not change when nothing
that matters to it does. A cycle is refused with all its links and their places; a child that reads itself is the shortest one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.rules.checks.names import heads_through_lets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.errors import Site
    from ruleop.rules.checks.scopes import Compiled, Part
    from ruleop.rules.findings import Findings
    from ruleop.rules.language.parsed import ChildDraft, Draft
    from ruleop.templating import Reference


@dataclass(frozen=True, slots=True)
class Link:
    """Why one child comes after another."""

    target: str
    site: Site
    word: str = ""  # what reads it: an id, or `ready`; by dependsOn if empty
    start: Site | None = None  # where the text begins that reads it


@dataclass(frozen=True, slots=True)
class Reads:
    """What the expressions and templates of one child read."""

    mentions: frozenset[str]
    links: tuple[Link, ...]  # to other children and to itself, with `dependsOn`


def reads(draft: Draft, parts: Iterable[Part]) -> dict[str, Reads]:
    """For each child, finalize children too, what it reads."""
    own: dict[str, list[Part]] = {child.id: [] for child in draft.everyone}
    for part in parts:
        if part.child is not None:
            own[part.child.id].append(part)
    return {child.id: _reads(draft, child, own[child.id]) for child in draft.everyone}


def _reads(draft: Draft, child: ChildDraft, parts: list[Part]) -> Reads:
    links = [link for part in parts for link in _mentions(part)]
    peers = draft.final if child.final else draft.children
    depends = [Link(word.text, word.site) for word in child.table.depends_on if word.text in peers]
    return Reads(frozenset(link.target for link in links), (*links, *depends))


def ids_read(draft: Draft, texts: Sequence[Compiled]) -> frozenset[str]:
    """The ids of all children and observed resources that are read in any way, also by `let`, `live.` and `ready.`."""
    names = {name for compiled in texts for name in compiled.names}
    names |= {reached for name in names for reached in heads_through_lets(draft, name)}
    names |= {name for compiled in texts for reference in compiled.references for name in _id_below(reference)}
    return frozenset(names & ({each.id for each in draft.everyone} | set(draft.observed)))


def _id_below(reference: Reference) -> Iterator[str]:
    """That of `live.id` and `ready.id`."""
    head, *rest = reference.path
    if head in ("live", "ready") and rest and rest[0] is not None:
        yield rest[0]


def _mentions(part: Part) -> Iterator[Link]:
    for reference in part.compiled.references:
        head, *rest = reference.path
        name = rest[0] if head == "ready" and rest else head
        if name in part.view.ready:
            yield Link(name, reference.site, reference.name, part.site)


def topological(graph: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The keys such that what each points to comes before it; ties in their own order. What is on a cycle or after one is left out."""
    place = {name: number for number, name in enumerate(graph)}
    waits = {name: {target for target in targets if target in place} for name, targets in graph.items()}
    after: dict[str, list[str]] = {name: [] for name in graph}
    for name, targets in waits.items():
        for target in targets:
            after[target].append(name)
    ready = [place[name] for name, targets in waits.items() if not targets]
    names = list(graph)
    order: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for follower in after[name]:
            waits[follower].discard(name)
            if not waits[follower]:
                heapq.heappush(ready, place[follower])
    return tuple(order)


def order(children: Mapping[str, ChildDraft], read: Mapping[str, Reads]) -> tuple[str, ...]:
    return topological({name: [link.target for link in read[name].links] for name in children})


def check_cycles(children: Mapping[str, ChildDraft], read: Mapping[str, Reads], findings: Findings) -> None:
    """Each child that lies on a cycle is named once, in the shortest cycle through the first of them in the file."""
    stuck = set(children) - set(order(children, read))
    for name in children:
        if name not in stuck:
            continue
        cycle = _shortest_cycle(name, read)
        if not cycle:
            continue  # it only comes after a cycle
        first = cycle[0]
        findings.mistake("cycle", _sentence(name, cycle, findings), first.site, word=first.word, start=first.start)
        stuck -= {link.target for link in cycle}


def _shortest_cycle(start: str, read: Mapping[str, Reads]) -> list[Link]:
    """The links from a child back to itself; breadth first."""
    paths: dict[str, list[Link]] = {start: []}
    frontier = [start]
    while frontier:
        following = []
        for name in frontier:
            for link in read[name].links:
                if link.target == start:
                    return [*paths[name], link]
                if link.target not in paths and link.target in read:
                    paths[link.target] = [*paths[name], link]
                    following.append(link.target)
        frontier = following
    return []


def _sentence(start: str, cycle: list[Link], findings: Findings) -> str:
    if len(cycle) == 1 and cycle[0].word:
        return f'"{start}" reads itself, which it is to become: read what exists of it, `live.{start}`'
    if len(cycle) == 1:
        return f'"{start}" depends on itself: remove it from its `dependsOn`'
    source = start
    links = []
    for link in cycle:
        site = findings.sharpened(link.site, link.word, link.start)
        links.append(f'"{source}" {"reads" if link.word else "depends on"} "{link.target}" ({site})')
        source = link.target
    return f"a cycle: {', '.join(links)}; break it by reading what exists, `live.<id>`, which waits for nothing"
