"""Kubernetes' own libraries of functions: patterns, sets, addresses, URLs, versions and named formats
(apiserver/pkg/cel/library).

Where it is uncertain how a parser of Go decides (a URL with escapes, an address with a zone), the verdict is left open.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.kubernetes.cel.parser import EvaluationError, NotEvaluatedError
from ruleop.kubernetes.cel.values import Budget, ListValue, MapValue, Opaque, OptionalValue, UnreadValue, Value, equal
from ruleop.kubernetes.names import is_label, is_label_key, is_label_value, is_letter_label, is_subdomain
from ruleop.kubernetes.schema import FORMATS, find_spans
from ruleop.patterns import InvalidPatternError
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


def reads(parse: Callable[..., Value]) -> Callable[..., bool]:
    """Whether a text can be converted."""

    def call(*arguments: Any) -> bool:
        try:
            parse(*arguments)
        except EvaluationError:
            return False
        return True

    return call


# -- patterns --------------------------------------------------------------------------------------------------------


def find_all(budget: Budget, text: str, pattern: str, limit: int = -1) -> Value:
    """The matches, as Go finds them: without empty ones right behind another."""
    budget.charge((len(text) // 10 + 1) * (len(pattern) // 4 + 1))
    try:
        spans = find_spans(pattern, text)
    except InvalidPatternError as error:
        raise NotEvaluatedError(f"{pattern[:50]!r} is not a regular expression of RE2") from error
    found: list[str] = []
    end = -1
    for start, stop in spans:
        if len(found) == limit:
            break
        if stop > start or start != end:
            found.append(text[start:stop])
        end = stop
    return ListValue(found)


def find(budget: Budget, text: str, pattern: str) -> Value:
    found = find_all(budget, text, pattern, 1)
    assert isinstance(found, ListValue)
    return next(iter(found), "")


# -- sets ------------------------------------------------------------------------------------------------------------


def contains_all(budget: Budget, items: ListValue, sought: ListValue) -> bool:
    held = list(items)
    return all(any(equal(one, other, budget) for one in held) for other in sought)


def is_equivalent(budget: Budget, one: ListValue, other: ListValue) -> bool:
    return contains_all(budget, one, other) and contains_all(budget, other, one)


def intersects(budget: Budget, one: ListValue, other: ListValue) -> bool:
    held = list(one)
    return any(any(equal(each, sought, budget) for each in held) for sought in other)


# -- addresses -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    kind = "ip"

    address: Address

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """A network, with the address that was written."""

    kind = "cidr"

    address: Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def masked(self) -> Cidr:
        hidden = self.address.max_prefixlen - self.bits
        return Cidr(type(self.address)(int(self.address) >> hidden << hidden), self.bits)


def parse_ip(text: str) -> Ip:
    if len(text) > 60:
        raise EvaluationError("IP address is too long")
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(f"IP Address {text!r} parse error during conversion from string") from None
    if "%" in text:
        raise EvaluationError(f"IP address {text!r} with zone value is not allowed")
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return Ip(found)


def parse_cidr(text: str) -> Cidr:
    at, slash, bits = text.rpartition("/")
    if not slash or not re.fullmatch(r"0|[1-9][0-9]{0,2}", bits, re.ASCII):
        raise EvaluationError(f"network address parse error during conversion from string: {text[:50]!r}")
    address = parse_ip(at).address
    if int(bits) > address.max_prefixlen:
        raise EvaluationError("network address parse error during conversion from string: prefix length out of range")
    return Cidr(address, int(bits))


def contains_ip(network: Cidr, sought: Ip | str) -> bool:
    address = (parse_ip(sought) if isinstance(sought, str) else sought).address
    return type(address) is type(network.address) and Cidr(address, network.bits).masked == network.masked


def contains_cidr(network: Cidr, sought: Cidr | str) -> bool:
    other = parse_cidr(sought) if isinstance(sought, str) else sought
    return network.bits <= other.bits and contains_ip(network, Ip(other.address))


def is_link_local_multicast(ip: Ip) -> bool:
    value = int(ip.address)
    return value >> 8 == 0xE00000 if ip.address.version == 4 else value >> 112 & 0xFF0F == 0xFF02


def is_global_unicast(ip: Ip) -> bool:
    """Go's notion: private addresses are."""
    at = ip.address
    others = at.is_unspecified or at.is_loopback or at.is_multicast or at.is_link_local
    return not others and not (at.version == 4 and int(at) == 2**32 - 1)


# -- URLs ------------------------------------------------------------------------------------------------------------

_PLAIN_URL: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[A-Za-z0-9._~-]*(?::[0-9]*)?))?)?"
    r"(?P<path>(?:/[A-Za-z0-9._~/:@&=+$,;-]*)?)(?:\?(?P<query>[A-Za-z0-9._~/:@&=+$,-]*))?",
    re.ASCII,
)
_NEVER_URL: Final = re.compile(r"(?![A-Za-z][A-Za-z0-9+.-]*:|/)[A-Za-z0-9._~/?&=,@+-]*", re.ASCII)
"""Neither a scheme nor a path from the root."""
_WRONG_PORT: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._~-]*:[0-9]*[A-Za-z._~-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    kind = "url"

    scheme: str
    host: str
    path: str
    query: str

    @property
    def hostname(self) -> str:
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        return self.host.partition(":")[2]

    @property
    def parameters(self) -> MapValue:
        found: dict[str, ListValue] = {}
        for pair in filter(None, self.query.split("&")):
            name, _, value = pair.partition("=")
            held = found.get(_unplussed(name), ListValue(()))
            found[_unplussed(name)] = ListValue((*held.elements, _unplussed(value)))
        return MapValue(found, None)


def _unplussed(text: str) -> str:
    return text.replace("+", " ")


def parse_url(text: str) -> Url:
    if _NEVER_URL.fullmatch(text):
        raise EvaluationError(f"URL parse error during conversion from string: {text[:50]!r}: invalid URI for request")
    if _WRONG_PORT.match(text):
        raise EvaluationError(f"URL parse error during conversion from string: {text[:50]!r}: invalid port")
    match = _PLAIN_URL.fullmatch(text)
    if match is None or (match["scheme"] and match["host"] is None):
        raise NotEvaluatedError(f"{text[:50]!r} is a URL in a rare form")
    return Url((match["scheme"] or "").lower(), match["host"] or "", match["path"], match["query"] or "")


# -- versions --------------------------------------------------------------------------------------------------------

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_SEMVER: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-((?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    """A semantic version. What is built of it does not count."""

    kind = "semver"

    numbers: tuple[int, int, int]
    pre: tuple[str, ...]

    @property
    def rank(self) -> tuple[Any, ...]:
        """Numbers come before words, and a release after all that precede it."""
        parts = [(0, int(each), "") if each.isdigit() else (1, 0, each) for each in self.pre]
        return (*self.numbers, not self.pre, *parts)


def parse_semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    match = _SEMVER.fullmatch(text)
    pre = tuple(match[4].split(".")) if match is not None and match[4] else ()
    if match is None or not all(map(_fits, (match[1], match[2], match[3], *pre))):
        raise EvaluationError(f"Semver parse error during conversion from string: {text[:50]!r}")
    return Semver((int(match[1]), int(match[2]), int(match[3])), pre)


def _fits(part: str) -> bool:
    """Whether it fits in an unsigned integer, if it is a number."""
    return not part.isdigit() or (len(part) <= len(str(2**64)) and int(part) < 2**64)


def _normalized(text: str) -> str:
    """Without a v, and with three numbers, none of which has zeros before it."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            parts[index] = rest if rest[:1].isdigit() else f"0{rest}"
    if len(parts) < 3 and set("+-") & set(parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def compare_semver(one: Semver, other: Semver) -> int:
    return (one.rank > other.rank) - (one.rank < other.rank)


# -- formats ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    kind = "format"

    name: str


def _as_prefix(holds: Callable[[str], bool]) -> Callable[[str], bool]:
    """A beginning of a name may end with a hyphen, which counts with the letter before it as one letter."""
    return lambda text: holds(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


NAMED_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "dns1123Label": is_label,
    "dns1123Subdomain": is_subdomain,
    "dns1035Label": is_letter_label,
    "qualifiedName": is_label_key,
    "dns1123LabelPrefix": _as_prefix(is_label),
    "dns1123SubdomainPrefix": _as_prefix(is_subdomain),
    "dns1035LabelPrefix": _as_prefix(is_letter_label),
    "labelValue": is_label_value,
    "uri": reads(parse_url),
    **{name: FORMATS[name] for name in ("uuid", "byte", "date", "datetime")},
}


def named_format(name: str) -> Value:
    return OptionalValue((Format(name),) if name in NAMED_FORMATS else ())


def validate(form: Format, text: str) -> Value:
    """Nothing, or the reasons why it is none, which are open: their words are the server's own."""
    return OptionalValue(() if NAMED_FORMATS[form.name](text) else (UnreadValue(form.name, "list"),))
