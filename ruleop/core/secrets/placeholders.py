"""Replaces values of Secrets in a recording.

Each value is replaced by a random placeholder, the same in all places: in the Secret, in the custom resource that it
came from, and inside longer strings. So equal values stay equal, and a replayed pass renders and compares like the
recorded one. Each recording has new placeholders, so that no password can be guessed from one. Checksums of a Secret's
data, by which rules restart pods, are replaced by checksums of the placeholders, because a weak password could be
guessed from one. Other values that are computed from a secret value differ when the pass is replayed.

Values of eight or more characters are replaced inside longer strings, shorter ones only as a whole string, and those of
less than four only in the Secret: otherwise `cert` would be replaced in every `cert-manager.io`. A value that is also
the name of an object, or a boolean, is not replaced.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.secrets.masks import SHORTEST, KnownTexts, decoded
from ruleop.core.secrets.secret_values import is_secret
from ruleop.core.templating.filters.data_filters import sha256

if TYPE_CHECKING:
    from ruleop.core.kinds import Object

_CHECKSUM_LENGTHS: Final = (64, 63, 40, 32, 24, 20, 16, 12, 10, 8)
_TRUTHS: Final = frozenset({"true", "false"})
_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Redaction:
    def __init__(self, objects: Iterable[Object], computed: Iterable[str] = ()) -> None:
        """`computed`: values that the pass computed from Secrets."""
        found = list(objects)
        self._key = secrets.token_bytes(16)
        self._words: dict[str, str] = {}
        self._public = _TRUTHS | {each for obj in found for each in _names(obj) if isinstance(each, str)}
        for obj in found:
            if is_secret(obj):
                self._learn(obj)
        for value in computed:
            if self._is_hidden(value) and value not in self._words:
                self._words[value] = self._word(value)
        self._known = KnownTexts(self._words)
        self._words |= self._checksums([obj for obj in found if is_secret(obj)])
        self._known = KnownTexts(self._words)

    def _learn(self, secret: Object) -> None:
        for value in _values(secret.get("data")):
            plain = decoded(value)
            if self._is_hidden(plain):
                self._words[plain] = self._word(plain)
                self._words[value] = _encoded(self._word(plain))
        for value in _values(secret.get("stringData")):
            if self._is_hidden(value):
                self._words[value] = self._word(value)
                self._words[_encoded(value)] = _encoded(self._word(value))

    def _checksums(self, found: Iterable[Object]) -> dict[str, str]:
        """Of each value, and of all of them, as the filter `sha256` computes them."""
        checksums: dict[str, str] = {}
        for secret in found:
            data, hidden = secret.get("data"), self.of(secret).get("data")
            pairs = []
            if isinstance(data, Mapping):
                pairs = [(data, hidden), *((value, hidden[name]) for name, value in data.items())]
            pairs += [(decoded(before), decoded(after)) for before, after in pairs if isinstance(before, str)]
            for before, after in pairs:
                if before != after:
                    checksums |= {sha256(before, length): sha256(after, length) for length in _CHECKSUM_LENGTHS}
        return checksums

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
        return self._known.replaced(text, self._words.__getitem__)

    def _secret(self, secret: dict[str, Any]) -> dict[str, Any]:
        """Short values too, and kubectl's copy of the whole object."""
        for field, encode in (("data", _encoded), ("stringData", str)):
            if isinstance(entries := secret.get(field), Mapping):
                secret[field] = {name: self._short(value, encode) for name, value in entries.items()}
        metadata = secret.get("metadata")
        if isinstance(metadata, dict) and isinstance(notes := metadata.get("annotations"), dict):
            metadata["annotations"] = {name: text for name, text in notes.items() if name != _COPY}
        return secret

    def _short(self, value: Any, encode: Any) -> Any:
        if not isinstance(value, str):
            return None
        plain = decoded(value) if encode is _encoded else value
        return value if plain.startswith("redacted-") or plain in self._public else encode(self._word(plain))


def _names(obj: Object) -> Iterable[Any]:
    metadata = obj.get("metadata") or {}
    return (metadata.get("name"), metadata.get("namespace"), obj.get("kind"))


def _values(entries: Any) -> Iterable[str]:
    return [value for value in entries.values() if isinstance(value, str)] if isinstance(entries, Mapping) else []


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
