"""Names of many kinds: labels, subdomains, keys and values of labels, names of ports."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.names import LABEL, QUALIFIED, SUBDOMAIN
from ruleop.kubernetes.validation.field_errors import invalid_values, too_long

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.validation.field_errors import FieldError

_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_LABEL: Final = re.compile(LABEL)
_LETTER_LABEL: Final = re.compile(f"(?=[a-z]){LABEL}")
_QUALIFIED: Final = re.compile(QUALIFIED)
_PORT_NAME: Final = re.compile(r"[-a-z0-9]*")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
LONGEST_PORT_NAME: Final = 15
LARGEST_ANNOTATIONS: Final = 256 * 1024

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
_NOT_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NOT_KEY_NAME: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_NOT_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
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


@lru_cache(maxsize=1024)
def label_problems(name: str) -> tuple[str, ...]:
    """The reasons for which a text is not a label: the name of a container, a Namespace, a Service."""
    if "." in name and _SUBDOMAIN.fullmatch(name):
        return ("must not contain dots",)
    return tuple(_problems(name, _LABEL, 63, _NOT_LABEL))


def letter_label_problems(name: str) -> Iterator[str]:
    """The reasons for which a text is not a label that begins with a letter: a plural, a version."""
    return _problems(name, _LETTER_LABEL, 63, _NOT_LETTER_LABEL)


def kind_problems(kind: str) -> Iterator[str]:
    problems = letter_label_problems(kind.lower())
    return (f"may have mixed case, but should otherwise match: {each}" for each in problems)


@lru_cache(maxsize=1024)
def subdomain_problems(name: str) -> tuple[str, ...]:
    """The reasons for which a text is not a subdomain: the name of most objects."""
    return tuple(_problems(name, _SUBDOMAIN, 253, _NOT_SUBDOMAIN))


def wildcard_problems(name: str) -> Iterator[str]:
    """The reasons for which a text is neither a subdomain nor one behind `*.`."""
    if "*" not in name:
        yield from subdomain_problems(name)
    elif not name.startswith("*.") or not _SUBDOMAIN.fullmatch(name[2:]):
        yield _NOT_WILDCARD


def _problems(name: str, pattern: re.Pattern[str], limit: int, problem: str) -> Iterator[str]:
    if len(name) > limit:
        yield f"must be no more than {limit} characters"
    if not pattern.fullmatch(name):
        yield problem


@lru_cache(maxsize=1024)
def port_name_problems(name: str) -> tuple[str, ...]:
    return tuple(_port_name_problems(name))


def _port_name_problems(name: str) -> Iterator[str]:
    if len(name) > LONGEST_PORT_NAME:
        yield f"must be no more than {LONGEST_PORT_NAME} characters"
    if not _PORT_NAME.fullmatch(name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def path_segment_problems(name: str) -> Iterator[str]:
    if name in (".", ".."):
        yield f"may not be '{name}'"
    for letter in "/%":
        if letter in name:
            yield f"may not contain '{letter}'"


def validate_labels(labels: Mapping[str, str], field: str = "metadata.labels") -> Iterator[FieldError]:
    for key, value in labels.items():
        for text, problems in ((key, key_problems(key)), (value, label_value_problems(value))):
            if problems:
                yield from invalid_values(field, text, problems)


@lru_cache(maxsize=1024)
def label_value_problems(value: str) -> tuple[str, ...]:
    is_short, is_valid = len(value) <= 63, not value or _QUALIFIED.fullmatch(value)
    return (*(() if is_short else ("must be no more than 63 bytes",)), *(() if is_valid else (_NOT_VALUE,)))


def validate_annotations(annotations: Mapping[str, str], field: str = "metadata.annotations") -> Iterator[FieldError]:
    for key in annotations:
        yield from invalid_values(field, key, key_problems(key.lower(), "a valid label key"))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > LARGEST_ANNOTATIONS:
        yield too_long(field, LARGEST_ANNOTATIONS)


def config_key_problems(key: str) -> Iterator[str]:
    """The reasons for which a text is not the key of an entry of a ConfigMap or a Secret."""
    if len(key) > 253:
        yield "must be no more than 253 characters"
    if not _CONFIG_KEY.fullmatch(key):
        yield _NOT_CONFIG_KEY
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


@lru_cache(maxsize=1024)
def key_problems(key: str, what: str = "a qualified name") -> tuple[str, ...]:
    """The reasons for which a text is not a qualified name: the key of a label, an annotation, a finalizer."""
    return tuple(_key_problems(key, what))


def _key_problems(key: str, what: str) -> Iterator[str]:
    parts = key.split("/")
    if len(parts) > 2:
        yield (
            f"{what} must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
        return
    if len(parts) == 2:
        if not parts[0]:
            yield "prefix part must be non-empty"
        elif not _SUBDOMAIN.fullmatch(parts[0]):
            yield f"prefix part {_NOT_SUBDOMAIN}"
    if not parts[-1]:
        yield "name part must be non-empty"
    elif len(parts[-1]) > 63:
        yield "name part must be no more than 63 bytes"
    if not _QUALIFIED.fullmatch(parts[-1]):
        yield _NOT_KEY_NAME
