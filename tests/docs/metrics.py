"""The tables of metrics and alerts in docs/operations.md, made from what the operator and the generator declare.
`python -m tests.docs.metrics` updates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from ruleop.authoring.generate.installation.monitoring import ALERTS, Alert
from ruleop.operator.manager.ready_checks import COUNTERS, GAUGES
from ruleop.operator.telemetry.metrics import Metrics
from tests.docs.messages import ROOT

PAGE = ROOT / "docs" / "operations.md"
GROUPS = ("controller_runtime", "workqueue", "rest_client", "leader_election", "ruleop")


def table() -> str:
    rows = sorted(
        declared(),
        key=lambda row: (next(number for number, group in enumerate(GROUPS) if row[0].startswith(group)), row[0]),
    )
    lines = [f"| `{name}` | {type_} | {', '.join(labels)} | {text} |" for name, type_, labels, text in rows]
    return "\n".join(["| metric | type | labels | means |", "|---|---|---|---|", *lines]) + "\n"


def declared() -> Iterator[tuple[str, str, Sequence[str], str]]:
    for each in vars(Metrics()).values():
        if isinstance(each, (Counter, Gauge, Histogram)):
            metric: Any = each
            name = f"{metric._name}_total" if isinstance(each, Counter) else metric._name
            yield name, metric._type, metric._labelnames, metric._documentation
    for name, (text, labels) in GAUGES.items():
        yield name, "gauge", labels, text
    for name, (text, labels) in COUNTERS.items():
        yield f"{name}_total", "counter", labels, text


def alerts() -> str:
    lines = [f"| {each.name} | {_condition(each)} | {each.remedy} |" for each in ALERTS]
    return "\n".join(["| alert | fires if | what to do |", "|---|---|---|", *lines]) + "\n"


def _condition(alert: Alert) -> str:
    """Without the selector of the operator's own series."""
    expression = alert.expression.replace("{JOB}", "").replace("JOB,", "").replace("|", "\\|")
    return f"`{expression}`" + (f", for {alert.lasting}" if alert.lasting else "")


def written(text: str) -> str:
    """The page with the tables as they are now."""
    for name, made in (("metrics", table()), ("alerts", alerts())):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        head, rest = text.split(begin)
        text = f"{head}{begin}{made}{end}{rest.split(end)[1]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
