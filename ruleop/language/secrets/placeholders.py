"""Replaces values of Secrets in a recording.

Each value is replaced by a random placeholder, the same in all places: in the Secret, in the custom resource that it
came from, and inside longer strings. So equal values stay equal, and a replayed pass renders and compares like the
recorded one. Each recording has new placeholders, so that no password can be guessed from one. Checksums of a Secret's
data, by which rules restart pods, are replaced by checksums of the placeholders, because a weak password could be
guessed from one. Other values that are computed from a secret value differ when the pass is replayed.

Values are recognised as in plans, by their length (`SHORTEST`, `DISTINCT`) and if they are not public; in the Secret
itself, shorter ones are replaced too.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import LAST_APPLIED
from ruleop.language.secrets.secret_values import (
    SHORTEST,
    decoded,
    encoded,
    is_secret,
    longest_first,
    public_names,
    replaced,
    values_of,
)
from ruleop.language.templates.filters.data_filters import sha256

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object

_CHECKSUM: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{8,64}(?![0-9a-f])")  # or its beginning


class Placeholders:
    def __init__(self, objects: Sequence[Object], computed: Iterable[str] = ()) -> None:
        """`computed`: values that the pass computed from Secrets."""
        found = [obj for obj in objects if is_secret(obj)]
        self._key = secrets.token_bytes(16)
        self._words: dict[str, str] = {}
        self._public = public_names(objects)
        for secret in found:
            for stored, plain in values_of(secret):
                if self._is_hidden(plain):
                    self._words[plain] = self._word(plain)
                    self._words[stored] = encoded(self._word(plain))
        for value in computed:
            if self._is_hidden(value) and value not in self._words:
                self._words[value] = self._word(value)
        self._words = longest_first(self._words)
        self._checksums: dict[str, str] = {}
        self._checksums = {old: new for secret in found for old, new in self._checksums_of(secret)}

    def _checksums_of(self, secret: Object) -> Iterator[tuple[str, str]]:
        """The checksums of each value, and of all of them, with those of the placeholders."""
        data, hidden = secret.get("data"), self.of(secret).get("data")
        if isinstance(data, Mapping):
            pairs = [(data, hidden), *((value, hidden[name]) for name, value in data.items())]
            pairs += [(decoded(before), decoded(after)) for before, after in pairs if isinstance(before, str)]
            yield from ((sha256(before), sha256(after)) for before, after in pairs if before != after)

    def _is_hidden(self, value: str) -> bool:
        return len(value) >= SHORTEST and value not in self._public

    def _word(self, value: str) -> str:
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self._key, digest_size=6).hexdigest()
        return f"redacted-{digest}"

    def of(self, value: Any) -> Any:
        """The value without what Secrets hold."""
        if isinstance(value, str):
            return self._words.get(value) or self._without_distinct(value)
        if isinstance(value, Mapping):
            found = {self._without_distinct(name): self.of(member) for name, member in value.items()}
            return self._secret(found) if "kind" in found and is_secret(found) else found
        return [self.of(each) for each in value] if isinstance(value, list) else value

    def _without_distinct(self, text: str) -> str:
        return _CHECKSUM.sub(self._checksum, replaced(text, self._words))

    def _checksum(self, match: re.Match[str]) -> str:
        found = match[0]
        return next((new[: len(found)] for old, new in self._checksums.items() if old.startswith(found)), found)

    def _secret(self, secret: dict[str, Any]) -> dict[str, Any]:
        """Short values too, and kubectl's copy of the whole object."""
        for field, encode in (("data", encoded), ("stringData", str)):
            if isinstance(entries := secret.get(field), Mapping):
                secret[field] = {name: self._short(value, encode) for name, value in entries.items()}
        metadata = secret.get("metadata")
        if isinstance(metadata, dict) and isinstance(notes := metadata.get("annotations"), dict):
            metadata["annotations"] = {name: text for name, text in notes.items() if name != LAST_APPLIED}
        return secret

    def _short(self, value: Any, encode: Any) -> Any:
        if not isinstance(value, str):
            return None
        plain = decoded(value) if encode is encoded else value
        return value if plain.startswith("redacted-") or plain in self._public else encode(self._word(plain))
