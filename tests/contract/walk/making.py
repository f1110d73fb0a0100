"""What random objects are made of: values, fields and lists, by chance."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

WRONG = (
    None, -1, "x y", {}, [], True, 1.5, "", "A_B", 99999999, {"zzz": 1}, [None], ["a", "a"], "a" * 70,
)  # fmt: skip


@dataclass(frozen=True)
class Chance:
    """Where the chance comes from, and how often a value has a wrong type."""

    random: Random
    wrong: float = 0.0

    def happens(self, share: float) -> bool:
        return self.random.random() < share

    def value(self, made: Make | Any) -> Any:
        """What is made, or sometimes something of a wrong type."""
        if self.happens(self.wrong):
            return copy.deepcopy(self.random.choice(WRONG))
        return made(self) if callable(made) else copy.deepcopy(made)


Make = Callable[[Chance], Any]


def one_of(*choices: Any) -> Make:
    return lambda chance: chance.value(chance.random.choice(choices))


def fields(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Make:
    """An object. Each of its optional fields is there in two of five cases."""

    def make(chance: Chance) -> dict[str, Any]:
        chosen = {**required, **{name: made for name, made in (optional or {}).items() if chance.happens(0.4)}}
        found = {name: chance.value(made) for name, made in chosen.items()}
        return {**found, "unknown": 1} if chance.happens(chance.wrong / 3) else found

    return make


def items(made: Any, *, least: int = 0, most: int = 2, keys: tuple[str, ...] = ()) -> Make:
    """A list. With keys, its items differ in these, but for one list in ten."""

    def make(chance: Chance) -> list[Any]:
        found = [chance.value(made) for _ in range(chance.random.randint(least, most))]
        if not keys or chance.happens(0.1):
            return found
        by_keys = {json.dumps([item.get(key) for key in keys]) if isinstance(item, dict) else i: item
                   for i, item in enumerate(found)}  # fmt: skip
        return list(by_keys.values())

    return make


def strings(*names: str) -> Make:
    """A map of strings."""
    return lambda chance: {name: chance.random.choice(NAMES) for name in names if chance.happens(0.5)}


NAMES = ("a", "b", "c", "d")
NAME = one_of(*NAMES)
STRINGS = strings(*NAMES)
TRUTH = one_of(True, False)
SELECTOR = fields({"matchLabels": STRINGS})
EXPRESSIONS = fields(
    {},
    {
        "matchLabels": strings("a", "b"),
        "matchExpressions": items(
            fields({"key": NAME, "operator": one_of("In", "NotIn", "Exists", "DoesNotExist")}, {"values": items(NAME)}),
            least=1,
        ),
    },
)
