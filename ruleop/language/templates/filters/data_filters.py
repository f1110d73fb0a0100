"""Filters that merge, dump, parse, encode and hash data, and make names of it; those of IP addresses and networks,
which the standard library reads."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Final, Self, TypeAlias

import orjson

from ruleop.kubernetes.kinds import SERVER_METADATA
from ruleop.kubernetes.names import MAX_LABEL, RESERVED_PREFIX, is_label
from ruleop.kubernetes.quantity import SUFFIXES, parse_quantity
from ruleop.language.templates.declarations import Filters, Trait
from ruleop.language.templates.filters.list_filters import identity
from ruleop.language.templates.values.cost import WRITTEN_BYTES, check_items
from ruleop.language.templates.values.data import float_text, is_list, json_number, plain, scalar_text
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.text import Dump, Text
from ruleop.language.templates.yaml_writer import yaml_text

# -- exact numbers -----------------------------------------------------------------------------------------------------
#
# Numbers on which the arithmetic of a template is exact: what the filter `quantity` returns.
#
# `'500m' | quantity` is one half and `'1Gi' | quantity` is 1073741824.


class Exact(Fraction):
    """A fraction that stays exact in arithmetic. A float counts as it is written: `0.1` is one tenth."""

    def __new__(cls, value: Any, denominator: int | None = None) -> Self:
        if isinstance(value, float):
            value = float_text(value)
        return super().__new__(cls, value, denominator)

    def as_json(self) -> int | float:
        return json_number(int(self) if self.denominator == 1 else float(self))

    def as_text(self) -> str:
        return str(self.as_json()) if self.denominator == 1 else float_text(float(self))

    __str__ = as_text
    __hash__ = Fraction.__hash__

    def __eq__(self, other: object) -> bool:
        return Fraction.__eq__(self, Exact(other) if isinstance(other, float) else other)

    def __rpow__(self, other: Any) -> Any:
        return Exact(other) ** self


def _exact_operator(name: str) -> Any:
    operation = getattr(Fraction, name)

    def operate(self: Exact, *others: Any) -> Any:
        if any(isinstance(other, bool) or not isinstance(other, (int, float, Fraction)) for other in others):
            return NotImplemented
        result = operation(self, *map(Exact, others))
        return Exact(result) if isinstance(result, (int, float, Fraction)) else result

    return operate


_OPERATORS = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow neg pos abs"
for _name in _OPERATORS.split():
    setattr(Exact, f"__{_name}__", _exact_operator(f"__{_name}__"))


# -- data filters ------------------------------------------------------------------------------------------------------

FILTERS: Final = Filters()


@FILTERS.declare("combine", "mapping or list", "mapping", example=("{'a': 1} | combine({'b': 2})", "{a: 1, b: 2}"))
def combine(value: Any, *others: Any, recursive: bool = True, list_merge: str = "replace") -> dict[str, Any]:
    """The mappings merged into one. The later of two values wins; nested mappings are merged too unless `recursive` is
    false."""
    # Ansible's default is false, by which a merge of labels or resources loses some.
    if list_merge not in _LIST_MERGES:
        raise Fault("combine: list_merge must be replace, keep, append, prepend, append_rp or prepend_rp")
    result: dict[str, Any] = {}
    for given in map(plain, (value, *others)):
        for each in given if isinstance(given, list) else [given]:
            result = _combined(result, each, bool(recursive), _LIST_MERGES[list_merge])
    return result


def _combined(
    one: Any, two: Any, recursive: bool, lists: Callable[[list[Any], list[Any]], list[Any]]
) -> dict[str, Any]:
    if not isinstance(one, dict) or not isinstance(two, dict):
        raise Fault("combine takes mappings")
    result = dict(one)
    for key, value in two.items():
        existing = result.get(key)
        if recursive and isinstance(existing, dict) and isinstance(value, dict):
            result[key] = _combined(existing, value, recursive, lists)
        elif isinstance(existing, list) and isinstance(value, list):
            check_items(len(existing) + len(value))
            result[key] = lists(existing, value)
        else:
            result[key] = value
    return result


def _without(items: list[Any], others: list[Any]) -> list[Any]:
    removed = set(map(identity, others))
    return [item for item in items if identity(item) not in removed]


_LIST_MERGES: dict[str, Callable[[list[Any], list[Any]], list[Any]]] = {
    "replace": lambda _, new: new,
    "keep": lambda old, _: old,
    "append": lambda old, new: old + new,
    "prepend": lambda old, new: new + old,
    "append_rp": lambda old, new: _without(old, new) + new,
    "prepend_rp": lambda old, new: new + _without(old, new),
}
"""Functions that merge two lists, by Ansible's names."""


# -- booleans ----------------------------------------------------------------------------------------------------------

_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "y", "t", "1"), True),
    **dict.fromkeys(("false", "no", "off", "n", "f", "0", ""), False),
}


@FILTERS.declare("bool", "scalar or null", "boolean or null", Trait.SAME_TRUTH, example=("'off' | bool", "false"))
def boolean(value: Any) -> bool | None:
    """`yes`, `on`, `true`, `1` and their opposites as a boolean; null stays null."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    if isinstance(value, (int, float)) and value in {0, 1}:
        return bool(value)
    raise Fault("bool takes true, yes, on, y, t, 1, false, no, off, n, f or 0")


# -- conversions -------------------------------------------------------------------------------------------------------


def json_bytes(data: Any, *, pretty: bool = False, sort: bool = False) -> bytes:
    option = (orjson.OPT_INDENT_2 if pretty else 0) | (orjson.OPT_SORT_KEYS if sort else 0)
    try:
        return orjson.dumps(data, option=option)
    except TypeError as error:  # orjson's only error: nesting, an integer beyond 64 bits, a lone surrogate
        raise Fault(f"this value cannot be written as JSON ({error})") from None


@FILTERS.declare("to_yaml", gives="string", traits=Trait.KEEPS_TEXT, example=("{'a': [1]} | to_yaml", '"a:\\n- 1"'))
def to_yaml(value: Any) -> Dump:
    """The value as YAML."""
    return Dump(plain(value), yaml_text, value_bytes=WRITTEN_BYTES)


@FILTERS.declare(
    "to_nice_yaml",
    gives="string",
    traits=Trait.KEEPS_TEXT,
    example=("{'b': {'a': 1}} | to_nice_yaml", '"b:\\n    a: 1"'),
)
def to_nice_yaml(value: Any, indent: int = 4, sort_keys: bool = True, width: int = 0) -> Dump:  # noqa: ARG001 - Ansible's; lines are never wrapped
    """As `to_yaml`, with sorted keys and 4 columns."""
    columns = int(indent)
    if not 2 <= columns <= 4:
        raise Fault("to_nice_yaml takes an indent from 2 to 4")
    write = partial(yaml_text, indent=columns, sort=bool(sort_keys))
    return Dump(plain(value), write, value_bytes=WRITTEN_BYTES)


@FILTERS.declare(
    "to_json tojson", gives="string", traits=Trait.KEEPS_TEXT, example=("{'a': [1]} | to_json", "'{\"a\":[1]}'")
)
def to_json(value: Any, indent: int | None = None) -> Dump:
    """The value as JSON."""

    def render(data: Any) -> str:
        return json_bytes(data, pretty=bool(indent)).decode()

    return Dump(plain(value), render)


@FILTERS.declare(
    "from_yaml", traits=Trait.KEEPS_TEXT, needs="read_captured", example=("'a: [1]' | from_yaml", "{a: [1]}")
)
def from_yaml(read_captured: Callable[[Any, str], Any], value: Any) -> Any:
    """The data of a text in YAML."""
    return read_captured(value, "from_yaml")


@FILTERS.declare(
    "from_json", traits=Trait.KEEPS_TEXT, needs="read_captured", example=("'{\"a\": 1}' | from_json", "{a: 1}")
)
def from_json(read_captured: Callable[[Any, str], Any], value: Any) -> Any:
    """The data of a text in JSON."""
    if isinstance(value, Text):
        return read_captured(value, "from_json")
    text = scalar_text(value)
    try:
        return plain(orjson.loads(text.encode()))
    except (ValueError, UnicodeError):
        raise Fault("from_json: not JSON") from None


_ENCODINGS: Final = ("utf-8", "latin-1", "utf-16-le", "utf-16-be")


def _encoding(name: Any) -> str:
    found = scalar_text(name).lower()
    if found not in _ENCODINGS:
        raise Fault(f"unknown encoding: use {', '.join(_ENCODINGS[:-1])} or {_ENCODINGS[-1]}")
    return found


@FILTERS.declare("b64encode", "scalar", "string", example=("'a' | b64encode", "YQ=="))
def b64encode(value: Any, encoding: str = "utf-8") -> str:
    """The text in base64. An encoding is `utf-8`, `latin-1` (any bytes, a character each), `utf-16-le` or
    `utf-16-be`."""
    name = _encoding(encoding)
    try:
        data = scalar_text(value).encode(name, "strict" if name == "latin-1" else "surrogatepass")
    except UnicodeError:
        raise Fault("b64encode: latin-1 has only the characters up to U+00FF, one for each byte") from None
    return base64.b64encode(data).decode()


@FILTERS.declare("b64decode", "scalar", "string", example=("'YQ==' | b64decode", "a"))
def b64decode(value: Any, encoding: str = "utf-8") -> str:
    """The inverse of `b64encode`."""
    name = _encoding(encoding)
    try:
        return base64.b64decode(scalar_text(value).encode(), validate=True).decode(name)
    except (binascii.Error, ValueError):
        hint = "; encoding='latin-1' reads any bytes, as one character each" if name == "utf-8" else ""
        raise Fault(f"b64decode: not base64 of {name.upper()} text{hint}") from None


_UNSTABLE_METADATA = SERVER_METADATA | {"ownerReferences"}
_DIGESTS: Final = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


@FILTERS.declare("sha256", gives="string", traits=Trait.CHECKSUM, example=("'a' | sha256(8)", "ca978112"))
def sha256(value: Any, length: int = 64) -> str:
    """The hash of any value, cut to a length; of an object without status and the server's fields."""
    if not 1 <= int(length) <= 64:
        raise Fault("sha256 takes a length from 1 to 64")
    return digest(value, "sha256")[: int(length)]


@FILTERS.declare(
    "sha1", gives="string", traits=Trait.CHECKSUM, example=("'a' | sha1", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8")
)
def sha1(value: Any) -> str:
    """As `hash`."""
    return digest(value)


@FILTERS.declare(
    "hash", gives="string", traits=Trait.CHECKSUM, example=("'a' | hash('md5')", "0cc175b9c0f1b6a831c399e269772661")
)
def digest(value: Any, hashtype: str = "sha1") -> str:
    """As `sha256`, by `md5`, `sha1`, `sha224`, `sha256`, `sha384` or `sha512`."""
    if hashtype not in _DIGESTS:
        raise Fault(f"hash takes {', '.join(_DIGESTS[:-1])} or {_DIGESTS[-1]}")
    data = plain(value)
    if isinstance(data, str):
        content = data.encode("utf-8", "surrogatepass")
    else:
        content = json_bytes(_stable(data), sort=True)
    return hashlib.new(hashtype, content, usedforsecurity=False).hexdigest()


def _stable(data: Any) -> Any:
    """An object without its status and without metadata that the server or ruleop sets."""
    if not (
        isinstance(data, dict) and "apiVersion" in data and "kind" in data and isinstance(data.get("metadata"), dict)
    ):
        return data
    metadata: dict[str, Any] = {key: value for key, value in data["metadata"].items() if key not in _UNSTABLE_METADATA}
    for marks in ("labels", "annotations"):
        if isinstance(metadata.get(marks), dict):
            metadata[marks] = {
                key: value for key, value in metadata[marks].items() if not key.startswith(RESERVED_PREFIX)
            }
            if not metadata[marks]:
                del metadata[marks]
    return {**{key: value for key, value in data.items() if key != "status"}, "metadata": metadata}


_PART = re.compile(r"[a-z0-9]+\Z")
_HASHED = re.compile(r".*-h[a-z2-7]{13}\Z", re.DOTALL)


@FILTERS.declare("dns_label", "scalar", "string", example=("metadata.name | dns_label('db', 0)", "shop-db-0"))
def dns_label(value: Any, *others: Any) -> str:
    """The parts joined by `-`, as a valid name of at most 63 characters. Where the name would be ambiguous (because of
    upper case, dots, length, or dashes in the parts) a hash of the parts is appended, so that two inputs with the same
    number of parts never have the same name."""
    parts = [scalar_text(part) for part in (value, *others)]
    joined = "-".join(parts)
    exact = is_label(joined) and is_label(parts[0]) and all(map(_PART.match, parts[1:])) and not _HASHED.match(joined)
    if exact:
        return joined
    digest = hashlib.sha256(json_bytes([part.encode("utf-8", "surrogatepass").hex() for part in parts])).digest()
    tail = "h" + base64.b32encode(digest).decode().lower()[:13]
    head = re.sub(r"[^a-z0-9]+", "-", joined[:256].lower()).strip("-")[: MAX_LABEL - len(tail) - 1].strip("-")
    return f"{head}-{tail}" if head else tail


@FILTERS.declare("quantity", "string or number", "number", example=("'1Gi' | quantity('Mi')", "1024"))
def quantity(value: Any, unit: str | None = None) -> Exact | int:
    """`500m` and `2Gi` as exact numbers; in whole units, if a unit is given."""
    amount = parse_quantity(value) if isinstance(value, str) else value
    if amount is None or isinstance(amount, bool) or not isinstance(amount, (int, float, Fraction)):
        raise Fault("not a quantity: use a number or text such as 500m, 1.5 or 2Gi")
    if unit is None:
        return Exact(amount)
    if unit not in SUFFIXES:
        raise Fault(f"unknown unit of a quantity; use one of {', '.join(filter(None, SUFFIXES))}")
    return int(Exact(amount) / SUFFIXES[unit] // 1)


@FILTERS.declare("condition", "mapping", "string", example=("{} | condition('Ready')", "Unknown"))
def condition(value: Any, name: str) -> str:
    """The status of an object's condition; Unknown if it has no such condition."""
    data = plain(value)
    if not isinstance(data, Mapping):
        raise Fault("condition takes an object")
    status = data.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for entry in conditions if isinstance(conditions, list) else ():
        if isinstance(entry, Mapping) and entry.get("type") == name:
            return str(entry.get("status", "Unknown"))
    return "Unknown"


_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_LONGEST: Final = 80  # characters of an address with a netmask
_PARTS: Final = {
    "network": "network_address",
    "prefix": "prefixlen",
    "netmask": "netmask",
    "broadcast": "broadcast_address",
    "size": "num_addresses",
    "version": "version",
}
"""The attributes of a network, by Ansible's names."""


def _network(name: str, value: Any) -> _Network:
    text = scalar_text(value)
    try:
        if len(text) <= _LONGEST and "%" not in text:
            return ipaddress.ip_network(text, strict=False)
    except ValueError:
        pass
    raise Fault(f"{name}: not an IP address or network, such as 10.0.0.1, 10.0.0.0/16 or fd00::/48")


@FILTERS.declare("ip_network", "string", "string or integer", example=("'10.0.0.5/24' | ip_network", "10.0.0.0/24"))
def ip_network(value: Any, part: str | None = None) -> str | int:
    """The network of an address, or a part of it: `network`, `prefix`, `netmask`, `broadcast`, `size` or `version`."""
    network = _network("ip_network", value)
    if part is None:
        return str(network)
    if part not in _PARTS:
        raise Fault(f"ip_network has no such part; use one of {', '.join(_PARTS)}")
    found = getattr(network, _PARTS[part])
    return found if isinstance(found, int) else str(found)


@FILTERS.declare("host", "string", "string", example=("'10.0.0.0/24' | host(1)", "10.0.0.1"))
def host(value: Any, number: int) -> str:
    """The address with this number in the network, from 0; a negative number counts from its end."""
    network = _network("host", value)
    try:
        return str(network[int(number)])
    except IndexError:
        raise Fault("host: the network has fewer addresses") from None


@FILTERS.declare("ip_in", "string", "boolean", example=("'10.0.0.5' | ip_in('10.0.0.0/8')", "true"))
def ip_in(value: Any, network: Any, *more: Any) -> bool:
    """Whether the address or network is inside of one of the networks."""
    inner = _network("ip_in", value)
    for each in (network, *more):
        for outer in each if is_list(each) else [each]:
            found = _network("ip_in", outer)
            if isinstance(found, ipaddress.IPv4Network):
                if isinstance(inner, ipaddress.IPv4Network) and inner.subnet_of(found):
                    return True
            elif isinstance(inner, ipaddress.IPv6Network) and inner.subnet_of(found):
                return True
    return False


def is_address(value: Any, version: int | None = None) -> bool:
    """Whether this is the text of an address, without a prefix; if given, of this version of IP."""
    if not isinstance(value, str) or len(value) > _LONGEST or "%" in value:
        return False
    try:
        return version in {None, ipaddress.ip_address(str(value)).version}
    except ValueError:
        return False
