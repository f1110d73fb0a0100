"""Masks for the text of a plan.

Three things are: the data of Secrets (`masking`); fields of other objects that a template computed from a Secret, by
any expression (`hidden_fields`); and known values of Secrets, wherever they are in the text. The second finds parts and
encodings of a value, the third copies of which nobody knows the origin, such as those of an earlier rule.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.core.kinds import Object, ObjectKey
from ruleop.core.secrets.covered_fields import covered_pair, leaves_of
from ruleop.core.secrets.secret_values import AFTER, BEFORE, MASK, masked_pair

if TYPE_CHECKING:
    from ruleop.core.secrets.covered_fields import Hidden

SHORTEST: Final = 4
"""The length from which a value is masked where it is the whole text."""

DISTINCT: Final = 8
"""The length from which a value is also masked inside longer text. Otherwise `cert` would be in every
`cert-manager.io`."""

_FIELDS: Final = ("data", "stringData")
_PIECES = re.compile(r"[:=]\s*")
_QUOTES: Final = "'\" ,"


class KnownTexts:
    """Texts that are replaced wherever they are in another text, the longest first. A pattern of alternatives would
    try all of them at each character, and a Secret may have thousands of values."""

    __slots__ = ("_by_start",)

    def __init__(self, texts: Iterable[str]) -> None:
        """Only those of at least DISTINCT characters are replaced."""
        self._by_start: dict[str, list[str]] = {}
        for text in sorted((text for text in texts if len(text) >= DISTINCT), key=lambda text: (-len(text), text)):
            self._by_start.setdefault(text[:DISTINCT], []).append(text)

    def replaced(self, text: str, by: Callable[[str], str]) -> str:
        if not self._by_start:
            return text
        pieces: list[str] = []
        done = at = 0
        while at <= len(text) - DISTINCT:
            candidates = self._by_start.get(text[at : at + DISTINCT], ())
            found = next((each for each in candidates if text.startswith(each, at)), "") if candidates else ""
            if found:
                pieces += [text[done:at], by(found)]
                done = at + len(found)
            at += len(found) or 1
        return "".join([*pieces, text[done:]])


@dataclass(frozen=True)
class Masks:
    """The masks of a plan besides those for the data of Secrets."""

    hidden: Mapping[ObjectKey, Hidden] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def object(self, obj: Object) -> Object:
        return self.pair(obj, obj)[1]

    def pair(self, before: Object, after: Object) -> tuple[Object, Object]:
        """Two versions of one object, masked; fields that differ still differ."""
        old, new = masked_pair(before, after)
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


def secret_values(secret: Object) -> Iterator[str]:
    """The values of a Secret that are masked wherever they are: as they are stored and decoded, and their lines and
    parts if they are structured."""
    for which in _FIELDS:
        entries = secret.get(which)
        for value in entries.values() if isinstance(entries, Mapping) else ():
            if isinstance(value, str):
                yield value
                yield base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
                plain = decoded(value) if which == "data" else value
                yield from _pieces(plain)


def _pieces(text: str) -> Iterator[str]:
    yield text
    yield text.strip()
    for line in text.splitlines():
        yield line.strip()
        yield from (part.strip(_QUOTES) for part in _PIECES.split(line, maxsplit=1))
    if text[:1] in ("{", "["):
        try:
            yield from leaves_of(orjson.loads(text))
        except orjson.JSONDecodeError:
            return


def known_values(secrets: Iterable[Object], computed: Iterable[str], public: Container[str]) -> frozenset[str]:
    """The values of these Secrets and what was computed from them, if they are long enough to be masked, and not
    public."""
    found = {value for secret in secrets for value in secret_values(secret)}.union(computed)
    return frozenset(value for value in found if len(value) >= SHORTEST and value not in public)


def decoded(value: str) -> str:
    """A value of `data` as text; the value itself if it is not base64."""
    try:
        return base64.b64decode(value, validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        return value
