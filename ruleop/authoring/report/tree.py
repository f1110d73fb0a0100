"""The tree of a custom resource: a row for each child with its state, and rows of its objects below it.

`plan`, `explain` and `dev` have the same tree: the id of the child, the state, and the object with what is known of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.spans import WIDTH, Line, Span, Tone
from ruleop.messages import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.report.views import ObjectView, ResourceView

MAX_OBJECTS: Final = 8
"""The number of listed objects of one child."""

LEAST_TEXT: Final = 24
"""Characters of a text, even if the line gets wider than `WIDTH`."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    name: str
    state: str = ""
    tone: Tone = Tone.PLAIN
    text: str = ""
    note: str = ""
    rows: tuple[TreeRow, ...] = ()


def many(rows: Iterable[TreeRow]) -> tuple[TreeRow, ...]:
    """The first rows of objects, those that are not ready before the others, and the number of the others."""
    ordered = sorted(rows, key=lambda row: row.tone is Tone.GOOD)
    more = (TreeRow(f"and {len(ordered) - MAX_OBJECTS} more", tone=Tone.FAINT),) if len(ordered) > MAX_OBJECTS else ()
    return (*ordered[:MAX_OBJECTS], *more)


def tree_lines(rows: Sequence[TreeRow], *, rooted: bool = True, fit: bool = False) -> Iterator[Line]:
    """`rooted`: the rows are custom resources, whose rows are children. `fit`: texts are cut at `WIDTH`."""
    found = [*_branches(rows)] if not rooted else [pair for row in rows for pair in [("", row), *_branches(row.rows)]]
    names = max((len(prefix) + len(row.name) for prefix, row in found if row.state), default=0)
    states = max((len(row.state) for prefix, row in found if prefix and row.text), default=0)
    for prefix, row in found:
        name = Span(row.name, Tone.FAINT if not row.state else Tone.PLAIN if prefix else Tone.TITLE)
        gap = " " * (names - len(prefix) - len(row.name) + 2)
        state = f"{row.state:<{states}}" if prefix else row.state
        joint = "" if not row.text else "  " if prefix else ": "
        note = f"  {row.note}" if row.note and (row.text or row.state) else row.note
        taken = names + 2 + len(state) + len(joint) + len(note)
        text = shortened(row.text, max(LEAST_TEXT, WIDTH - taken)) if fit else row.text
        head = (Span(prefix, Tone.FAINT), name, Span(gap if row.state else ""))
        yield (*head, Span(state, row.tone), Span(f"{joint}{text}"), Span(note, Tone.FAINT))


def _branches(rows: Sequence[TreeRow], indent: str = "") -> Iterator[tuple[str, TreeRow]]:
    for number, row in enumerate(rows, 1):
        last = number == len(rows)
        yield f"{indent}{'└─ ' if last else '├─ '}", row
        yield from _branches(row.rows, f"{indent}{'   ' if last else '│  '}")


def view_row(view: ResourceView, notes: dict[int, str] | None = None, note: str = "") -> TreeRow:
    """A view as the root of a tree. `notes`: of its objects, by their number."""
    namespace = view.obj["metadata"].get("namespace") or ""
    by_child: dict[object, list[TreeRow]] = {}
    for number, each in enumerate(view.objects):
        row = _object_row(each, namespace, (notes or {}).get(number, ""))
        by_child.setdefault(each.child or number, []).append(row)
    rows = [_child_row(found) for found in by_child.values()]
    return TreeRow(view.title, view.state, view.tone, view.message, note, tuple(rows))


def _object_row(each: ObjectView, namespace: str, note: str = "") -> TreeRow:
    title = each.key.title(namespace) if each.key.name else each.key.kind
    text = ": ".join(filter(None, (title, each.message)))
    pods = tuple(_object_row(pod, each.key.namespace) for pod in each.pods)
    return TreeRow(each.child, each.state, each.tone, text, note, pods)


def _child_row(rows: Sequence[TreeRow]) -> TreeRow:
    """The row of a child: that of its only object, or one above the rows of several."""
    if len(rows) == 1:
        return rows[0]
    worst = min(rows, key=lambda row: (Tone.BAD, Tone.WAIT, Tone.GOOD).index(row.tone))
    ready = sum(row.tone is Tone.GOOD for row in rows)
    text = f"{len(rows)} objects" + (f", {ready} ready" if ready < len(rows) else "")
    return TreeRow(worst.name, worst.state, worst.tone, text, "", many(replace(row, name="") for row in rows))
