"""Names of objects in free text: in environment variables, command lines and files.

A host name of a Service follows the new names where what is around it shows that it is one: a URL, a domain, a port, or
a variable, key or option that asks for a host. Any other word that is the name of an object stays, and is listed: it
may be the name of a database, an image or a user as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.authoring.scaffold.manifests.object_references import references
from ruleop.authoring.scaffold.naming import words
from ruleop.authoring.scaffold.yaml_layout import WrittenExpr, WrittenText, items_at, value_at, walk
from ruleop.kubernetes.builtin.table import builtin_resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.authoring.scaffold.manifests.application_names import SharedName
    from ruleop.authoring.scaffold.manifests.cleaning import Manifest
    from ruleop.authoring.scaffold.yaml_layout import TreePath

_HOST_WORDS: Final = frozenset(
    {
        *("host", "hosts", "hostname", "server", "servers", "addr", "address", "addresses", "url", "urls", "uri"),
        *("endpoint", "endpoints", "leader", "master", "primary", "replica", "replicas", "follower", "followers"),
        *("slave", "slaves", "slaveof", "replicaof", "sentinel", "sentinels", "upstream", "broker", "brokers", "node"),
        *("nodes", "peer", "peers", "seed", "seeds", "bootstrap", "connect", "target", "targets", "proxy", "gateway"),
    }
)
"""Endings of the names of variables, keys and options that ask for a host."""
_HOST_ENDS: Final = ("host", "server", "addr", "address", "url", "uri", "endpoint")
_BEFORE_BLANK: Final = frozenset({"host", "hostname", "slaveof", "replicaof"})
"""Words of configuration files that a host follows after a blank. After others, like `server`, other names do, too."""
_KEY: Final = re.compile(
    r"(?P<flag>-{0,2})(?P<key>[A-Za-z_][\w.-]*)[\"']?(?P<sign>\s*[:=]\s*|[ \t]+)[\"'\[]?(?:[\w.:-]+\s*,\s*)*$"
)
_IDENTIFIERS: Final = frozenset({"name", "namespace", "image", "kind", "apiVersion"})
_LABELS: Final = frozenset({"labels", "matchLabels", "selector"})
_LIST: Final = re.compile(r"[\s\"'\[]*(?:[\w.:-]+\s*[,;]\s*)*")
_URL: Final = re.compile(r"[A-Za-z][\w+.-]*://(?:[^\s/@]*@)?$|[\w)}\ue002]@$")
_PORT: Final = re.compile(r":(\d{1,5})(?![\w.-])")
_PORT_AFTER_BLANK: Final = re.compile(r"\s+(\d{1,5})(?![\w.-])")
_LONE: Final = re.compile(r"(?:^|[\s\"'=,:;(\[{]|\b(?:deployment|deploy|statefulset|sts|service|svc|pod|job)s?/)$")
_VALUE: Final = re.compile(r"(?:^|[=:,\[\"'])[ \t]*$")


@dataclass(frozen=True, slots=True)
class HostNames:
    """The names of the application's objects. `services` has the ports of what has a host name, `namespace` is empty
    where no manifest has one."""

    all: frozenset[str]
    namespace: str
    services: Mapping[str, frozenset[int]]

    @classmethod
    def of(cls, manifests: Sequence[Manifest]) -> HostNames:
        services: dict[str, frozenset[int]] = {}
        for manifest in manifests:
            if manifest.kind.kind in ("Service", "StatefulSet"):
                ports = (value_at(item, ("port",)) for item in items_at(manifest.body, ("spec", "ports")))
                known = services.get(manifest.name, frozenset())
                services[manifest.name] = known.union(port for port in ports if isinstance(port, int))
        namespace = next((each.namespace for each in manifests if each.namespace), "")
        return cls(frozenset(each.name for each in manifests), namespace, services)


@dataclass(frozen=True, slots=True)
class TextChanges:
    """The texts of a manifest with names in them. `left`: names that stay, with their places."""

    changes: dict[TreePath, WrittenText | WrittenExpr]
    left: list[tuple[str, str]]


def text_changes(manifest: Manifest, names: HostNames, shared: SharedName) -> TextChanges:
    """The new texts of a manifest, with expressions in place of host names."""
    found = TextChanges({}, [])
    if not names.all:
        return found
    pattern = _pattern(names)
    for path, text, key, is_free in _texts(manifest):
        parts: list[str | WrittenExpr] = []
        end = 0
        for match in pattern.finditer(text):
            host = _Host(match, names, key if is_free else "")
            if not (host.is_certain if is_free else host.is_address):
                if is_free and host.is_alone:
                    row = (match.group(), manifest.place(path, text[: match.start()]))
                    found.left.extend([row] if row not in found.left else [])
                continue
            parts += [text[end : match.start()], *_parts(shared.template(match["name"]))]
            if match["pod"]:
                parts += [f"{match['pod']}.", *_parts(shared.template(match["domain"]))]
            end = match.end()
            if host.domain:
                parts += [".", WrittenExpr("metadata.namespace")]
                end += len(host.domain) + 1
        if parts:
            merged = _merged([*parts, text[end:]])
            found.changes[path] = (
                merged[0] if len(merged) == 1 and isinstance(merged[0], WrittenExpr) else WrittenText(tuple(merged))
            )
    return found


def _pattern(names: HostNames) -> re.Pattern[str]:
    every, hosts = (
        "|".join(map(re.escape, sorted(each, key=len, reverse=True))) for each in (names.all, names.services)
    )
    variables = "|".join(
        re.escape(each.upper().replace("-", "_")) for each in sorted(names.services, key=len, reverse=True)
    )
    pod = rf"(?P<pod>-\d+)\.(?P<domain>{hosts or '(?!)'})"
    variable = rf"\b(?:{variables or '(?!)'})_(?:SERVICE_HOST|SERVICE_PORT|PORT)\w*"
    return re.compile(rf"(?<![\w.-])(?P<name>{every})(?:{pod})?(?![\w-])|(?P<variable>{variable})")


class _Host:
    """A host name in a text, and the text around it."""

    def __init__(self, match: re.Match[str], names: HostNames, key: str) -> None:
        self.match = match
        self.before, self.after = match.string[: match.start()], match.string[match.end() :]
        self.ports = names.services.get(match["domain"] or match["name"] or "")
        self.namespace = names.namespace
        self.key = key
        domain = re.match(r"\.([a-z0-9-]+)(\.svc\b)?(?=[.:/,;\s\"')]|$)", self.after)
        self.domain = domain[1] if domain and (domain[2] or domain[1] == self.namespace) else ""

    @property
    def is_own(self) -> bool:
        """Whether it can be a host of the application: not of another namespace or domain, and no local name."""
        if self.ports is None or (self.domain and self.namespace and self.domain != self.namespace):
            return False
        if re.match(r"\.\w", self.after) and not self.domain:
            return False
        local = rf"(?m)^\s*(?:upstream|backend|frontend|listen|server_name)\s+{re.escape(self.match['name'])}\b"
        return re.search(local, self.match.string) is None

    @property
    def is_address(self) -> bool:
        """Whether the text around it is that of a URL or a domain: `://NAME`, `user@NAME`, `NAME.shop.svc`."""
        return self.is_own and bool(_URL.search(self.before) or self.domain or self.match["pod"])

    @property
    def is_certain(self) -> bool:
        if self.is_address:
            return True
        asks = self._asks_for_host()
        if not self.is_own or asks is False or self.before.endswith("/"):
            return False
        if found := _PORT.match(self.after):
            port = int(found[1])
            return bool(asks) or port in (self.ports or ()) or port in (80, 443) or port >= 1024
        if (found := _PORT_AFTER_BLANK.match(self.after)) and int(found[1]) in (self.ports or ()):
            return True
        return bool(asks) and re.match(r"[\s,;\"')\]}]|$", self.after) is not None

    def _asks_for_host(self) -> bool | None:
        """Whether the key before it asks for a host; None if nothing is known, False if it asks for an image."""
        if _LIST.fullmatch(self.before):
            name, sign = self.key, ""
        elif found := _KEY.search(self.before):
            name, sign = f"{found['flag']}{found['key']}", found["sign"]
        else:
            return None
        if name in ("-h", "-H"):
            return True
        if sign.isspace() and sign and not name.startswith("-") and name not in _BEFORE_BLANK:
            return None
        last = next(reversed(words(name)), "")
        if last in ("image", "tag"):
            return False
        return True if last in _HOST_WORDS or last.endswith(_HOST_ENDS) else None

    @property
    def is_alone(self) -> bool:
        """Whether it looks like the name of an object: a word of its own, and in long text more than that."""
        if self.match["variable"]:
            return True
        if not _LONE.search(self.before) or re.match(r"\.\w|/|://", self.after):
            return bool(self.domain)
        plain = self.match["name"].isalpha() and "\n" in self.match.string
        return not plain or _VALUE.search(self.before) is not None


def _texts(manifest: Manifest) -> Iterator[tuple[TreePath, str, str, bool]]:
    """All texts that may have names in them: the path, the text, the name by which it goes, and whether it is free
    text. In fields that the API knows only URLs and domains are sure."""
    body = manifest.body
    is_builtin = builtin_resource(manifest.kind) is not None
    skipped = {each.path for each in references(body)}
    for path, value in walk(body):
        if not isinstance(value, str) or path in skipped or path[0] in ("apiVersion", "kind"):
            continue
        names = [each for each in path if isinstance(each, str)]
        if names[-1] in _IDENTIFIERS or not _LABELS.isdisjoint(names):
            continue
        if "metadata" in names and "annotations" not in names:
            continue
        if path[-1] == "value" and "env" in names:
            yield path, value, str(value_at(body, (*path[:-1], "name"))), True
        elif names[-1] in ("args", "command"):
            before = value_at(body, (*path[:-1], path[-1] - 1)) if isinstance(path[-1], int) and path[-1] else ""
            yield path, value, before if isinstance(before, str) else "", True
        else:
            in_file = manifest.kind.kind in ("ConfigMap", "Secret") and path[0] in ("data", "stringData")
            yield path, value, names[-1], in_file or "annotations" in names or not is_builtin


def _parts(name: WrittenExpr | WrittenText) -> tuple[str | WrittenExpr, ...]:
    return name.parts if isinstance(name, WrittenText) else (name,)


def _merged(parts: list[str | WrittenExpr]) -> list[str | WrittenExpr]:
    found: list[str | WrittenExpr] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part:
            found.append(part)
    return found
