"""Random values in templates: passwords, keys and salts are derived from the seed of the pass, so that a recorded pass
can be replayed.

A create-only child is rendered in every pass, but its values are used only in the pass that creates it. So values that
take long to generate (a key, a certificate, the hash of a password) are generated only in that pass. All other renders
contain a placeholder."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import string
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.merge import encode_string_data
from ruleop.kubernetes.names import RESERVED_PREFIX
from ruleop.language.templates import Fault, TemplateFunction
from ruleop.language.templates.declarations import FUNCTIONS
from ruleop.language.templates.values.cost import Exhausted
from ruleop.planning.model.marks import annotations_of
from ruleop.planning.model.observed import parse_time
from ruleop.planning.rendering.certificates import (
    MAX_PEM,
    Authority,
    CertificateRequest,
    authority,
    issue,
    request,
    validity,
)
from ruleop.planning.rendering.unplanned import ChildFails
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Child, Rotation
    from ruleop.language.templates.values.cost import Allowance
    from ruleop.planning.rendering.time_functions import TimeFunctions


# -- passwords ---------------------------------------------------------------------------------------------------------
#
# Lines of an htpasswd file, as written by `htpasswd -B`, with bcrypt. nginx, Apache, Traefik and the container registry
# support it.


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


# -- randomness --------------------------------------------------------------------------------------------------------


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

    def _issued(self, name: str, requested: CertificateRequest, by: Authority | None) -> dict[str, str]:
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


# -- rotation ----------------------------------------------------------------------------------------------------------
#
# Secrets with `rotateEvery` or `renewBefore`: their random values are regenerated in time.
#
# Only keys of `data` whose values are random change: those that differ between two renders with other seeds. One patch
# sets the new values, keeps the old ones under `previous-` keys, and records the time on the object, so a crash leaves
# either all of the old or all of the new. A certificate shows itself when it has to be renewed.


ROTATED: Final = f"{RESERVED_PREFIX}rotated"
"""The annotation of the object with the time of the last rotation. Before that, it is as old as the object."""
PREVIOUS: Final = "previous-"


def random_keys(child: Child, one: Object, other: Object) -> frozenset[str]:
    """The keys of a Secret whose values differ between two renders. Raises ChildFails."""
    left, right = _data(one), _data(other)
    keys = frozenset(key for key, value in left.items() if right.get(key) != value)
    if taken := sorted(left.keys() & {PREVIOUS + key for key in keys}):
        raise ChildFails(f"the key {taken[0]} is for the value before the last rotation: choose another", child.site)
    return keys


def is_due(child: Child, rotation: Rotation, live: Object, keys: Collection[str], times: TimeFunctions) -> bool:
    """Whether the values of these keys have to be regenerated. Raises ChildFails."""
    moments = [*_rotations(rotation, live), *_renewals(child, rotation, live, keys)]
    for moment in moments:
        times.changes_at(moment, f"the next rotation of {child.id} is due")
    return any(moment <= times.now for moment in moments)


def _rotations(rotation: Rotation, live: Object) -> Iterator[float]:
    if rotation.every is None:
        return
    times: list[Any] = [annotations_of(live).get(ROTATED), live["metadata"].get("creationTimestamp")]
    for text in times:
        try:
            yield parse_time(text) + rotation.every
        except (TypeError, ValueError, OverflowError):
            continue
        return


def _renewals(child: Child, rotation: Rotation, live: Object, keys: Collection[str]) -> Iterator[float]:
    if rotation.before_end is None:
        return
    data = _data(live)
    for key in sorted(keys):
        if (found := validity(_decoded(data.get(key)))) is None:
            continue
        begin, end = found
        if end - begin <= rotation.before_end:
            message = f"the certificate in {key} is valid for a shorter time than renewBefore: renew it later"
            raise ChildFails(message, child.site, reason="ApplyFailed")
        yield end - rotation.before_end


def rotated(obj: Object, rendered: Object, keys: Collection[str], now: str) -> dict[str, Any]:
    """The object with the rendered values of these keys, and its own under `previous-` keys."""
    data, new = _data(obj), _data(rendered)
    old = {PREVIOUS + key: data[key] for key in keys if key in data}
    metadata = {**obj["metadata"], "annotations": {**annotations_of(obj), ROTATED: now}}
    return {**obj, "metadata": metadata, "data": {**data, **old, **{key: new[key] for key in sorted(keys)}}}


def _data(secret: Object) -> dict[str, Any]:
    found = encode_string_data(secret) if "stringData" in secret else secret
    data = found.get("data")
    return data if isinstance(data, dict) else {}


def _decoded(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 2 * MAX_PEM:
        return ""
    try:
        return base64.b64decode(value).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""
