"""What the API server made of values that we sent.

`cpu: 1000m` comes back as `1`, an empty list does not come back at all, a webhook rewrites an image. Compared by their texts, wanted and
live would differ for ever, and every reconcile would send the same write again. So the answer to each write is compared with what was
wanted, and where it differs both are remembered. Next time, wanting the same and finding the same is no difference.

This never hides a change. Both sides are remembered, as fingerprints, for this one object and place: when we want something else, or
something else is live, it is a difference again. It is kept in memory only; after a restart each such object costs one write that
changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ruleop.merge.at_rest import holds
from ruleop.merge.equality import fingerprint
from ruleop.merge.fields import ItemKey
from ruleop.merge.lists import item_keys, items_by_key, member_key
from ruleop.merge.normalise import without_nulls
from ruleop.merge.whole import left_out, stands_for
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import JSON, Object

Place: TypeAlias = tuple[str | ItemKey, ...]
Difference: TypeAlias = tuple[Place, str, str]

MOST_PLACES = 256  # per object; beyond that the server and we do not speak of the same object, and memory is for those that do
_ABSENT = "absent"


@dataclass(slots=True, eq=False)
class Answers:
    """The remembered differences at one place and below it. Treated as frozen once built."""

    sent: str = ""
    answered: str = ""
    within: dict[str | ItemKey, Answers] = field(default_factory=dict)

    def cover(self, wanted: JSON, live: JSON) -> bool:
        """Whether `live` is what the server made of `wanted` when it was sent."""
        return bool(self.sent) and self.sent == fingerprint(wanted) and self.answered == _print_of(live)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Immutable; `Learned.NOTHING` to begin with."""

    answers: Answers | None = None

    NOTHING: ClassVar[Learned]

    def learn(self, sent: Object, answered: Object, shape: Shape) -> Learned:
        """After a write: `sent` is the whole of what was wanted, `answered` the object in the server's answer.

        What was learned before is not carried over: the answer speaks of every field that is wanted, and where the server now takes a
        value as it is, an old answer would make somebody's later change look like the server's doing.
        """
        if holds(answered, sent, shape):
            return Learned.NOTHING
        root, places = Answers(), 0
        for path, was_sent, was_answered in _differences(sent, answered, shape, ()):
            place = root
            for step in path:
                place = place.within.setdefault(step, Answers())
            place.sent, place.answered = was_sent, was_answered
            places += 1
            if places == MOST_PLACES:
                break
        return Learned(root) if places else Learned.NOTHING

    def __len__(self) -> int:
        """How many places of the object are remembered."""
        return _count(self.answers) if self.answers else 0


Learned.NOTHING = Learned()


def order_of(keys: Iterable[ItemKey | None]) -> JSON:
    """The order of a list's items as a value to compare; the items themselves are compared one by one."""
    return [list(key) for key in keys if key is not None]


def _count(answers: Answers) -> int:
    return bool(answers.sent) + sum(map(_count, answers.within.values()))


def _print_of(live: JSON) -> str:
    return _ABSENT if live is None else fingerprint(live)


def _differences(sent: JSON, answered: JSON, shape: Shape, path: Place) -> Iterator[Difference]:
    """The smallest places at which the answer is not what was sent. What the server added beside it is no difference."""
    if type(sent) is dict and type(answered) is dict and not shape.atomic:
        for name, value in sent.items():
            if value is not None and not (name not in answered and left_out(value, name, shape)):
                inner = shape.fields.get(name) or shape.values or UNKNOWN
                yield from _differences(value, answered.get(name), inner, (*path, name))
    elif type(sent) is list and type(answered) is list and shape.list_type == "map":
        yield from _item_differences(sent, answered, shape, path)
    elif type(sent) is list and type(answered) is list and shape.list_type == "set":
        wanted = [member_key(item) for item in sent]
        if [key for key in map(member_key, answered) if key in set(wanted)] != wanted:
            yield path, fingerprint(sent), fingerprint(answered)
    else:
        sent = without_nulls(sent)
        if not stands_for(answered, sent, shape):
            yield path, fingerprint(sent), _print_of(answered)


def _item_differences(sent: list[JSON], answered: list[JSON], shape: Shape, path: Place) -> Iterator[Difference]:
    ours, theirs = items_by_key(sent, shape), items_by_key(answered, shape)
    order = item_keys(answered, shape)
    for key, item in ours.items():
        yield from _differences(item, theirs.get(key), shape.items or UNKNOWN, (*path, key))
    if [key for key in order if key in ours] != [key for key in ours if key in theirs]:
        yield path, fingerprint(order_of(ours)), fingerprint(order_of(order))
