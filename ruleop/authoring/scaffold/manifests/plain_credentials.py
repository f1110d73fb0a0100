"""Credentials in plain text: by the name that a text has, by its form, and by its origin in a Secret.

No reader of a CRD, an example or a template may find one. When in doubt, a value is a credential: a mistake costs its
user one line of a Secret, and the output lists it.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import field
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.naming import words
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_SECRET: Final = frozenset(
    {
        *("password", "passwd", "pwd", "pass", "passphrase", "secret", "secrets", "token", "credential", "credentials"),
        *("requirepass", "masterauth", "masterpass", "pgpass", "passwords", "tokens"),
        *("dsn", "auth", "authorization", "cert", "certificate", "private", "pat", "otp", "salt"),
    }
)
_SECRET_ENDS: Final = ("password", "passwd", "passphrase", "secret", "token", "apikey", "secretkey", "privatekey")
_PASSWORDS: Final = ("password", "passwd", "passphrase", "pass", "pwd")
_HARMLESS_ENDS: Final = frozenset(
    {
        *("file", "files", "path", "dir", "directory", "folder", "location", "name", "names", "ref", "field", "prefix"),
        *("count", "size", "length", "len", "limit", "min", "max", "rounds", "cost", "iterations", "version", "format"),
        *("ttl", "expiry", "expires", "expiration", "expire", "timeout", "age", "interval", "lifetime", "duration"),
        *("validity", "seconds", "minutes", "hours", "days", "ms", "rotation", "enabled", "enable", "disabled"),
        *("required", "type", "kind", "algorithm", "alg", "policy", "method", "mode", "scheme", "encoding", "provider"),
        *("backend", "plugin", "class", "url", "uri", "endpoint", "host", "hostname", "server", "port", "domain"),
        *("realm", "scope", "scopes", "issuer", "audience", "header", "headers", "user", "username", "email"),
        *("namespace", "namespaces", "selector"),
    }
)
"""Endings of names that are about a credential and do not hold one: `PASSWORD_FILE`, `token-ttl`."""
_PLAIN_KEYS: Final = frozenset(
    {"public", "primary", "foreign", "sort", "partition", "routing", "cache", "group", "map"}
)
_BEFORE_PASS: Final = frozenset({"proxy", "fastcgi", "uwsgi", "scgi", "grpc", "memcached", "by", "com"})
"""Words before `pass` where it is not a password: directives of nginx."""

_PLAIN: Final = re.compile(r"(?i)|true|false|yes|no|on|off|null|none|nil|0|1|change-?me|\**|x{3,}|<[^<>]*>")
_REFERENCE: Final = re.compile(
    r"\$\(\w+\)|\$\{[^{}:]+\}|\$[A-Z_][A-Z0-9_]*|\$\(\w+ .*|\$\(\w+|`.*`|\{\{.*\}\}|%\([A-Za-z_]+\)s|%[A-Z_]+%",
    re.DOTALL,
)
_FILE: Final = re.compile(r"(?:file:/|\.{0,2})/[\w.-]+(?:/[\w.-]+)+|/[\w-]+\.[a-z]{2,5}")

_SEGMENT: Final = re.compile(r"[A-Za-z0-9]+")
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
_RUN: Final = re.compile(r"[A-Za-z0-9+/_.~-]{15,}={0,2}")
_WORDS_AND_NUMBER: Final = re.compile(
    r"(?!.*(?i:[bcdfghjklmnpqrstvwxz]{6}))((?:[A-Z]?[a-z]{2,}|[A-Z]{2,}(?=[A-Z][a-z]|\d|$))*[A-Za-z]{0,2})\d{0,4}|k8s|\d+"
)
"""Words in camel case, without six consonants in a row, and a small number."""
_SHORTEST: Final = 12  # letters and digits that are no words

_FORMS: Final = (
    ("TOKEN", re.compile(r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")),
    ("PRIVATE_KEY", re.compile(r"-----BEGIN [^-\n]+-----.*?(?:-----END [^-\n]+-----|\Z)", re.DOTALL)),
    ("JWT", re.compile(r"eyJ[\w-]{6,}(?:\.[\w=-]*)*")),
    (
        "TOKEN",
        re.compile(
            r"\b(?:gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|[rsp]k_(?:live|test)_|sk-|npm_|pypi-|hf_|shpat_|dop_v1_"
            r"|AKIA|ASIA|AIza|ya29\.|SG\.|hv[bs]\.)[\w.-]{6,}"
        ),
    ),
    ("PASSWORD_HASH", re.compile(r"\$(?:apr1|2[abxy]|[156y]|argon2\w*)\$\S+|\{S?SHA\w*\}\S+")),
)
_USERINFO: Final = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*)://(?P<user>[^\s/\"'<>:@]*)(?P<password>:?[^\s/\"'<>]*)@")
_LOOSE_USERINFO: Final = re.compile(
    r"[A-Za-z][\w+.-]*://[^\s/\"'<>:@]*:(?!\d+(?:[/,\s]|$))(?P<value>[^\s\"'<>]*)@(?=[\w\[$({])"
)
"""A password with a slash in it, which most programs accept although URLs do not."""
_HEADER: Final = re.compile(r"(?i)\b(?:bearer|basic)\s+(?P<value>(?=\S*\d|\S{16})[\w.+/=~-]{6,})")
_DEFAULT: Final = re.compile(r"\$\{(?P<key>\w+):?[-=](?P<value>[^{}]+)\}")
_ELEMENT: Final = re.compile(r"<(?P<key>[\w.-]+)>(?P<value>[^<]+)</")
_OPTIONS: Final = (
    re.compile(r"(?:^|\s)(?:-u|--user)[\s=]*[\"']?[^\s:\"'/]+:(?P<value>(?!\d+\b)[^\s\"']+)"),
    re.compile(r"\b(?:redis|valkey)-[a-z]+\b.*?\s-a[\s=]*[\"']?(?P<value>[^\s\"']+)"),
    re.compile(r"\b(?:mysql\w*|mariadb[\w-]*|sshpass)\b.*?\s-p\s?[\"']?(?P<value>[^\s\"'-][^\s\"']*)"),
)
"""Options of programs that take a password, which their names do not show."""
_KEY: Final = re.compile(
    r"(?<![\w$.])(?<!\$\{)(?P<flag>-{0,2})(?P<key>[A-Za-z_][\w.-]*)[\"']?(?P<sign>[ \t]*(?:=>|:=|[=:])[ \t]*|[ \t]+)"
)
_LINE_START: Final = re.compile(r"[\s{,\"'-]*(?:(?:export|set|ENV|const|let|var)\s+)?")
_QUOTED: Final = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"?|'([^'\n]*)'?")
_MAPPING: Final = re.compile(r"\{\s*[\"']?[\w.-]+[\"']?\s*[:=]|\{\s*\}")
_BLOCK: Final = re.compile(r"[|>][+-]?[ \t]*\n((?:[ \t]+[^\n]*(?:\n|\Z)|\n)+)")
_LINE: Final = re.compile(r"[^\n]*?(?=[ \t]*[,;]?[ \t]*(?:[ \t]#[^\n]*)?(?:\n|\Z))")
_TOKEN: Final = re.compile(r"(?:[^\s\"'&,;)}\]]|,(?=\S))+")
_REST: Final = re.compile(r"\S+\Z")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A credential in a text, and the name by which it goes."""

    start: int
    end: int
    name: str


def with_replaced(text: str, spans: Iterable[TextSpan], replacement: Callable[[TextSpan], str]) -> str:
    """The text with something else in place of each credential."""
    parts, end = [], 0
    for span in spans:
        parts += [text[end : span.start], replacement(span)]
        end = span.end
    return "".join([*parts, text[end:]])


def is_password(name: str) -> bool:
    """Whether a value of this name is a password: `MYSQL_PASSWORD`, `root-password`, but not `PASSWORD_FILE`."""
    last = next(reversed(words(name)), "")
    return last in _PASSWORDS or last.endswith("password")


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is a credential: `API_KEY`, `jwt-secret`, but not `KEY_COUNT` or `tokenizer`."""
    found = words(name.rpartition("/")[2])
    if not found or found[-1] in _HARMLESS_ENDS or found[0] in ("max", "min", "num", "total"):
        return False
    for before, word in zip(["", *found], found, strict=False):
        if (word in _SECRET or word.endswith(_SECRET_ENDS)) and not (word == "pass" and before in _BEFORE_PASS):
            return True
    if found[-2:] == ["key", "id"]:
        return True
    return found[-1] == "key" and (found[-2] not in _PLAIN_KEYS if len(found) > 1 else name == "KEY")


def is_address_with_credentials(name: str, text: str) -> bool:
    """Whether a value of such a name is a URL, of which only a part is a credential."""
    return "dsn" in words(name) and _USERINFO.search(text) is not None


def is_plain(text: str) -> bool:
    """Whether a value need not be hidden: a switch, a placeholder, a reference to a variable, the path of a file."""
    stripped = text.strip()
    if _PLAIN.fullmatch(stripped) or _REFERENCE.fullmatch(stripped):
        return True
    return _FILE.fullmatch(stripped) is not None and not any(_of_entropy(stripped))


@dataclass(slots=True)
class Origins:
    """The data of Secrets, by value.

    A value that goes by the name of a credential, or looks like one, is found inside of any other text. Another, like
    the name of a user or a password of letters, is found as a word of its own. What is public anyway, like the name of
    an object or an image, does not count, although a Secret may have it.
    """

    places: dict[str, tuple[str, str]]  # the name of the Secret and the key; no name for a credential of no Secret
    public: frozenset[str]
    _names: dict[str, str] = field(default_factory=dict)
    _pattern: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        inside: list[str] = []
        whole: list[str] = []
        for value, (secret, key) in self.places.items():
            known = not secret or is_secret_name(key)
            parts = {value.strip(), *(value[each.start : each.end] for each in credentials(value))}
            if known:
                parts.update(line.strip() for line in value.splitlines())
            for part in parts:
                named = known or part != value.strip() or any(credentials(part))
                if len(part) < 4 or part in self.public or is_plain(part) or _SECRET.issuperset(words(part)):
                    continue
                if part.isdigit() and not named:
                    continue
                encoded = base64.b64encode(part.encode()).decode()
                self._names |= {part: key, encoded: key}
                (inside if len(part) >= (6 if named and not part.isalpha() else 16) else whole).append(part)
                inside.append(encoded)
        texts = [re.escape(each) for each in sorted(inside, key=len, reverse=True)]
        texts += [rf"(?<![\w-]){re.escape(each)}(?![\w-])" for each in whole]
        self._pattern = re.compile("|".join(texts)) if texts else None

    def spans(self, text: str) -> Iterator[TextSpan]:
        for found in self._pattern.finditer(text) if self._pattern else ():
            yield TextSpan(found.start(), found.end(), self._names.get(found.group(), "VALUE"))


def credentials(text: str, origins: Origins | None = None, *, lines: bool = True) -> list[TextSpan]:
    """All credentials in a text, in order and apart from each other. `lines`: in a file, a value ends with its line; in
    a command, with its word."""
    found = [*_of_form(text), *_of_entropy(text), *_of_urls(text), *_of_options(text)]
    found += _of_pairs(text, lines=lines and not text.startswith("#!"))
    if origins is not None:
        found += origins.spans(text)
    found += _encoded(text, origins)
    return _apart(text, found)


def in_arguments(arguments: Sequence[Any], origins: Origins) -> dict[int, list[TextSpan]]:
    """The credentials of a command line, by the index of the argument: in an argument, and of `--password x`."""
    texts = [each if isinstance(each, str) else "" for each in arguments]
    ends = list(accumulate(len(text) + 1 for text in texts))
    options = list(_of_options(" ".join(texts)))
    found = {}
    for index, text in enumerate(texts):
        start = ends[index] - len(text) - 1
        spans = credentials(text, origins, lines=False)
        spans += [TextSpan(each.start - start, each.end - start, each.name) for each in options if each.start >= start]
        flag = texts[index - 1] if index else ""
        if flag.startswith("-") and is_secret_name(flag) and not text.startswith("-"):
            spans.append(TextSpan(0, len(text), flag))
        apart = _apart(text, [each for each in spans if each.end <= len(text)])
        if apart:
            found[index] = apart
    return found


def _apart(text: str, spans: list[TextSpan]) -> list[TextSpan]:
    merged: list[TextSpan] = []
    for found in sorted(spans, key=lambda each: (each.start, -each.end)):
        value = text[found.start : found.end]
        if is_plain(value):
            continue
        span = TextSpan(found.start + len(value) - len(value.lstrip()), found.start + len(value.rstrip()), found.name)
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = TextSpan(last.start, max(last.end, span.end), last.name)
        else:
            merged.append(span)
    return merged


# -- finders ---------------------------------------------------------------------------------------------------------


def _of_form(text: str) -> Iterator[TextSpan]:
    for name, pattern in _FORMS:
        for found in pattern.finditer(text):
            yield TextSpan(*found.span(), name)
    for found in _HEADER.finditer(text):
        yield TextSpan(*found.span("value"), "AUTHORIZATION")


def _of_entropy(text: str) -> Iterator[TextSpan]:
    """Sixteen and more letters and digits that are no words, with the signs between them."""
    for run in _RUN.finditer(text):
        if text[: run.start()].endswith("sha256:"):
            continue
        for is_random, segments in groupby(_SEGMENT.finditer(run.group()), lambda each: not _is_word(each.group())):
            found = list(segments)
            start, end = found[0].start(), found[-1].end()
            odd = sum(len(each.group()) for each in found if not _WORDS_AND_NUMBER.fullmatch(each.group()))
            if is_random and odd >= _SHORTEST and end - start >= 16:
                padding = re.compile("=*").match(run.group(), end)
                yield TextSpan(run.start() + start, run.start() + (padding.end() if padding else end), "TOKEN")


def _is_word(segment: str) -> bool:
    """Whether letters and digits are words for sure, not a part of a random text: lower case, or in camel case."""
    found = _WORDS_AND_NUMBER.fullmatch(segment)
    return found is not None and len(found[1] or "") > 3


def _of_urls(text: str) -> Iterator[TextSpan]:
    strict = {found.start() for found in _USERINFO.finditer(text)}
    for found in _LOOSE_USERINFO.finditer(text):
        if found.start() not in strict:
            yield TextSpan(*found.span("value"), "PASSWORD")
    for found in _USERINFO.finditer(text):
        if found["password"]:
            yield TextSpan(found.start("password") + 1, found.end("password"), "PASSWORD")
        elif found["scheme"].startswith("http"):
            yield TextSpan(*found.span("user"), "TOKEN")


def _of_options(text: str) -> Iterator[TextSpan]:
    for pattern in _OPTIONS:
        for found in pattern.finditer(text):
            yield TextSpan(*found.span("value"), "PASSWORD")


def _of_pairs(text: str, *, lines: bool) -> Iterator[TextSpan]:
    for pattern in (_DEFAULT, _ELEMENT):
        for found in pattern.finditer(text):
            if is_secret_name(found["key"]):
                yield TextSpan(*found.span("value"), found["key"])
    for found in _KEY.finditer(text):
        if is_secret_name(found["key"]) and (span := _value(text, found, lines=lines)) is not None:
            yield TextSpan(*span, found["key"])


def _value(text: str, key: re.Match[str], *, lines: bool) -> tuple[int, int] | None:
    """Where the value of a key begins and ends."""
    before = text[text.rfind("\n", 0, key.start()) + 1 : key.start()]
    is_first = _LINE_START.fullmatch(before) is not None and not key["flag"].startswith("--")
    if key["sign"].isspace():
        rest = text[key.end() :].partition("\n")[0]
        if not key["flag"] and not (lines and is_first and len(rest.split()) == 1):
            return None
    quoted = _QUOTED.match(text, key.end())
    if quoted is not None:
        return quoted.span(1 if quoted[1] is not None else 2)
    if _MAPPING.match(text, key.end()):
        return None  # its own keys are found by themselves
    block = _BLOCK.match(text, key.end())
    if block is not None:
        return block.span(1)
    if key["flag"] and not before.strip() and (whole := _REST.match(text, key.end())):
        return whole.span()
    found = (_LINE if lines and is_first else _TOKEN).match(text, key.end())
    return found.span() if found is not None and found.group() else None


def _encoded(text: str, origins: Origins | None) -> Iterator[TextSpan]:
    """Words that are the Base64 form of text with a credential."""
    for found in _ENCODED.finditer(text):
        try:
            plain = base64.b64decode(found.group(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        if plain.isprintable() and (
            any(_of_form(plain))
            or any(_of_urls(plain))
            or any(_of_pairs(plain, lines=True))
            or (origins is not None and any(origins.spans(plain)))
        ):
            yield TextSpan(*found.span(), "VALUE")
