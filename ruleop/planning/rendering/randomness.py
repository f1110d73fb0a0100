"""Random values in templates: passwords, keys and salts are derived from the seed of the pass, so that a recorded pass
can be replayed.

A create-only child is rendered in every pass, but its values are used only in the pass that creates it. So values that
take long to generate (a key, a certificate, the hash of a password) are generated only in that pass. All other renders
contain a placeholder.
"""

from __future__ import annotations

import hashlib
import hmac
import string
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ruleop.language.templates import Fault, TemplateFunction
from ruleop.language.templates.functions import FUNCTIONS
from ruleop.language.templates.values.cost import Exhausted
from ruleop.planning.rendering.certificates import Authority, Request, authority, issue, request
from ruleop.planning.rendering.passwords import password_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.language.templates.values.cost import Allowance

ALPHABET = string.ascii_letters + string.digits
MAX_LENGTH = 256
MOST_MICROSECONDS = 500_000  # of costly functions in one pass over one CR
COSTLY = frozenset(name for name, each in FUNCTIONS.items() if each.package)
"""Functions that return a placeholder until the object is created."""


def draw(seed: bytes, purpose: str, size: int) -> bytes:
    """Bytes that cannot be predicted without the seed. The operator draws a seed for each pass from the system's
    randomness."""
    blocks = (
        hmac.new(seed, f"{purpose}/{number}".encode(), hashlib.sha256).digest() for number in range(-(-size // 32))
    )
    return b"".join(blocks)[:size]


def random_password(seed: bytes, purpose: str, length: Any) -> str:
    """A password of `length` letters and digits."""
    if not isinstance(length, int) or isinstance(length, bool) or not 1 <= length <= MAX_LENGTH:
        raise Fault(f"random_password takes a length from 1 to {MAX_LENGTH}")
    # Bytes past the largest multiple of the alphabet's size are dropped: they would favour its first letters.
    fair = 256 - 256 % len(ALPHABET)
    size = 32
    while True:
        size += length
        letters = [ALPHABET[byte % len(ALPHABET)] for byte in draw(seed, purpose, size) if byte < fair]
        if len(letters) >= length:
            return "".join(letters[:length])


def different_time(now: str) -> str:
    """A time that differs in every part: year, month, day, hour, minute and second."""
    later = datetime.fromisoformat(now) + timedelta(days=365 + 33, hours=1, minutes=1, seconds=1)
    return later.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class RandomFunctions:
    """The random functions of one render."""

    seed: bytes
    purpose: str
    now: str
    allowance: Allowance  # microseconds of costly functions in one pass over one CR
    is_real: bool  # whether costly functions return real values or placeholders
    count: int = 0

    def functions(self) -> dict[str, TemplateFunction]:
        found: dict[str, Callable[..., Any]] = {
            "random_password": self.random_password,
            "now": lambda: self.now,
            "genCA": self.gen_ca,
            "genSignedCert": self.gen_signed_cert,
            "genSelfSignedCert": self.gen_self_signed_cert,
            "htpasswd": self.htpasswd,
        }
        return {name: TemplateFunction(name, function) for name, function in found.items()}

    def _spend(self, microseconds: int) -> None:
        if not self.allowance.takes(microseconds):
            raise Exhausted(
                "the certificates and password hashes of this resource take too long to generate in one reconcile: "
                "generate fewer of them, or hashes with fewer rounds"
            )

    def _purpose(self) -> str:
        self.count += 1
        return f"{self.purpose}/{self.count}"

    def random_password(self, length: Any = 24) -> str:
        return random_password(self.seed, self._purpose(), length)

    # As in Helm, with the same order of arguments.

    def gen_ca(self, cn: Any, days: Any = 3650, *, key_type: Any = "ecdsa") -> dict[str, str]:
        return self._issued("genCA", request("genCA", cn, days, key_type, is_ca=True), None)

    def gen_signed_cert(
        self, cn: Any, ips: Any = (), dns: Any = (), days: Any = 365, ca: Any = None, *, key_type: Any = "ecdsa"
    ) -> dict[str, str]:
        requested = request("genSignedCert", cn, days, key_type, ips=ips, dns=dns)
        return self._issued("genSignedCert", requested, authority("genSignedCert", ca))

    def gen_self_signed_cert(
        self, cn: Any, ips: Any = (), dns: Any = (), days: Any = 365, *, key_type: Any = "ecdsa"
    ) -> dict[str, str]:
        return self._issued(
            "genSelfSignedCert", request("genSelfSignedCert", cn, days, key_type, ips=ips, dns=dns), None
        )

    def _issued(self, name: str, requested: Request, by: Authority | None) -> dict[str, str]:
        purpose = self._purpose()
        if not self.is_real:
            stand_in = draw(self.seed, purpose, 16).hex()
            return {
                part: f"-----BEGIN {title}-----\nmade when the object is created: {stand_in}\n-----END {title}-----\n"
                for part, title in (("Cert", "CERTIFICATE"), ("Key", "PRIVATE KEY"))
            }
        self._spend(requested.cost + (by.cost if by else 0))
        return issue(
            name,
            requested,
            by,
            datetime.fromisoformat(self.now),
            lambda what, size: draw(self.seed, f"{purpose}/{what}", size),
        )

    def htpasswd(self, username: Any, password: Any, *, rounds: Any = 10) -> str:
        line = password_line(username, password, rounds)
        salt = draw(self.seed, self._purpose(), 16)
        if not self.is_real:
            return f"{line.user}:made when the object is created: {salt.hex()}"
        self._spend(line.cost)
        return line.hashed(salt)
