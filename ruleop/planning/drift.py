"""Drift of children, and field conflicts: somebody repeatedly changes fields of a child that ruleop sets.

One change by hand is reverted at once, and so are several. But two controllers that want different values of one field
would write it forever, as fast as the API server lets them. So what is reverted of a child is remembered for some
minutes. When the same fields of it, for the same desired object, were reverted five times and differ once more, that is
a field conflict: it is reported, and from then on the child is reverted with backoff, up to every five minutes. Nothing
else of its CR waits for that. A conflict is over when a reverted child has stayed as it is for two minutes, and another
desired object (an edit of the CR) ends it at once.

An object that is repeatedly deleted is in conflict as a whole. A state machine without I/O; time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson

from ruleop.merge import merge_patch, same
from ruleop.planning.actions import Action, Create, Patch, Replace, ServerSideApply
from ruleop.planning.marks import RULEOP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import Object

ENOUGH: Final = 5
"""Times that the same fields are reverted before it is a conflict. A person who tries something out stops before."""

WINDOW: Final = 300.0
"""Seconds within which they count."""

FIRST: Final = 10.0
CAP: Final = 300.0
"""Seconds between two writes in a conflict: the first pause, and the longest."""

QUIET: Final = 120.0
"""Seconds that a reverted child has to stay as it is for the conflict to be over."""

WHOLE: Final = frozenset({""})
"""The fields of an object that was deleted."""

MOST_NAMES: Final = 4
Correction: TypeAlias = Create | Patch | Replace | ServerSideApply


class Decision(Enum):
    REVERT = "free"  # revert it
    REPORT = "noticed"  # this is a conflict, and it is not reported yet
    HOLD = "held"  # not now


@dataclass(frozen=True, slots=True)
class Reverted:
    """What was reverted of one child lately."""

    desired_digest: str  # of the desired object
    fields: frozenset[str]  # that were reverted each time
    times: tuple[float, ...] = ()  # the last times
    altered: bool = True  # no answer of the server was what had been sent
    managed: tuple[Mapping[str, Any], ...] | None = (
        None  # the object's managedFields, where they were read to name a manager
    )
    message: str = ""  # of the conflict; empty: there is none
    drifted: bool = False  # changed since it was reverted last
    wait: float = FIRST
    due: float = 0.0  # not to be reverted before

    def decide(self, fields: frozenset[str], now: float) -> Decision:
        """What to do about these fields, which are not as they should be."""
        if self.message:
            return Decision.HOLD if now < self.due else Decision.REVERT
        recent = [time for time in self.times if now - time <= WINDOW]
        return Decision.REPORT if len(recent) >= ENOUGH and self.fields & fields else Decision.REVERT

    def noticed(self, fields: frozenset[str], message: str, now: float) -> Reverted:
        if self.message:
            return self
        return replace(
            self, fields=self.fields & fields, message=message, managed=None, drifted=True, due=now + self.wait
        )

    def held(self) -> Reverted:
        return replace(self, drifted=True) if not self.drifted else self

    def is_over(self, now: float) -> bool:
        return now >= self._ends_at if self.message else now - self.times[-1] > WINDOW

    def next_check(self, now: float, *, held: bool) -> float | None:
        """When there is something to do although no event comes. `held`: the fields differ now."""
        if not self.message:
            return None
        return self.due if (held or self.drifted) and now < self.due else self._ends_at

    @property
    def _ends_at(self) -> float:
        return (self.due if self.drifted else self.times[-1]) + QUIET


def reverted(
    before: Reverted | None, desired_digest: str, fields: frozenset[str], now: float, *, altered: bool
) -> Reverted:
    """The fields were written. `altered`: the server's answer already had something else."""
    if before is None or before.desired_digest != desired_digest:
        found = Reverted(desired_digest, fields)
    elif before.message:
        wait = min(CAP, before.wait * 2)
        found = replace(before, wait=wait, due=now + wait, drifted=False)
    elif before.fields & fields and now - before.times[-1] <= WINDOW:
        found = replace(before, fields=before.fields & fields)
    else:
        found = Reverted(desired_digest, fields)
    return replace(found, times=(*found.times[1 - ENOUGH :], now), altered=found.altered and altered)


# -- which fields ------------------------------------------------------------------------------------------------------


def corrections(actions: Iterable[Action]) -> Iterator[tuple[Correction, frozenset[str]]]:
    """The actions that revert drift, if nothing else has changed, each with its fields."""
    for action in actions:
        fields = corrected_fields(action)
        if fields is not None:
            yield cast("Correction", action), fields


def corrected_fields(action: Action) -> frozenset[str] | None:
    """The fields that the action would revert; None: it is an action of another kind."""
    match action:
        case Create():
            return WHOLE
        case Patch(why="changed"):
            return fields_of(action.patch)
        case Replace(why="changed"):
            return fields_of(merge_patch(action.live, action.object) or {})
        case ServerSideApply(why="changed", live=live) if live is not None:
            return fields_of(_without_nulls(merge_patch(live, action.object) or {}))
    return None


def is_altered(action: Correction, answer: Object, fields: frozenset[str]) -> bool:
    """Whether the answer already has something else in one of the fields."""
    desired = action.merged if isinstance(action, Patch) else action.object
    patch = merge_patch(answer, desired) or {}
    return bool(fields & fields_of(patch if isinstance(action, Patch) else _without_nulls(patch)))


def fields_of(patch: Mapping[str, Any]) -> frozenset[str]:
    """The fields that a merge patch sets or removes; a list is one field. What only guards the patch does not count."""
    return frozenset(
        ".".join(path) for path in _leaves(patch) if path not in {("metadata", "uid"), ("metadata", "resourceVersion")}
    )


def _without_nulls(patch: Mapping[str, Any]) -> dict[str, Any]:
    """What an apply leaves out stays as it is."""
    found = {
        name: _without_nulls(value) if isinstance(value, Mapping) and value else value for name, value in patch.items()
    }
    return {
        name: value for name, value in found.items() if value is not None and not (value == {} and patch[name] != {})
    }


def _leaves(value: Any, *path: str) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from _leaves(member, *path, name)
    else:
        yield path


# -- how it is reported ------------------------------------------------------------------------------------------------


def conflict_message(action: Correction, paths: Iterable[str], managers: Iterable[str], *, by_server: bool) -> str:
    """Which fields are in conflict, who changes them, and what ruleop does about it."""
    title, names = f"{action.key.kind}/{action.key.name}", list(managers)
    if isinstance(action, Create):
        return f"{title} is repeatedly deleted; backing off before recreating it"
    found = list(paths)
    what = ", ".join(found[:MOST_NAMES]) + (" and more" if len(found) > MOST_NAMES else "")
    verb = "are" if len(found) > 1 else "is"
    if by_server:
        who = "changed by the API server or a webhook at each write"
        return f"{title}: {what} {verb} {who}; backing off before writing again"
    who = f"repeatedly changed by {' and '.join(names) or 'somebody'}"
    return f"{title}: {what} {verb} {who}; backing off before reverting it"


_MISSING = object()
_NAMESAKE = "another ruleop or a webhook"  # which wrote, under ruleop's name, what ruleop does not want


def managers_of(managed: Iterable[Mapping[str, Any]], live: Object, desired: Object) -> list[str]:
    """The field managers that own what differs in `live` from the desired object, or else the last other one that wrote
    it; sorted. Of a field that somebody removed managedFields keep nothing."""
    entries = [each for each in managed if each.get("manager")]
    found = {
        str(each["manager"]) for each in entries if each.get("fieldsV1") and _differs(each["fieldsV1"], live, desired)
    }
    if not found:
        others = (each for each in entries if each["manager"] != RULEOP and each.get("subresource") != "status")
        last = max(others, key=lambda each: str(each.get("time") or ""), default=None)
        found = {str(last["manager"])} if last is not None else set()
    return sorted(_NAMESAKE if each == RULEOP else each for each in found)


def _differs(fields: Mapping[str, Any], live: Any, desired: Any) -> bool:
    """Whether a field of this set is desired with another value."""
    if desired is _MISSING:
        return False
    if not fields:
        return not same(live, desired)
    for name, inner in fields.items():
        kind, _, rest = name.partition(":")
        if kind == "f":
            one, two = _member(live, rest), _member(desired, rest)
        elif kind == "k":
            keys = orjson.loads(rest)
            one, two = _item(live, keys), _item(desired, keys)
        else:
            continue  # a member of a set exists or does not, and that it exists is no difference
        if one is not _MISSING and _differs(inner, one, two):
            return True
    return False


def _member(value: Any, name: str) -> Any:
    return value.get(name, _MISSING) if isinstance(value, Mapping) else _MISSING


def _item(value: Any, keys: Mapping[str, Any]) -> Any:
    """The item with these keys; a key that the author left out was filled in by the server."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping) and all(item.get(name, value) == value for name, value in keys.items()):
            return item
    return _MISSING
