"""Proofs of ownership: keyed digests that only the operator can make.

A tenant who may label and annotate an object in one namespace can write any annotation, also one that names the custom
resource of somebody else: its uid can be read or guessed. So the annotation `ruleop.dev/owner` carries a proof, an HMAC
of its text with the operator's key. The text names the object, so a copy of the annotation proves nothing about another
one. Field managers of children with `patch` carry such a proof in their names.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import Final, Protocol

from ruleop.values import dataclass

_PURPOSE: Final = b"ruleop.dev/owner\0"
_LENGTH: Final = 16  # bytes of the digest: 128 bits
KEY_LENGTH: Final = 32


class Proofs(Protocol):
    """The proofs that planning needs."""

    def of(self, text: str) -> str:
        """The proof of a text; empty without a key."""
        ...

    def hold(self, text: str, proof: str) -> bool: ...

    @property
    def accept_unproven(self) -> bool:
        """Whether a text without a valid proof is believed, because it may be older than the key."""
        ...

    @property
    def accept_unproven_managers(self) -> bool:
        """The same for the name of a field manager, which may also be older than their proofs."""
        ...


@dataclass(frozen=True, slots=True)
class KeyedProofs:
    """Proofs with these keys: the first makes new ones; those of the others, which it replaced, are still valid."""

    keys: tuple[bytes, ...] = ()
    accept_unproven: bool = False
    accept_unproven_managers: bool = False

    def of(self, text: str) -> str:
        return _digest(self.keys[0], text) if self.keys else ""

    def hold(self, text: str, proof: str) -> bool:
        given = proof.encode(errors="replace")
        return any(hmac.compare_digest(_digest(key, text).encode(), given) for key in self.keys)


@lru_cache(maxsize=4096)
def _digest(key: bytes, text: str) -> str:
    return hmac.digest(key, _PURPOSE + text.encode(errors="replace"), "sha256")[:_LENGTH].hex()
