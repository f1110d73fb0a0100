"""Secrets with `rotateEvery` or `renewBefore`: their random values are regenerated in time.

Only keys of `data` whose values are random change: those that differ between two renders with other seeds. One patch
sets the new values, keeps the old ones under `previous-` keys, and records the time on the object, so a crash leaves
either all of the old or all of the new. A certificate shows itself when it has to be renewed.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.merge import encode_string_data
from ruleop.kubernetes.names import RESERVED_PREFIX
from ruleop.planning.model.marks import annotations_of
from ruleop.planning.rendering.certificates import MAX_PEM, validity
from ruleop.planning.rendering.time_functions import parse_time
from ruleop.planning.rendering.unplanned import ChildFails

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Child, Rotation
    from ruleop.planning.rendering.time_functions import TimeFunctions

ROTATED: Final = f"{RESERVED_PREFIX}rotated"
"""The annotation of the object with the time of the last rotation. Before that, it is as old as the object."""
PREVIOUS: Final = "previous-"


def random_keys(child: Child, one: Object, other: Object) -> frozenset[str]:
    """The keys of a Secret whose values differ between two renders. Raises ChildFails."""
    left, right = _data(one), _data(other)
    keys = frozenset(key for key, value in left.items() if right.get(key) != value)
    if taken := sorted(left.keys() & {PREVIOUS + key for key in keys}):
        raise ChildFails(f"the key {taken[0]} is for the value before the last rotation: choose another", child.site)
    return keys


def is_due(child: Child, rotation: Rotation, live: Object, keys: Collection[str], times: TimeFunctions) -> bool:
    """Whether the values of these keys have to be regenerated. Raises ChildFails."""
    moments = [*_rotations(rotation, live), *_renewals(child, rotation, live, keys)]
    for moment in moments:
        times.changes_at(moment, f"the next rotation of {child.id} is due")
    return any(moment <= times.now for moment in moments)


def _rotations(rotation: Rotation, live: Object) -> Iterator[float]:
    if rotation.every is None:
        return
    times: list[Any] = [annotations_of(live).get(ROTATED), live["metadata"].get("creationTimestamp")]
    for text in times:
        try:
            yield parse_time(text) + rotation.every
        except (TypeError, ValueError, OverflowError):
            continue
        return


def _renewals(child: Child, rotation: Rotation, live: Object, keys: Collection[str]) -> Iterator[float]:
    if rotation.before_end is None:
        return
    data = _data(live)
    for key in sorted(keys):
        if (found := validity(_decoded(data.get(key)))) is None:
            continue
        begin, end = found
        if end - begin <= rotation.before_end:
            message = f"the certificate in {key} is valid for a shorter time than renewBefore: renew it later"
            raise ChildFails(message, child.site, reason="ApplyFailed")
        yield end - rotation.before_end


def rotated(obj: Object, rendered: Object, keys: Collection[str], now: str) -> dict[str, Any]:
    """The object with the rendered values of these keys, and its own under `previous-` keys."""
    data, new = _data(obj), _data(rendered)
    old = {PREVIOUS + key: data[key] for key in keys if key in data}
    metadata = {**obj["metadata"], "annotations": {**annotations_of(obj), ROTATED: now}}
    return {**obj, "metadata": metadata, "data": {**data, **old, **{key: new[key] for key in sorted(keys)}}}


def _data(secret: Object) -> dict[str, Any]:
    found = encode_string_data(secret) if "stringData" in secret else secret
    data = found.get("data")
    return data if isinstance(data, dict) else {}


def _decoded(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 2 * MAX_PEM:
        return ""
    try:
        return base64.b64decode(value).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""
