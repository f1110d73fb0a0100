"""Fields that change, as lines: before and after, line by line for a text, each behind the sign of what is done."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.spans import Line, Span, Tone
from ruleop.messages import shortened
from ruleop.planning.changes import NOTHING, Difference, Verb, changes, flow, is_mark, leaves, verb_of
from ruleop.planning.model.actions import AddFinalizer, Delete, Expire, RemoveFinalizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.planning.model.actions import Action
    from ruleop.planning.model.observed import Kinds
    from ruleop.planning.plan import Plan

MAX_LINES: Final = 16
"""The number of shown lines of a changed text."""

_LONG: Final = 60  # characters of a value in a line with another one

SIGNS: Final = {"+": Tone.ADD, "~": Tone.CHANGE, "-": Tone.REMOVE, "!": Tone.BAD}


def sign_of(action: Action) -> str:
    if isinstance(action, (Delete, Expire, RemoveFinalizer)):
        return "-"
    return "+" if isinstance(action, AddFinalizer) or verb_of(action) is Verb.CREATE else "~"


def shown_changes(action: Action, kinds: Kinds, plan: Plan) -> tuple[list[Difference], str]:
    """The fields that an action changes, and how ruleop's own metadata is mentioned, which is not among them: `and`,
    `only`, or empty if it does not change."""
    found = changes(action, kinds, plan.masks)
    shown = [each for each in found if not is_mark(each, plan.uid)]
    return shown, "" if len(shown) == len(found) else "and" if shown else "only"


def difference_lines(difference: Difference, indent: str = "    ") -> Iterator[Line]:
    before, after = difference.before, difference.after
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield (Span(f"{indent}  {difference.path}:"),)
        yield from _text_lines(before, after, f"{indent}    ")
    elif before is NOTHING:
        for each in leaves(difference):
            yield (Span(f"{indent}+ ", Tone.ADD), Span(f"{each.path}: "), Span(shortened(flow(each.after)), Tone.ADD))
    elif after is NOTHING:
        yield (
            Span(f"{indent}- ", Tone.REMOVE),
            Span(f"{difference.path}: "),
            Span(shortened(flow(before)), Tone.REMOVE),
        )
    else:
        old, new = _apart(flow(before), flow(after))
        yield (Span(f"{indent}  {difference.path}: "), Span(old, Tone.REMOVE), Span(" -> "), Span(new, Tone.ADD))


def _apart(before: str, after: str) -> tuple[str, str]:
    """Two long values, shortened around their first difference, so that the difference is visible."""
    if max(len(before), len(after)) <= _LONG:
        return before, after
    start = next(
        (index for index, (left, right) in enumerate(zip(before, after, strict=False)) if left != right),
        min(len(before), len(after)),
    )
    skipped = max(0, start - _LONG // 3)
    lead = "…" if skipped else ""
    return lead + shortened(before[skipped:], _LONG), lead + shortened(after[skipped:], _LONG)


def differing_lines(before: Sequence[str], after: Sequence[str], *, neighbours: int) -> list[str]:
    """The lines that differ and some beside them, each behind its sign."""
    found = difflib.unified_diff(before, after, n=neighbours, lineterm="")
    return [line for line in found if not line.startswith(("---", "+++", "@@"))]


def _text_lines(before: str, after: str, indent: str) -> Iterator[Line]:
    """The lines of a text that differ, each with its neighbours."""
    lines = differing_lines(before.splitlines(), after.splitlines(), neighbours=1)
    if not lines:
        yield (Span(f"{indent}only the line break at the end", Tone.FAINT),)
    for line in lines[:MAX_LINES]:
        tone = {"+": Tone.ADD, "-": Tone.REMOVE}.get(line[:1], Tone.FAINT)
        yield (Span(f"{indent}{line[:1]} {shortened(line[1:], 100)}", tone),)
    if len(lines) > MAX_LINES:
        yield (Span(f"{indent}and {len(lines) - MAX_LINES} more lines", Tone.FAINT),)
