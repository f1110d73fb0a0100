"""Makes a finding smaller while it stays over its bound: fewer parts, plainer nodes, smaller values."""

from __future__ import annotations

import copy
import math
import time
from typing import TYPE_CHECKING

from bench.fuzz.genes import Gene, case_of
from bench.fuzz.grammar import leaf_of, nodes
from bench.fuzz.limited import Limits, Measure, passes, run
from bench.fuzz.search import Entry, over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.fuzz.one_pass import Reading

LIMITS = Limits(seconds=5)
FINAL = Limits(seconds=60, enough=math.inf, mib=4096)


def minimised(entry: Entry, seconds: float, measure: Measure = passes) -> Entry:
    """The smallest gene that was found in this time and exceeds a bound in the same file of ruleop, measured without
    the search's limits."""
    end, found = time.monotonic() + seconds, entry
    while (smaller := _next(found, end, measure)) is not None:
        found = smaller
    return Entry(found.gene, run(case_of(found.gene), FINAL, measure) or found.reading)


def _next(entry: Entry, end: float, measure: Measure) -> Entry | None:
    for gene in _smaller(entry.gene):
        if time.monotonic() > end:
            return None
        reading = run(case_of(gene), LIMITS, measure)
        if reading is not None and over(reading) and _file(reading) == _file(entry.reading):
            return Entry(gene, reading)
    return None


def _file(reading: Reading) -> str:
    return reading.hot.partition(":")[0]


def _smaller(gene: Gene) -> Iterator[Gene]:
    """Smaller genes, those with the largest steps first."""
    for name in ("children", "finalize", "status", "conditions", "validate", "let", "seen"):
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
    for key in ("annotations", "was"):
        if gene[key][0] != "{}":
            yield {**gene, key: ["{}", 1, 1]}
    yield from _with_plainer_nodes(gene)
    for name, (_, number, other) in gene["spec"].items():
        if number > 1 and f"spec.{name}" in case_of(gene).text():
            yield {**gene, "spec": {**gene["spec"], name: [gene["spec"][name][0], number // 2, other]}}


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
