"""Checks that children, deletions and runs have an order, and the ids on which their order depends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.language.rules.checks.read_names import unknown_child
from ruleop.language.rules.facts.order import Link, deletion_graph, id_below, order
from ruleop.reachable import reached

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.language.rules.facts.order import ChildReads
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft


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


def check_deletion_order(draft: Draft, read: Mapping[str, ChildReads], findings: Findings) -> None:
    """Checks the ids in `deleteAfter`, and reports a child that would wait for itself."""
    for child in draft.final.values():
        if child.table.delete_after:
            message = f'"{child.id}" is removed when its work is done: `deleteAfter` is for `children`'
            findings.mistake("out-of-place", message, child.table.delete_after[0].site)
    graph = deletion_graph(draft, read)
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
        id_: {name for reference in once.compiled.references for name in id_below(reference)} & runs.keys()
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
