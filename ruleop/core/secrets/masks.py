"""Masks for the text of a plan.

Three things are masked: the data of Secrets; fields of other objects that a template computed from a Secret, by any
expression; and known values of Secrets, wherever they are in the text. The second finds parts and encodings of a value,
the third copies of which nobody knows the origin, such as those of an earlier rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.kinds import Object, ObjectKey
from ruleop.core.secrets.covered_fields import covered_pair, covered_secret
from ruleop.core.secrets.secret_values import AFTER, BEFORE, DATA_FIELDS, MASK, KnownTexts, is_secret

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from ruleop.core.secrets.hidden_fields import Hidden


@dataclass(frozen=True)
class Masks:
    """The masks of a plan besides those for the data of Secrets."""

    hidden: Mapping[ObjectKey, Hidden] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def object(self, obj: Object) -> Object:
        return self.pair(obj, obj)[1]

    def pair(self, before: Object, after: Object) -> tuple[Object, Object]:
        """Two versions of one object, masked; fields that differ still differ."""
        old, new = covered_secret(before, after) if is_secret(before) or is_secret(after) else (before, after)
        hidden = self.hidden.get(ObjectKey.of(after)) if self.hidden else None
        if hidden is not None:
            old, new = covered_pair(old, new, hidden)
        return self.texts(old, new)

    def texts(self, before: Any, after: Any) -> tuple[Any, Any]:
        """Two versions of plain data without known values of Secrets; fields that differ still differ."""
        return self._scanned(before, after) if self.values else (before, after)

    def text(self, text: str) -> str:
        """The text without known values of Secrets."""
        if text in self.values:
            return MASK
        return self._known.replaced(text, lambda _: MASK)

    def all(self, value: Any) -> Any:
        """Plain data without known values of Secrets."""
        if not self.values:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self.all(member) for name, member in value.items()}
        return [self.all(item) for item in value] if isinstance(value, list) else value

    @cached_property
    def _known(self) -> KnownTexts:
        return KnownTexts(self.values)

    def _scanned(self, before: Any, after: Any) -> tuple[Any, Any]:
        """Both values without known values of Secrets. If they differed only in these, they still differ."""
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            old, new = {}, {}
            for name in before:
                if name in after:
                    shown = self.text(name)
                    old[shown], new[shown] = self._scanned(before[name], after[name])
            old |= {self.text(name): self.all(value) for name, value in before.items() if name not in after}
            new |= {self.text(name): self.all(value) for name, value in after.items() if name not in before}
            return old, new
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            pairs = [self._scanned(*pair) for pair in zip(before, after, strict=True)]
            return [old for old, _ in pairs], [new for _, new in pairs]
        left, right = self.all(before), self.all(after)
        return (BEFORE, AFTER) if left == right and before != after else (left, right)


NO_MASKS: Final = Masks()


def without_data(value: Any, path: Sequence[object] = (), public: Container[str] = ()) -> Any:
    """A part of a Secret, at this path in it, with its values masked unless they are public."""
    if path and path[0] not in DATA_FIELDS:
        return value
    if isinstance(value, Mapping):
        return {name: without_data(member, (*path, name), public) for name, member in value.items()}
    return value if not path or str(value) in public else MASK
