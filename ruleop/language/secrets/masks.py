"""Masks for the text of a plan.

Three things are masked: the data of Secrets; fields of other objects that can hold such data by their template; and
exact values of Secrets, wherever they are in a text that comes from outside, such as a message of the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Object, ObjectKey
from ruleop.language.secrets.covered_fields import covered_pair, covered_secret, covered_texts
from ruleop.language.secrets.secret_values import DATA_FIELDS, MASK, is_secret, longest_first, replaced

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from ruleop.language.secrets.hidden_fields import Hidden


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
        if hidden:
            old, new = covered_pair(old, new, hidden)
        return self.texts(old, new)

    def texts(self, before: Any, after: Any) -> tuple[Any, Any]:
        """Two versions of plain data without known values of Secrets; fields that differ still differ."""
        return covered_texts(before, after, self.text) if self.values else (before, after)

    def text(self, text: str) -> str:
        """The text without known values of Secrets."""
        return self._words.get(text) or replaced(text, self._words)

    def all(self, value: Any) -> Any:
        """Plain data without known values of Secrets."""
        return self.texts(value, value)[1]

    @cached_property
    def _words(self) -> dict[str, str]:
        return longest_first(dict.fromkeys(self.values, MASK))


NO_MASKS: Final = Masks()


def without_data(value: Any, path: Sequence[object] = (), public: Container[str] = ()) -> Any:
    """A part of a Secret, at this path in it, with its values masked unless they are public."""
    if path and path[0] not in DATA_FIELDS:
        return value
    if isinstance(value, Mapping):
        return {name: without_data(member, (*path, name), public) for name, member in value.items()}
    return value if not path or str(value) in public else MASK
