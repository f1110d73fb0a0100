"""Which observed resources are read as their metadata only. Nothing else of them is then asked of the API server: neither a Secret's
values nor the megabytes of a kind that is merely counted.

Whatever is not certain is watched whole: an object that is handed on as a value, a field whose name is computed, a template that is
included where a loop's variable can be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.templating.values.data import PARTIAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.rules.checks.scopes import Part
    from ruleop.rules.language.parsed import Draft
    from ruleop.templating import Reference


def read_as_metadata(draft: Draft, parts: Iterable[Part]) -> frozenset[str]:
    """The ids of those."""
    whole: set[str] = set()
    for part in parts:
        read = [reference for reference in part.compiled.references if reference.name in draft.observed]
        whole |= {reference.name for reference in read if not _is_partial(reference, many=_is_list(draft, reference.name))}
        whole |= (part.compiled.names & set(draft.observed)) - {reference.name for reference in read}
    return frozenset(draft.observed) - whole


def _is_list(draft: Draft, name: str) -> bool:
    table = draft.observed[name].value
    return table is not None and table.name is None


def _is_partial(reference: Reference, *, many: bool) -> bool:
    steps = list(reference.path[1:])
    if any(step is not None and "," in step for step in steps):  # sort(attribute='a,b') reads two
        return False
    if many:
        if not steps:
            return reference.passes
        if steps[0] == "?":  # how many there are
            return True
        if steps.pop(0) is not None:
            return False
    return bool(steps) and steps[0] in PARTIAL
