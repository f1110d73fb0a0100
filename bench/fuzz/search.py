"""The search: a map of the most expensive candidates, by the function of ruleop that is hot in them.

Each cell of the map keeps the best candidate for each objective. New candidates are mutants and crosses of those; one
that improves a cell is grown at once, as long as its cost per KiB grows with it. That finds what is worse than linear.
"""

from __future__ import annotations

import hashlib
import random
import resource
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

import ruleop
from bench.fuzz.genes import Gene, Genetics, case_of
from bench.fuzz.limited import Limits, Measure, Process, passes, wait
from bench.fuzz.one_pass import TEXT, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.fuzz.case import Case

BOUND_SECONDS: Final = 2.5  # of a pass with two plans, each of which the guard ends after one
BOUND_MIB: Final = 64.0
BOUND_TEXT: Final = 2048
"""Characters of a line or message: 1,024 of the custom resource, and those of the rule and of ruleop."""

LEAST: Final = 2.0
"""KiB of a resource that are always counted, so that cost per KiB does not favour empty ones."""

STATE_FORMAT: Final = 6
SAVED_EVERY: Final = 20.0
MAX_GROWING: Final = 64
TOURNAMENT: Final = 4


@dataclass
class Entry:
    gene: Gene
    reading: Reading
    tried: int = 0  # how often it was mutated

    def as_json(self) -> dict[str, Any]:
        return {"gene": self.gene, "reading": self.reading.as_json(), "tried": self.tried}


OBJECTIVES: Final[dict[str, Callable[[Reading], float]]] = {
    "seconds per KiB": lambda found: found.seconds / (LEAST + found.kib),
    "seconds": lambda found: found.seconds,
    "MiB per KiB": lambda found: found.mib / (LEAST + found.kib),
    "MiB": lambda found: found.mib,
    "MiB that are not counted": lambda found: found.mib - found.counted,
    "longest text": lambda found: found.longest,
}
_GROWN: Final = ("seconds per KiB", "seconds", "MiB per KiB", "MiB")


def over(reading: Reading) -> str:
    """Which bound the reading exceeds; empty if none."""
    if reading.failed:
        return reading.failed.partition(":")[0]
    if reading.seconds > BOUND_SECONDS:
        return "seconds"
    if reading.mib > BOUND_MIB:
        return "memory"
    return "text" if reading.longest > BOUND_TEXT else ""


@dataclass
class State:
    """All that a resumed search needs."""

    seed: int
    runs: int = 0
    unusable: int = 0
    seconds: float = 0.0  # wall time of all sessions
    cpu_seconds: float = 0.0  # of the search and its processes
    cells: dict[str, dict[str, Entry]] = field(default_factory=dict)
    findings: dict[str, Entry] = field(default_factory=dict)  # by hot function and bound
    first: dict[str, float] = field(default_factory=dict)  # seconds until each finding
    endings: Counter[str] = field(default_factory=Counter)
    code: str = ""  # the digest of the code that the readings are of

    def save(self, path: Path) -> None:
        document = {
            "format": STATE_FORMAT,
            **{
                name: getattr(self, name)
                for name in ("seed", "runs", "unusable", "seconds", "cpu_seconds", "first", "code")
            },
            "endings": dict(self.endings),
            "cells": {
                cell: {name: each.as_json() for name, each in entries.items()} for cell, entries in self.cells.items()
            },
            "findings": {name: each.as_json() for name, each in self.findings.items()},
        }
        part = path.with_suffix(".part")
        part.write_bytes(orjson.dumps(document))
        part.replace(path)

    @classmethod
    def load(cls, path: Path, seed: int) -> State:
        """The saved state; a new one if there is none, or if it is of another seed or format."""
        if not path.exists():
            return cls(seed)
        found = orjson.loads(path.read_bytes())
        if (found.pop("format"), found["seed"]) != (STATE_FORMAT, seed):
            return cls(seed)
        cells = {
            cell: {name: _entry(each) for name, each in entries.items()} for cell, entries in found.pop("cells").items()
        }
        findings = {name: _entry(each) for name, each in found.pop("findings").items()}
        return cls(**found | {"cells": cells, "findings": findings, "endings": Counter(found["endings"])})


def _entry(found: dict[str, Any]) -> Entry:
    return Entry(found["gene"], Reading(**found["reading"]), found["tried"])


@dataclass(frozen=True)
class Options:
    seconds: float
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    most: int = 1_000_000_000  # candidates


class Search:
    def __init__(
        self, state: State, path: Path, *, measure: Measure = passes, case_of: Callable[[Gene], Case] = case_of
    ):
        self.state, self.path, self.measure, self.case_of = state, path, measure, case_of
        self.genetics = Genetics(random.Random(f"{state.seed}/{state.runs}"))
        self.growing: deque[Gene] = deque(maxlen=MAX_GROWING)
        self.known: deque[Gene] = deque(self._of_other_code())

    def run(self, options: Options, report: Callable[[State], None] = lambda _: None) -> None:
        """Searches until the time is over, and saves the state regularly."""
        start, before, saved = time.monotonic(), self.state.seconds, 0.0
        cpu_before = self.state.cpu_seconds - _cpu_seconds()
        active: dict[Process, Gene] = {}
        left = options.most
        try:
            while (now := time.monotonic() - start) < options.seconds and (left > 0 or active):
                self.state.seconds, self.state.cpu_seconds = before + now, cpu_before + _cpu_seconds()
                if now - saved > SAVED_EVERY:
                    saved = now
                    self.state.save(self.path)
                    report(self.state)
                while len(active) < options.workers and left > 0:
                    left -= 1
                    gene = self.candidate()
                    active[Process(self.case_of(gene), options.limits, self.measure)] = gene
                for process in wait([*active], 0.5):
                    self.take(active.pop(process), process.result())
        finally:
            for process in active:
                process.stop()
                process.result()
            self.state.save(self.path)

    # -- candidates ----------------------------------------------------------------------------------------------------

    def _of_other_code(self) -> list[Gene]:
        """The candidates to be measured again, because the code has changed since."""
        state, code = self.state, digest_of_code()
        if state.code == code:
            return []
        entries = [*(each for cell in state.cells.values() for each in cell.values()), *state.findings.values()]
        state.code, state.cells, state.findings = code, {}, {}
        return [orjson.loads(each) for each in dict.fromkeys(orjson.dumps(entry.gene) for entry in entries)]

    def candidate(self) -> Gene:
        chance = self.genetics.chance
        if self.known:
            return self.known.popleft()
        if self.growing and chance.random() < 0.6:
            return self.growing.popleft()
        if not self.state.cells or chance.random() < 0.3:
            return self.genetics.random()
        parent = self._parent()
        parent.tried += 1
        return self.genetics.mutated(parent.gene, self._parent().gene)

    def _parent(self) -> Entry:
        """An elite; less often one that was tried often, is a finding already, or ended early by an error."""
        cells = list(self.state.cells.values())
        found = [self._elite(self.genetics.chance.choice(cells)) for _ in range(TOURNAMENT)]
        return max(found, key=_promise)

    def _elite(self, cell: dict[str, Entry]) -> Entry:
        return cell[self.genetics.chance.choice(list(cell))]

    # -- results -------------------------------------------------------------------------------------------------------

    def take(self, gene: Gene, reading: Reading | None) -> None:
        state = self.state
        state.runs += 1
        if reading is None:
            state.unusable += 1
            return
        state.endings[reading.ended.partition(":")[0]] += 1
        entry = Entry(gene, reading)
        self._find(entry)
        cell = state.cells.setdefault(reading.hot or "-", {})
        better = [name for name, score in OBJECTIVES.items() if _is_better(score, entry, cell.get(name))]
        for name in better:
            cell[name] = entry
        if over(reading):
            return
        if any(name in _GROWN for name in better):
            self.growing.extend(self.genetics.grown(gene))
        elif not gene["age"] and not _failed(reading):  # its cost may be seen only in larger sizes
            self.growing.extend(
                each for found in self.genetics.grown(gene)[:1] for each in self.genetics.grown(found)[:1]
            )

    def _find(self, entry: Entry) -> None:
        bound = over(entry.reading)
        if not bound:
            return
        name = f"{bound} in {_place(bound, entry.reading)}"
        self.state.first.setdefault(name, round(self.state.seconds, 1))
        known = self.state.findings.get(name)
        if known is None or _severity(entry.reading) > _severity(known.reading):
            self.state.findings[name] = entry


def digest_of_code() -> str:
    """The digest of ruleop's modules."""
    folder = Path(ruleop.__file__).parent
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))).hexdigest()[:16]


def _cpu_seconds() -> float:
    """What this process and its ended ones have used so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _place(bound: str, reading: Reading) -> str:
    """What distinguishes a finding from others of its bound."""
    if bound == "text":  # another function than the hot one wrote it
        return reading.ended.partition(":")[0]
    shown = "plan text, " if reading.where.startswith(TEXT) else ""
    return f"{shown}{reading.hot or reading.where or 'loading'}"


def _is_better(score: Callable[[Reading], float], entry: Entry, known: Entry | None) -> bool:
    """Whether it costs at least a tenth more, because times vary."""
    return known is None or score(entry.reading) > score(known.reading) * 1.1


def _promise(entry: Entry) -> float:
    """Its part of a bound per KiB; less if it was tried often, is a finding already, or ended early by an error."""
    reading = entry.reading
    part = max(reading.seconds / BOUND_SECONDS, reading.mib / BOUND_MIB) / (LEAST + reading.kib)
    return float((part + 0.0005) / (entry.tried + 1) / (10 if _failed(reading) else 1) / (20 if over(reading) else 1))


def _failed(reading: Reading) -> bool:
    return "Failed" in reading.ended or reading.ended.startswith("Invalid")


def _severity(reading: Reading) -> float:
    """How far beyond the bounds it is for its size."""
    worst = max(reading.seconds / BOUND_SECONDS, reading.mib / BOUND_MIB, reading.longest / BOUND_TEXT)
    return float(worst / (LEAST + reading.kib) ** 0.5)


def ordered(state: State) -> Iterator[tuple[str, Entry]]:
    """The findings, the most expensive first."""
    yield from sorted(state.findings.items(), key=lambda each: -each[1].reading.seconds)
