"""Changes of the API server to values that ruleop sends.

`cpu: 1000m` is returned as `1`, an empty list is not returned at all, a webhook rewrites an image. Compared literally,
the desired and the live value would always differ, and every reconcile would send the same write again. So the answer
to each write is compared with the desired state, and where they differ, both values are stored. Later, the same desired
value with the same live value is not a difference.

This never hides a change. Both values are stored, as fingerprints, for one path of one object: another desired value,
or another live value, is a difference again. They are kept in memory only; after a restart, each such object costs one
write without effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ruleop.kubernetes.merge.equality import fingerprint
from ruleop.kubernetes.merge.fields import ItemKey
from ruleop.kubernetes.merge.in_sync import holds
from ruleop.kubernetes.merge.lists import item_keys, items_by_key, member_key
from ruleop.kubernetes.merge.server.normalise import is_omitted_default, is_stored_as, without_nulls
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import JSON, Object

_Path: TypeAlias = tuple[str | ItemKey, ...]
_Difference: TypeAlias = tuple[_Path, str, str]

MAX_DIFFERENCES = 256  # per object, to bound memory; a server that changes more than this has stored another object
_MISSING = "missing"


@dataclass(slots=True, eq=False)
class Answers:
    """The stored differences at one path and below it. Treated as frozen once built."""

    sent: str = ""
    answered: str = ""
    within: dict[str | ItemKey, Answers] = field(default_factory=dict)

    def is_answer(self, desired: JSON, live: JSON) -> bool:
        """Whether `live` is the server's answer to `desired`."""
        return bool(self.sent) and self.sent == fingerprint(desired) and self.answered == _fingerprint(live)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The answers for one object. Immutable; starts as `Learned.NOTHING`."""

    answers: Answers | None = None

    NOTHING: ClassVar[Learned]

    def learn(self, sent: Object, answered: Object, shape: Shape) -> Learned:
        """The answers after a write: `sent` is the desired state, `answered` the object in the server's answer.

        Earlier answers are not kept: the new answer covers every desired field, and where the server now keeps a value
        unchanged, an old answer would hide a later change by someone else.
        """
        if holds(answered, sent, shape):
            return Learned.NOTHING
        root, count = Answers(), 0
        for path, sent_print, answered_print in _differences(sent, answered, shape, ()):
            node = root
            for step in path:
                node = node.within.setdefault(step, Answers())
            node.sent, node.answered = sent_print, answered_print
            count += 1
            if count == MAX_DIFFERENCES:
                break
        return Learned(root) if count else Learned.NOTHING

    def __len__(self) -> int:
        """The number of stored differences."""
        return _count(self.answers) if self.answers else 0


Learned.NOTHING = Learned()


def order_of(keys: Iterable[ItemKey | None]) -> JSON:
    """The order of a list's items as a JSON value. The items themselves are compared one by one."""
    return [list(key) for key in keys if key is not None]


def _count(answers: Answers) -> int:
    return bool(answers.sent) + sum(map(_count, answers.within.values()))


def _fingerprint(live: JSON) -> str:
    return _MISSING if live is None else fingerprint(live)


def _differences(sent: JSON, answered: JSON, shape: Shape, path: _Path) -> Iterator[_Difference]:
    """The deepest paths at which the answer differs from the sent value. Fields that the server added are not
    differences."""
    if type(sent) is dict and type(answered) is dict and not shape.atomic:
        for name, value in sent.items():
            if value is not None and not (name not in answered and is_omitted_default(value, name, shape)):
                inner = shape.fields.get(name) or shape.values or UNKNOWN
                yield from _differences(value, answered.get(name), inner, (*path, name))
    elif type(sent) is list and type(answered) is list and shape.list_type == "map":
        yield from _item_differences(sent, answered, shape, path)
    elif type(sent) is list and type(answered) is list and shape.list_type == "set":
        desired = [member_key(item) for item in sent]
        if [key for key in map(member_key, answered) if key in set(desired)] != desired:
            yield path, fingerprint(sent), fingerprint(answered)
    else:
        sent = without_nulls(sent)
        if not is_stored_as(answered, sent, shape):
            yield path, fingerprint(sent), _fingerprint(answered)


def _item_differences(sent: list[JSON], answered: list[JSON], shape: Shape, path: _Path) -> Iterator[_Difference]:
    sent_items, answered_items = items_by_key(sent, shape), items_by_key(answered, shape)
    order = item_keys(answered, shape)
    for key, item in sent_items.items():
        yield from _differences(item, answered_items.get(key), shape.items or UNKNOWN, (*path, key))
    if [key for key in order if key in sent_items] != [key for key in sent_items if key in answered_items]:
        yield path, fingerprint(order_of(sent_items)), fingerprint(order_of(order))
