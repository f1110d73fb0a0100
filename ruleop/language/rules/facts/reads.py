"""The names that a watch reads through its lets, and the observed resources of which it reads the metadata alone.

Of some observed resources only the metadata is read. ruleop then requests nothing else from the API server: neither the
values of a Secret nor the megabytes of a kind that is only counted.

When in doubt, the whole object is watched: if it is passed on as a value, if the name of a field is computed, or if a
template is included where a loop variable is visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.language.templates.values.data import PARTIAL
from ruleop.reachable import reached

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.language.rules.facts.scopes import Part
    from ruleop.language.rules.keys.parsed import Draft
    from ruleop.language.templates import Reference


def names_read_by_let(draft: Draft, name: str) -> frozenset[str]:
    """The names that a let reads, directly or through other lets. `cr.status` counts as `status`."""
    lets = {entry.name: entry.value.compiled for entry in draft.let if entry.value is not None}
    trees = [lets[each] for each in reached({name} & lets.keys(), lambda let: lets[let].names & lets.keys())]
    reads_status = any(reference.path[:2] == ("cr", "status") for tree in trees for reference in tree.references)
    return frozenset({"status"} if reads_status else ()).union(*(tree.names for tree in trees))


def metadata_only_ids(draft: Draft, parts: Iterable[Part]) -> frozenset[str]:
    """The ids of observed resources of which only the metadata is read."""
    whole = {
        name for name, entry in draft.observed.items() if entry.value is not None and entry.value.where is not None
    }
    for part in parts:
        read = [reference for reference in part.compiled.references if reference.name in draft.observed]
        whole |= {
            reference.name for reference in read if not _is_partial(reference, many=_is_list(draft, reference.name))
        }
        whole |= (part.compiled.names & set(draft.observed)) - {reference.name for reference in read}
    return frozenset(draft.observed) - whole


def _is_list(draft: Draft, name: str) -> bool:
    table = draft.observed[name].value
    return table is not None and table.many


def _is_partial(reference: Reference, *, many: bool) -> bool:
    steps = list(reference.path[1:])
    if any(step is not None and "," in step for step in steps):  # sort(attribute='a,b') reads two fields
        return False
    if many:
        if not steps:
            return reference.passes
        if steps[0] == "?":  # the number of items
            return True
        if steps.pop(0) is not None:
            return False
    return bool(steps) and steps[0] in PARTIAL
