"""What differs each time and yet is planned: passwords are drawn from the pass's seed, so that a recorded pass replays."""

from __future__ import annotations

import hashlib
import hmac
import string
from datetime import datetime, timedelta
from typing import Any

from ruleop.templating import Fault

ALPHABET = string.ascii_letters + string.digits
MAX_LENGTH = 256


def random_password(seed: bytes, purpose: str, length: Any) -> str:
    """`length` letters and digits. The seed is the secret: the operator draws it anew for each pass, from the system's randomness."""
    if not isinstance(length, int) or isinstance(length, bool) or not 1 <= length <= MAX_LENGTH:
        raise Fault(f"random_password takes a length from 1 to {MAX_LENGTH}")
    letters: list[str] = []
    block = 0
    while len(letters) < length:
        digest = hmac.new(seed, f"{purpose}/{block}".encode(), hashlib.sha256).digest()
        # Bytes past the largest multiple of the alphabet's size are dropped: they would favour its first letters.
        letters.extend(ALPHABET[byte % len(ALPHABET)] for byte in digest if byte < 256 - 256 % len(ALPHABET))
        block += 1
    return "".join(letters[:length])


def another_moment(now: str) -> str:
    """One of which every part differs: a year and 32 or 33 days later are another year, month and day."""
    later = datetime.fromisoformat(now) + timedelta(days=365 + 33, hours=1, minutes=1, seconds=1)
    return later.strftime("%Y-%m-%dT%H:%M:%SZ")
