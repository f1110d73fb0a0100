"""Makes a finding smaller while it stays over its bound: fewer parts, plainer nodes, smaller values."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING

from bench.fuzz.genes import Gene, case_of
from bench.fuzz.grammar import leaf_of, nodes
from bench.fuzz.limited import Limits, Measure, passes, run
from bench.fuzz.search import Entry, over

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = Limits(seconds=8)


def minimised(entry: Entry, seconds: float, measure: Measure = passes) -> Entry:
    """The smallest gene that was found in this time and exceeds a bound in the same function."""
    end, found, changed = time.monotonic() + seconds, entry, True
    while changed:
        changed = False
        for gene in _smaller(found.gene):
            if time.monotonic() > end:
                return found
            reading = run(case_of(gene), LIMITS, measure)
            if reading is None or not over(reading) or reading.hot != entry.reading.hot:
                continue
            found, changed = Entry(gene, reading), True
            break
    return found


def _smaller(gene: Gene) -> Iterator[Gene]:
    """Smaller genes, those with the largest steps first."""
    for name in ("children", "status", "conditions", "validate", "let"):
        for index in range(len(gene[name])):
            if name != "children" or len(gene[name]) > 1:
                yield _without(gene, name, index)
    for index, child in enumerate(gene["children"]):
        for key in ("when", "waitFor", "readyWhen", "strategy", "each"):
            if child[key]:
                yield _with_child(gene, index, key, "" if key == "strategy" else None)
        for number in range(len(child["entries"]) if len(child["entries"]) > 1 else 0):
            rest = [each for place, each in enumerate(child["entries"]) if place != number]
            yield _with_child(gene, index, "entries", rest)
    for key in ("change", "others"):
        if gene[key] != "none":
            yield {**gene, key: "none"}
    if gene["annotations"][0] != "{}":
        yield {**gene, "annotations": ["{}", 1, 1]}
    yield from _with_plainer_nodes(gene)


def _without(gene: Gene, name: str, index: int) -> Gene:
    return {**gene, name: [each for place, each in enumerate(gene[name]) if place != index]}


def _with_child(gene: Gene, index: int, key: str, value: object) -> Gene:
    found: Gene = copy.deepcopy(gene)
    found["children"][index][key] = value
    return found


def _with_plainer_nodes(gene: Gene) -> Iterator[Gene]:
    """The gene with one node replaced by a node inside it, or by a leaf."""
    count = sum(1 for _ in nodes(gene))
    for number in range(count):
        _, _, node = list(nodes(gene))[number]
        inside = [
            each for _, _, each in nodes(node[3]) if each[0] == node[0] and all(name in node[2] for name in each[2])
        ]
        leaf = leaf_of(node[0], node[2])
        for new in [*([leaf] if node[3] and node[1] != leaf[1] else []), *inside]:
            found: Gene = copy.deepcopy(gene)
            holder, place, _ = list(nodes(found))[number]
            holder[place] = copy.deepcopy(new)
            yield found
