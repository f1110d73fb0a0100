"""The rendered objects of a child line by line, each line with the line of the template that it comes from."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.explain_documents import RenderedLine
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.messages import shortened
from ruleop.planning.rendering.child_field_sites import MAX_LINES, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.planning import Plan

MAX_VALUE: Final = 400  # characters


def rendered_lines(plan: Plan) -> dict[ObjectKey, tuple[RenderedLine, ...]]:
    """Of the objects that the plan has traced, with values of Secrets masked."""
    objects = {ObjectKey.of(obj): obj for _, _, obj in plan.rendered}
    return {key: tuple(_lines(plan, objects[key])) for key in plan.traced if key in objects}


def _lines(plan: Plan, rendered: Object) -> Iterator[RenderedLine]:
    """The masked object has the same lines, unless a name of a field is masked: then no line is known."""
    masked = list(islice(lines_of(plan.masks.object(rendered)), MAX_LINES))
    sites = plan.traced[ObjectKey.of(rendered)]
    is_same = [path for path, _ in masked] == [path for path, _ in islice(lines_of(rendered), MAX_LINES)]
    for number, (path, value) in enumerate(masked):
        name = step if isinstance(step := path[-1], str) else "-"
        has_more = isinstance(value, dict | list) and bool(value)
        text = None if has_more else shortened(json.dumps(value, ensure_ascii=False), MAX_VALUE)
        site = sites[number] if is_same and number < len(sites) else None
        yield RenderedLine(len(path) - 1, name, text, site)
