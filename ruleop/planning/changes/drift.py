"""Drift of children, and field conflicts: another client repeatedly changes fields of a child that ruleop sets.

A few changes by hand are reverted at once. But two controllers that set different values of one field would write it
forever, as fast as the API server permits. So the reverted fields of a child are kept for some minutes. If the same
fields, for the same desired object, were reverted five times and differ once more, that is a field conflict: it is
reported, and from then on the child is reverted with backoff, up to every five minutes. The rest of its CR is not
delayed. A conflict is over when a reverted child has stayed unchanged for two minutes, or when the desired object
changes (an edit of the CR).

An object that is repeatedly deleted is in conflict as a whole. This is a state machine without I/O; time is an
argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson

from ruleop.kubernetes.merge import canonical, merge_patch, same
from ruleop.planning.model.actions import Action, Create, Patch, ServerSideApply
from ruleop.planning.model.marks import RULEOP
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import Object

ENOUGH: Final = 5
"""The number of times that the same fields are reverted before it is a conflict. A person who tries something out stops
earlier."""

WINDOW: Final = 300.0
"""Seconds after which a revert no longer counts."""

FIRST: Final = 10.0
CAP: Final = 300.0
"""Seconds between two writes in a conflict: the first and the longest backoff."""

QUIET: Final = 120.0
"""Seconds that a reverted child has to stay unchanged for the conflict to be over."""

WHOLE_OBJECT: Final = frozenset({""})
"""The fields of an object that was deleted."""

_PRECONDITIONS: Final = frozenset({"metadata.uid", "metadata.resourceVersion"})
MAX_FIELDS: Final = 4
Correction: TypeAlias = Create | Patch | ServerSideApply


class Decision(Enum):
    REVERT = "revert"  # at once
    REPORT = "report"  # it is a new conflict: report it, and revert later
    HOLD = "hold"  # it is a known conflict: revert later


@dataclass(frozen=True, slots=True)
class Reverted:
    """The recent reverts of one child."""

    desired_digest: str  # of the desired object
    fields: frozenset[str]  # that every one of these reverts included
    times: tuple[float, ...] = ()  # of the last reverts
    altered: bool = True  # every answer of the server differed from what was sent
    managed: tuple[Mapping[str, Any], ...] | None = None  # managedFields, if they were read to name the manager
    message: str = ""  # of the conflict; empty: no conflict
    drifted: bool = False  # changed since the last revert
    wait: float = FIRST
    due: float = 0.0  # when it may be reverted again

    def decide(self, fields: frozenset[str], now: float) -> Decision:
        """The decision about these fields, which have drifted."""
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

    def next_check(self, now: float) -> float | None:
        """When the conflict has to be checked without an event."""
        if not self.message:
            return None
        return self.due if self.drifted and now < self.due else self._ends_at

    @property
    def _ends_at(self) -> float:
        return (self.due if self.drifted else self.times[-1]) + QUIET


def reverted(
    before: Reverted | None, desired_digest: str, fields: frozenset[str], now: float, *, altered: bool
) -> Reverted:
    """The state after a revert of these fields. `altered`: the server's answer already differed from what was sent."""
    if before is not None and before.desired_digest == desired_digest and before.message:
        wait = min(CAP, before.wait * 2)
        found = replace(before, wait=wait, due=now + wait, drifted=False)
    elif (
        before is not None
        and before.desired_digest == desired_digest
        and before.fields & fields
        and now - before.times[-1] <= WINDOW
    ):
        found = replace(before, fields=before.fields & fields)
    else:
        return Reverted(desired_digest, fields, (now,), altered)
    return replace(found, times=(*found.times[1 - ENOUGH :], now), altered=found.altered and altered)


# -- which fields ------------------------------------------------------------------------------------------------------


def corrections(actions: Iterable[Action]) -> Iterator[tuple[Correction, frozenset[str]]]:
    """The actions that may revert drift, each with the fields that it reverts."""
    for action in actions:
        fields = corrected_fields(action)
        if fields is not None:
            yield cast("Correction", action), fields


def corrected_fields(action: Action) -> frozenset[str] | None:
    """The fields that the action would revert; None if it reverts nothing."""
    match action:
        case Create():
            return WHOLE_OBJECT
        case Patch(why="changed"):
            return fields_of(action.patch)
        case ServerSideApply(why="changed", live=live) if live is not None:
            return fields_of(_applied_patch(live, action.object))
    return None


def is_altered(action: Correction, answer: Object, fields: frozenset[str]) -> bool:
    """Whether one of the fields already differs in the answer."""
    if isinstance(action, Patch):
        patch = merge_patch(_parts(answer, action.patch), _parts(action.object, action.patch)) or {}
    else:
        patch = _applied_patch(answer, action.object)
    return bool(fields & fields_of(patch))


def _parts(obj: Object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an object that a patch is about."""
    return {
        name: _parts(obj[name], inner) if isinstance(inner, dict) and isinstance(obj[name], dict) else obj[name]
        for name, inner in patch.items()
        if name in obj
    }


def fields_of(patch: Mapping[str, Any]) -> frozenset[str]:
    """The fields that a merge patch sets or removes; a list is one field. uid and resourceVersion are preconditions."""
    return frozenset(_leaves(patch, "")) - _PRECONDITIONS if patch else WHOLE_OBJECT


def _applied_patch(live: Object, applied: Object) -> dict[str, Any]:
    """The changes of an apply, which leaves fields alone that it does not set."""
    return merge_patch(live, applied, removes=False) or {}


def _leaves(patch: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, value in patch.items():
        if type(value) is dict and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


# -- how it is reported ------------------------------------------------------------------------------------------------


def conflict_message(action: Correction, paths: Iterable[str], managers: Iterable[str], *, by_server: bool) -> str:
    """Names the fields in conflict, who changes them, and what ruleop does about it."""
    title, names = f"{action.key.kind}/{action.key.name}", list(managers)
    if isinstance(action, Create):
        return f"{title} is repeatedly deleted; backing off before recreating it"
    found = list(paths)
    what = ", ".join(found[:MAX_FIELDS]) + (" and more" if len(found) > MAX_FIELDS else "")
    verb = "are" if len(found) > 1 else "is"
    if by_server:
        who = "changed by the API server or a webhook at each write"
        return f"{title}: {what} {verb} {who}; backing off before writing again"
    who = f"repeatedly changed by {' and '.join(names) or 'somebody'}"
    return f"{title}: {what} {verb} {who}; backing off before reverting it"


_MISSING = object()
_NAMESAKE = "another ruleop or a webhook"  # a client that wrote undesired values under ruleop's name


def managers_of(managed: Iterable[Mapping[str, Any]], live: Object, desired: Object) -> list[str]:
    """The field managers that own fields that differ from the desired object, sorted. If there are none, the last other
    manager that wrote the object: managedFields have no entry for a removed field.

    Who owns a map or a list as a whole is named only if nobody owns a field in it: ruleop's own entry has `f:data: {}`
    when another client has changed all of its fields in there.
    """
    entries = [each for each in managed if each.get("manager")]
    items = _Items()
    whole = {str(each["manager"]) for each in entries if _owns(each, live, desired, items, whole=True)}
    found = {str(each["manager"]) for each in entries if _owns(each, live, desired, items, whole=False)}
    found = found or whole - {RULEOP}
    if not found:
        others = (each for each in entries if each["manager"] != RULEOP and each.get("subresource") != "status")
        last = max(others, key=lambda each: str(each.get("time") or ""), default=None)
        found = {str(last["manager"])} if last is not None else whole
    return sorted(_NAMESAKE if each == RULEOP else each for each in found)


def _owns(entry: Mapping[str, Any], live: Object, desired: Object, items: _Items, *, whole: bool) -> bool:
    """Whether the manager of this entry owns a field that differs; with `whole`, also a map or a list that does."""
    return bool(entry.get("fieldsV1")) and _differs(entry["fieldsV1"], live, desired, items, whole=whole)


def _differs(fields: Mapping[str, Any], live: Any, desired: Any, items: _Items, *, whole: bool) -> bool:
    """Whether a field of this set has another value in the desired object."""
    if desired is _MISSING:
        return False
    if not fields:
        return (whole or not isinstance(live, (Mapping, list))) and not same(live, desired)
    for name, inner in fields.items():
        kind, _, rest = name.partition(":")
        if kind == "f":
            one, two = _member(live, rest), _member(desired, rest)
        elif kind == "k":
            keys = orjson.loads(rest)
            one, two = items.find(live, keys), items.find(desired, keys)
        else:
            continue  # a member of a set has no value that could differ
        if one is not _MISSING and _differs(inner, one, two, items, whole=whole):
            return True
    return False


def _member(value: Any, name: str) -> Any:
    return value.get(name, _MISSING) if isinstance(value, Mapping) else _MISSING


class _Items:
    """List items by their keys. Lists are indexed once, because a list of thousands of items has as many keys."""

    def __init__(self) -> None:
        self._lists: dict[tuple[int, tuple[str, ...]], dict[tuple[str, ...], dict[bytes, Any]]] = {}

    def find(self, items: Any, keys: Mapping[str, Any]) -> Any:
        """The item with these keys; the server may have added a key that the template leaves out."""
        if not isinstance(items, list):
            return _MISSING
        names = tuple(sorted(keys))
        found = self._lists.get((id(items), names))
        if found is None:
            found = self._lists[id(items), names] = self._indexed(items, names)
        for present, by_values in found.items():
            item = by_values.get(canonical([keys[name] for name in present]), _MISSING)
            if item is not _MISSING:
                return item
        return _MISSING

    def _indexed(self, items: list[Any], names: tuple[str, ...]) -> dict[tuple[str, ...], dict[bytes, Any]]:
        """The items by the names of the keys that they have, and the values of these keys."""
        found: dict[tuple[str, ...], dict[bytes, Any]] = {}
        for item in items:
            if isinstance(item, Mapping):
                present = tuple(name for name in names if name in item)
                found.setdefault(present, {}).setdefault(canonical([item[name] for name in present]), item)
        return found
