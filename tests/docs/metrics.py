"""The table of metrics in docs/operations.md, made from what the operator declares. `python -m tests.docs.metrics`
updates it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import Counter, Gauge, Histogram

from ruleop.engine.manager.collector import COUNTERS, GAUGES
from ruleop.engine.telemetry.metrics import Metrics
from tests.docs.messages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE = ROOT / "docs" / "operations.md"
BEGIN, END = "<!-- metrics: begin -->\n", "<!-- metrics: end -->\n"
GROUPS = ("controller_runtime", "workqueue", "rest_client", "leader_election", "ruleop")


def table() -> str:
    rows = sorted(
        _rows(),
        key=lambda row: (next(number for number, group in enumerate(GROUPS) if row[0].startswith(group)), row[0]),
    )
    lines = [f"| `{name}` | {type_} | {', '.join(labels)} | {text} |" for name, type_, labels, text in rows]
    return "\n".join(["| metric | type | labels | means |", "|---|---|---|---|", *lines]) + "\n"


def _rows() -> Iterator[tuple[str, str, Sequence[str], str]]:
    for each in vars(Metrics()).values():
        if isinstance(each, (Counter, Gauge, Histogram)):
            metric: Any = each
            name = f"{metric._name}_total" if isinstance(each, Counter) else metric._name
            yield name, metric._type, metric._labelnames, metric._documentation
    for name, (text, labels) in GAUGES.items():
        yield name, "gauge", labels, text
    for name, (text, labels) in COUNTERS.items():
        yield f"{name}_total", "counter", labels, text


def written(text: str) -> str:
    """The page with the table as it is now."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
