"""The figures of `bench/cluster.py` as Markdown: a table of costs with ratios, and a table of requests by kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MEASURED = "ruleop"
LABELS = {"bare": "bare client", "go": "Go", "go-reporting": "Go, reporting", "ruleop": "ruleop"}
RATES = {  # of an action: the rate until its effects are seen, and until all is settled
    "create": ("Apps created, until children exist", "Apps created, until settled"),
    "status": ("status changes, until Apps show them", "status changes, until settled"),
    "edit": ("spec edits, until children have them", "spec edits, until settled"),
    "drift": ("drifted children, until reverted", "drifted children, until settled"),
    "recreate": ("deleted children, until created again", "deleted children, until settled"),
}
ITEMS = {  # one item of an action
    "create": "an App created",
    "status": "a status change",
    "edit": "a spec edit",
    "drift": "a drifted child",
    "recreate": "a deleted child",
    "single": "a single edit",
}
NOTHING = 0.05  # less is not compared, and a request that is rarer is not listed


@dataclass(frozen=True, slots=True)
class Measured:
    """What the driver measured of one action of one operator."""

    action: str
    items: int
    seconds: float  # until the last effect was seen
    settled_seconds: float
    p50: float | None
    p99: float | None
    cpu: float  # of the operator until settled, in seconds
    api_cpu: float
    rest_cpu: float  # of the operator until the last effect; for the phase idle
    other_cpu: float  # of all programs that are not measured
    memory: float
    requests: Mapping[str, int]

    @property
    def other_load(self) -> float:
        """The CPU of other programs meanwhile, in cores."""
        return self.other_cpu / max(self.settled_seconds, 0.001)

    @classmethod
    def from_driver(cls, row: Mapping[str, Any]) -> Measured:
        """From one action of the driver's JSON."""
        latency = row.get("latency_ms") or {}
        return cls(
            action=row["action"],
            items=row["items"],
            seconds=row["seconds"],
            settled_seconds=row["settled_seconds"],
            p50=latency.get("p50"),
            p99=latency.get("p99"),
            cpu=row["operator"]["cpu_settled_s"],
            api_cpu=row["apiserver"]["cpu_settled_s"],
            rest_cpu=row["operator"]["cpu_effects_s"],
            other_cpu=row["other_cpu_s"],
            memory=row["operator"]["rss_mib"],
            requests=row["requests"],
        )


Run = dict[str, Measured]  # one operator, by action
Figure = Callable[[Run], "float | None"]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: how a figure is called, how it follows from a run, and how many decimals it has."""

    label: str
    figure: Figure
    decimals: int
    compared: bool = True


def calmest(rounds: Sequence[Run]) -> Run:
    """Of each action, the round in which other programs used the least CPU."""
    return {action: min((run[action] for run in rounds), key=lambda each: each.other_load) for action in rounds[0]}


def markdown(runs: Mapping[str, Run]) -> str:
    """Both tables, ready to be pasted."""
    return f"{costs(runs)}\n\n{requests(runs)}"


def costs(runs: Mapping[str, Run]) -> str:
    """Rates, CPU, requests and memory of each operator, and those of ruleop as multiples of the others'."""
    others = [name for name in runs if name.startswith("go") and MEASURED in runs]
    heads = [LABELS[name] for name in runs] + [f"/ {LABELS[name]}" for name in others]
    lines = []
    for row in _rows():
        figures = {name: row.figure(run) for name, run in runs.items()}
        if any(figure is not None for figure in figures.values()):
            ratios = [_ratio(figures[MEASURED], figures[name]) if row.compared else "" for name in others]
            lines.append([row.label, *(_number(figure, row.decimals) for figure in figures.values()), *ratios])
    return _table(["", *heads], lines)


def requests(runs: Mapping[str, Run]) -> str:
    """The requests of each operator by kind, for one item of each action, until all was settled."""
    operators = [name for name in runs if name != "bare"]
    lines = []
    for action, item in ITEMS.items():
        measured = [runs[name].get(action) for name in operators]
        for kind in sorted({kind for each in measured if each for kind in each.requests}):
            counts = [each.requests.get(kind, 0) / each.items if each else 0.0 for each in measured]
            if max(counts) >= NOTHING:
                lines.append([item, kind, *(_number(count or None, 2) for count in counts)])
    return _table(["requests for", "", *(LABELS[name] for name in operators)], lines)


def _rows() -> list[Row]:
    rows = []
    for action, (effects, settled) in RATES.items():
        rows += [Row(f"{effects}, per s", _rate(action, "seconds"), 0)]
        rows += [Row(f"{settled}, per s", _rate(action, "settled_seconds"), 0)]
    rows += [Row(f"single edit, until a child has it, {name}, ms", _of("single", name), 1) for name in ("p50", "p99")]
    rows += [Row(f"operator's CPU for {item}, ms", _per_item(action, "cpu"), 2) for action, item in ITEMS.items()]
    rows += [Row(f"API server's CPU for {item}, ms", _per_item(action, "api_cpu"), 1) for action, item in ITEMS.items()]
    rows += [Row(f"requests for {item}", _requests_per_item(action), 2) for action, item in ITEMS.items()]
    return [
        *rows,
        Row("operator's CPU at rest, % of a core", _cpu_at_rest, 2, compared=False),
        Row("operator's memory, MiB", _memory, 0),
        Row("other programs' CPU, % of the machine", _other_cpu, 0, compared=False),
    ]


def _rate(action: str, seconds: str) -> Figure:
    return lambda run: run[action].items / getattr(run[action], seconds) if action in run else None


def _of(action: str, field: str) -> Figure:
    return lambda run: getattr(run[action], field) if action in run else None


def _per_item(action: str, field: str) -> Figure:
    """Milliseconds for one item; None where there is no process to measure."""
    return lambda run: 1000 * getattr(run[action], field) / run[action].items or None if action in run else None


def _requests_per_item(action: str) -> Figure:
    def figure(run: Run) -> float | None:
        count = sum(run[action].requests.values()) / run[action].items if action in run else 0.0
        return count if count >= NOTHING else None

    return figure


def _cpu_at_rest(run: Run) -> float | None:
    idle = run.get("idle")
    return 100 * idle.rest_cpu / idle.seconds if idle else None


def _memory(run: Run) -> float | None:
    return max(each.memory for each in run.values()) or None


def _other_cpu(run: Run) -> float | None:
    seconds = sum(each.settled_seconds for each in run.values())
    return 100 * sum(each.other_cpu for each in run.values()) / seconds / (os.cpu_count() or 1)


def _number(figure: float | None, decimals: int) -> str:
    return "" if figure is None else f"{figure:.{decimals}f}"


def _ratio(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if ours is not None and theirs is not None and theirs > NOTHING else ""


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown that reads well on a terminal too: text to the left, figures to the right."""
    columns = [_column(cells) for cells in zip(head, *lines, strict=True)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True))


def _column(cells: Sequence[str]) -> list[str]:
    """The cells of a column, padded to one width, with Markdown's rule below the first."""
    width = max(3, *map(len, cells))
    if any(cell[:1].isdigit() for cell in cells[1:]):
        head, *rest = (cell.rjust(width) for cell in cells)
        return [head, "-" * (width - 1) + ":", *rest]
    head, *rest = (cell.ljust(width) for cell in cells)
    return [head, "-" * width, *rest]
