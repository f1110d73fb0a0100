"""Errors of fields as the API server writes them, and the forms of texts that many fields have: names, labels, ports,
addresses."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ruleop.kubernetes.labels import NOT_SUBDOMAIN, key_problems, label_value_problems
from ruleop.kubernetes.names import LABEL, SUBDOMAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class FieldError(NamedTuple):
    """One reason of an error, with the field that it concerns."""

    reason: str
    message: str
    field: str = ""

    def document(self) -> dict[str, Any]:
        found = {"reason": self.reason, "message": self.message}
        return {**found, "field": self.field} if self.field else found

    def below(self, step: str) -> FieldError:
        """The error of a part of a value as one of the whole: `step` is the name of a field, or an index."""
        field = self.field
        dot = "." if field and step and not field.startswith("[") else ""
        return FieldError(self.reason, self.message, f"{step}{dot}{field}")


def _shown(value: object) -> str:
    return orjson.dumps(value).decode()


def unsupported(field: str, value: object, supported: Iterable[str]) -> FieldError:
    """A value that is not in an enumeration."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return FieldError(
        "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {listed}", field
    )


def invalid_value(field: str, value: object, problem: str = "") -> FieldError:
    found = f"Invalid value: {_shown(value)}"
    return FieldError("FieldValueInvalid", f"{found}: {problem}" if problem else found, field)


def invalid_values(field: str, value: object, problems: Iterable[str]) -> Iterator[FieldError]:
    """One error for each problem of a value."""
    return (invalid_value(field, value, problem) for problem in problems)


def immutable_value(field: str, value: object) -> FieldError:
    return invalid_value(field, value, "field is immutable")


def required(field: str, problem: str = "") -> FieldError:
    return FieldError("FieldValueRequired", f"Required value: {problem}" if problem else "Required value", field)


def duplicate(field: str, value: object) -> FieldError:
    return FieldError("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def not_found(field: str, value: object) -> FieldError:
    return FieldError("FieldValueNotFound", f"Not found: {_shown(value)}", field)


def too_long(field: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def forbidden_value(field: str, problem: str) -> FieldError:
    return FieldError("FieldValueForbidden", f"Forbidden: {problem}", field)


# -- names, labels, ports --------------------------------------------------------------------------------------------


LARGEST_ANNOTATIONS: Final = 256 * 1024


def form(*rows: tuple[str, str]) -> Callable[[str], tuple[str, ...]]:
    """The reasons for which a text is not of a form: the words for each pattern that it does not match."""
    tests = [(re.compile(pattern, re.DOTALL).fullmatch, words) for pattern, words in rows]

    @lru_cache(maxsize=1024)
    def problems(text: str) -> tuple[str, ...]:
        return tuple(words for matches, words in tests if not matches(text))

    return problems


def _at_most(length: int) -> tuple[str, str]:
    return f".{{,{length}}}", f"must be no more than {length} characters"


_NOT_LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NOT_LETTER_LABEL: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NOT_CONFIG_KEY: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_NOT_WILDCARD: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_simple_label_problems: Final = form(_at_most(63), (LABEL, _NOT_LABEL))
letter_label_problems: Final = form(_at_most(63), (f"(?=[a-z]){LABEL}", _NOT_LETTER_LABEL))
subdomain_problems: Final = form(_at_most(253), (SUBDOMAIN, NOT_SUBDOMAIN))
_starred_problems: Final = form((rf"\*\.{SUBDOMAIN}", _NOT_WILDCARD))
port_name_problems: Final = form(
    _at_most(15),
    ("[-a-z0-9]*", "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
    (".*[a-z].*", "must contain at least one letter (a-z)"),
    ("(?!.*--).*", "must not contain consecutive hyphens"),
    (r"(?!-|.*-\Z).*", "must not begin or end with a hyphen"),
)
path_segment_problems: Final = form(
    (r"(?!\.\Z).*", "may not be '.'"),
    (r"(?!\.\.\Z).*", "may not be '..'"),
    ("[^/]*", "may not contain '/'"),
    ("[^%]*", "may not contain '%'"),
)
config_key_problems: Final = form(
    _at_most(253),
    ("[-._a-zA-Z0-9]+", _NOT_CONFIG_KEY),
    (r"(?!\.\Z).*", "must not be '.'"),
    (r"(?!\.\.\Z).*", "must not be '..'"),
    (r"(?!\.\..).*", "must not start with '..'"),
)
"""Of the key of an entry of a ConfigMap or a Secret."""


def label_problems(name: str) -> tuple[str, ...]:
    """Of a label: the name of a container, a Namespace, a Service."""
    is_subdomain = "." in name and not subdomain_problems(name)
    return ("must not contain dots",) if is_subdomain else _simple_label_problems(name)


def kind_problems(kind: str) -> list[str]:
    problems = letter_label_problems(kind.lower())
    return [f"may have mixed case, but should otherwise match: {each}" for each in problems]


def wildcard_problems(name: str) -> tuple[str, ...]:
    """Of a subdomain, or of one behind `*.`."""
    return _starred_problems(name) if "*" in name else subdomain_problems(name)


def validate_labels(labels: Mapping[str, str], field: str = "metadata.labels") -> Iterator[FieldError]:
    for key, value in labels.items():
        for text, problems in ((key, key_problems(key)), (value, label_value_problems(value))):
            if problems:
                yield from invalid_values(field, text, problems)


def validate_annotations(annotations: Mapping[str, str], field: str = "metadata.annotations") -> Iterator[FieldError]:
    for key in annotations:
        yield from invalid_values(field, key, key_problems(key.lower(), "a valid label key"))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > LARGEST_ANNOTATIONS:
        yield too_long(field, LARGEST_ANNOTATIONS)


# -- IP addresses and CIDR values ------------------------------------------------------------------------------------


_LENGTH: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_OWN_NETWORKS: Final = tuple(
    ip_network(each)
    for each in (
        *("0.0.0.0/32", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/24"),
        *("::/128", "::1/128", "fe80::/10", "ff02::/16"),
    )
)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, which is not one of IPv4 in the form of IPv6."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return None if "%" in text or (isinstance(found, IPv6Address) and found.ipv4_mapped is not None) else found


def parse_network(text: str) -> IPv4Network | IPv6Network | None:
    """The network of a CIDR value, whose address may be any in it."""
    address, _, length = text.partition("/")
    if parse_address(address) is None or not _LENGTH.fullmatch(length):
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def address_problems(text: str) -> Iterator[str]:
    if parse_address(text) is None:
        yield "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def external_address_problems(text: str) -> Iterator[str]:
    """The address of another machine is not one of the machine itself or of its link."""
    yield from address_problems(text)
    if (parsed := parse_address(text)) is not None and any(parsed in each for each in _OWN_NETWORKS):
        yield "may not be unspecified, or in a loopback or link-local range"


def network_problems(text: str) -> Iterator[str]:
    if (parsed := parse_network(text)) is None:
        yield "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    elif parse_address(text.partition("/")[0]) != parsed.network_address:
        yield "must not have bits set beyond the prefix length"
