"""Lines of an htpasswd file, as written by `htpasswd -B`, with bcrypt. nginx, Apache, Traefik and the container
registry support it."""

from __future__ import annotations

import base64
import string
from dataclasses import dataclass
from typing import Any

from ruleop.language.templates import Fault

_BCRYPTS_OWN = "./" + string.ascii_uppercase + string.ascii_lowercase + string.digits
_BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_TO_BCRYPT = str.maketrans(_BASE64, _BCRYPTS_OWN)
MAX_BYTES = 72  # bytes of a password; the limit of bcrypt
MAX_ROUNDS = 12  # a quarter of a second
MICROSECONDS = 56  # approximate cost of one round; each further round doubles it


@dataclass(frozen=True, slots=True)
class PasswordLine:
    """The parts of a line."""

    user: str
    password: bytes
    rounds: int

    @property
    def cost(self) -> int:
        return MICROSECONDS << self.rounds

    def hashed(self, salt: bytes) -> str:
        import bcrypt  # noqa: PLC0415 - an extra; `check` reports it if it is missing

        text = base64.b64encode(salt).decode().rstrip("=").translate(_TO_BCRYPT)
        found = bcrypt.hashpw(self.password, f"$2b${self.rounds:02}${text}".encode()).decode()
        return f"{self.user}:$2y${found.removeprefix('$2b$')}"  # Apache's name for the same algorithm


def password_line(user: Any, password: Any, rounds: Any) -> PasswordLine:
    if not isinstance(user, str) or not 1 <= len(user) <= 255 or any(each in user for each in ":\n\r\0"):
        raise Fault("htpasswd: a user's name is text of 1 to 255 characters without colons and line breaks")
    secret = password.encode("utf-8", "surrogatepass") if isinstance(password, str) else b""
    if not 1 <= len(secret) <= MAX_BYTES or b"\0" in secret:
        raise Fault(
            f"htpasswd: a password is text of 1 to {MAX_BYTES} bytes (bcrypt takes no more) without NUL characters"
        )
    if not isinstance(rounds, int) or isinstance(rounds, bool) or not 4 <= rounds <= MAX_ROUNDS:
        raise Fault(f"htpasswd takes rounds from 4 to {MAX_ROUNDS}")
    return PasswordLine(user, secret, rounds)
