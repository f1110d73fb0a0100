"""Names of an application: the name that its objects share, names by which they refer to each other, and names in text.

The shared name becomes the custom resource's: with objects `blog`, `blog-db` and `redis`, a custom resource `blog` has
children `blog`, `blog-db` and `blog-redis`, and one named `news` has `news`, `news-db` and `news-redis`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.manifests.cleaning import POD_NAME
from ruleop.authoring.scaffold.naming import camel, free_id, kebab, words
from ruleop.authoring.scaffold.yaml_layout import WrittenExpr, WrittenText, items_at, value_at, walk
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.names import MAX_LABEL, MAX_NAME
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.scaffold.manifests.cleaning import Manifest
    from ruleop.authoring.scaffold.yaml_layout import TreePath


INSTANCE: Final = "app.kubernetes.io/instance"
NAME: Final = WrittenExpr("metadata.name")
_GENERATED_SUFFIX: Final = 11
_LONGEST: Final = {
    **dict.fromkeys(("Service", "Deployment", "DaemonSet", "ReplicaSet", "Job"), MAX_LABEL),
    # Labels of their pods, and names of their Jobs, have eleven characters more.
    **dict.fromkeys(("StatefulSet", "CronJob"), MAX_LABEL - _GENERATED_SUFFIX),
}

_SHORT: Final = {"Deployment": ["deploy"], "Service": ["svc"], "StatefulSet": ["sts"], "PersistentVolumeClaim": ["pvc"]}


@dataclass(frozen=True, slots=True)
class SharedName:
    """The name that is replaced by that of the custom resource."""

    text: str

    def rest(self, name: str) -> str:
        """The part of a name besides the shared one: `db` of `blog-db`; the whole name where it does not have it."""
        if name == self.text:
            return ""
        return name.removeprefix(f"{self.text}-")

    def has(self, name: str) -> bool:
        return name == self.text or name.startswith(f"{self.text}-")

    def template(self, name: str) -> WrittenExpr | WrittenText:
        """The name of the child."""
        rest = self.rest(name)
        return WrittenText((NAME, f"-{rest}")) if rest else NAME

    def rendered(self, name: str, resource: str) -> str:
        """The name of the child of a custom resource."""
        rest = self.rest(name)
        return f"{resource}-{rest}" if rest else resource


def shared_name(manifests: Sequence[Manifest], fallback: str) -> SharedName:
    """The longest beginning, up to a dash, of the names of more than half of the objects; or else the fallback. A
    label for the instance decides where names begin with it."""
    for manifest in manifests:
        name = SharedName(str(value_at(manifest.body, ("metadata", "labels", INSTANCE))))
        if 2 * sum(name.has(each.name) for each in manifests) > len(manifests):
            return name
    counts: Counter[str] = Counter()
    for manifest in manifests:
        parts = manifest.name.split("-")
        counts.update("-".join(parts[:length]) for length in range(1, len(parts) + 1))
    frequent = [name for name, count in counts.items() if 2 * count > len(manifests)]
    best = max(frequent, key=lambda name: (counts[name], len(name)), default="")
    return SharedName(best or kebab(fallback))


def group(manifest: Manifest, shared: SharedName) -> tuple[str, ...]:
    """The mapping of the spec for the fields of an object: by what its name adds to the shared one, unless that is its
    kind."""
    rest, kind = shared.rest(manifest.name), manifest.kind.kind
    return () if not rest or words(rest) in (words(kind), [kind.lower()], _SHORT.get(kind)) else (camel(rest),)


def longest_name(manifests: Sequence[Manifest], shared: SharedName) -> int:
    """The maximum length of a custom resource's name with which all names and labels made of it are valid."""
    limits = [MAX_LABEL]
    for manifest in manifests:
        suffix = len(shared.rendered(manifest.name, ""))
        limits.append(_LONGEST.get(manifest.kind.kind, MAX_NAME) - suffix)
        limits.append(MAX_LABEL - suffix if shared.has(manifest.name) else MAX_LABEL)
    return max(1, min(limits))


def ids(manifests: Sequence[Manifest], shared: SharedName) -> dict[str, str]:
    """An id for each object: its kind, and what its name adds where there are several of a kind."""
    kinds = Counter(manifest.kind.kind for manifest in manifests)
    found: dict[str, str] = {}
    for manifest in manifests:
        kind = manifest.kind.kind
        name = camel(kind) if kinds[kind] == 1 else camel(shared.rest(manifest.name), kind)
        found[str(manifest)] = free_id(name, found.values())
    return found


# -- references --------------------------------------------------------------------------------------------------------
# References from one object to another: names follow those of the new objects, and selectors of two custom resources in
# one namespace must not select each other's pods.
#
# Where a field refers to a kind is known by the names of fields, which the API and custom kinds use alike.

_NAMES: Final = {
    "serviceName": "Service",
    "secretName": "Secret",
    "claimName": "PersistentVolumeClaim",
    "configMapName": "ConfigMap",
    "serviceAccountName": "ServiceAccount",
    "subdomain": "Service",
}
"""Fields whose value is a name."""
_HOLDERS: Final = {
    **dict.fromkeys(("configMap", "configMapRef", "configMapKeyRef"), "ConfigMap"),
    **dict.fromkeys(("secret", "secretRef", "secretKeyRef"), "Secret"),
    "service": "Service",
    "scaleTargetRef": "Deployment",
    "issuerRef": "Issuer",
}
"""Mappings with the field `name`."""
_LISTS: Final = {"imagePullSecrets": "Secret", "backendRefs": "Service", "services": "Service", "parentRefs": "Gateway"}
"""Lists of mappings with the field `name`."""
_ANNOTATIONS: Final = re.compile(r"nginx\.ingress\.kubernetes\.io/(auth-secret|auth-tls-secret|proxy-ssl-secret)")
_RESOURCES: Final = {
    "services": "Service",
    "secrets": "Secret",
    "configmaps": "ConfigMap",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "serviceaccounts": "ServiceAccount",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
}
"""Resources of a Role whose objects `resourceNames` names."""


@dataclass(frozen=True, slots=True)
class ManifestReference:
    path: TreePath
    kind: str
    name: str


def references(body: Mapping[str, Any]) -> Iterator[ManifestReference]:
    """All fields that name another object."""
    for path, value in walk(body):
        if not path or not isinstance(value, dict):
            continue
        for key, member in value.items():
            if key in _NAMES and isinstance(member, str) and member:
                yield ManifestReference((*path, key), _NAMES[key], member)
            elif path[-1] == "annotations" and _ANNOTATIONS.fullmatch(str(key)) and isinstance(member, str):
                yield ManifestReference((*path, key), "Secret", member)
        yield from _of_rule(path, value)
        name, kind = value.get("name"), value.get("kind")
        if not isinstance(name, str):
            continue
        if isinstance(kind, str):
            yield ManifestReference((*path, "name"), kind, name)
        elif path[-1] in _HOLDERS:
            yield ManifestReference((*path, "name"), _HOLDERS[str(path[-1])], name)
        elif len(path) > 1 and path[-2] in _LISTS:
            yield ManifestReference((*path, "name"), _LISTS[str(path[-2])], name)


def _of_rule(path: TreePath, rule: Mapping[str, Any]) -> Iterator[ManifestReference]:
    """The objects that a rule of a Role names, where all its resources are of one kind that is known."""
    kinds = {_RESOURCES.get(str(each).partition("/")[0], "") for each in items_at(rule, ("resources",))}
    if len(kinds) == 1 and "" not in kinds:
        for index, name in enumerate(items_at(rule, ("resourceNames",))):
            if isinstance(name, str):
                yield ManifestReference((*path, "resourceNames", index), next(iter(kinds)), name)


@dataclass(slots=True)
class Links:
    """The dependencies between children. An expression that would close a circle is refused."""

    _reads: dict[str, set[str]] = field(default_factory=dict)

    def add(self, reader: str, read: str) -> bool:
        """Whether the child may read the other one; then it does."""
        if reader == read or self._reaches(read, reader):
            return False
        self._reads.setdefault(reader, set()).add(read)
        return True

    def _reaches(self, start: str, goal: str) -> bool:
        open_ids, seen = [start], set()
        while open_ids:
            current = open_ids.pop()
            if current == goal:
                return True
            if current not in seen:
                seen.add(current)
                open_ids += self._reads.get(current, ())
        return False


_CONSTANT: Final = frozenset(
    f"app.kubernetes.io/{name}" for name in ("name", "component", "part-of", "version", "created-by")
)
"""Labels that describe the application, not the instance."""


def label_changes(manifests: Sequence[Manifest], shared: SharedName) -> dict[str, dict[TreePath, Any]]:
    """The new labels and selectors of each object, by its kind and name."""
    selected = [labels for each in manifests for _, labels in _selected_labels(each)]
    selectors = [selector for each in manifests for _, selector in _selectors(each, selected)]
    renamed = [_renamed(selector, shared) for selector in selectors]
    ambiguous = any(all(isinstance(value, str) for value in selector.values()) for selector in renamed)
    more = {INSTANCE: NAME} if ambiguous else {}
    found: dict[str, dict[TreePath, Any]] = {}
    for manifest in manifests:
        changes = found.setdefault(str(manifest), {})
        for path, labels in _labels(manifest):
            changes[path] = _renamed(labels, shared)
        keys = {key for labels in selected for key in labels if key not in _CONSTANT}
        for path, values in _expression_values(manifest, keys):
            changes[path] = [shared.template(value) if shared.has(value) else value for value in values]
        for path, labels in [*_selected_labels(manifest), *_selectors(manifest, selected)]:
            changes[path] = {**_renamed(labels, shared), **more}
    return found


def _renamed(labels: Mapping[str, str], shared: SharedName) -> dict[str, str | WrittenExpr | WrittenText]:
    return {
        key: shared.template(value) if key not in _CONSTANT and shared.has(value) else value
        for key, value in labels.items()
    }


def _labels(manifest: Manifest) -> Iterator[tuple[TreePath, dict[str, str]]]:
    """All labels in metadata, of the object and of templates in it."""
    for path, value in walk(manifest.body):
        if path[-2:] == ("metadata", "labels") and _is_labels(value):
            yield path, value


def _selected_labels(manifest: Manifest) -> Iterator[tuple[TreePath, dict[str, str]]]:
    """The labels that selectors select by: of pods, and of Services, which monitors select."""
    for path, labels in _labels(manifest):
        if path[-3:-2] == ("template",) or manifest.kind.kind in ("Service", "Pod"):
            yield path, labels


def _selectors(manifest: Manifest, selected: Iterable[Mapping[str, str]]) -> Iterator[tuple[TreePath, dict[str, str]]]:
    """The selectors that select objects of the application."""
    for path, value in walk(manifest.body):
        is_selector = path[-1:] in (("matchLabels",), ("selector",)) and _is_labels(value)
        if is_selector and (POD_NAME in value or any(value.items() <= labels.items() for labels in selected)):
            yield path, value


def _expression_values(manifest: Manifest, keys: Collection[str]) -> Iterator[tuple[TreePath, list[str]]]:
    """The values of matchExpressions on these labels."""
    for path, value in walk(manifest.body):
        if path[-2:-1] == ("matchExpressions",) and isinstance(value, dict) and value.get("key") in keys:
            values = value.get("values")
            if isinstance(values, list) and all(isinstance(each, str) for each in values):
                yield (*path, "values"), values


def _is_labels(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(each, str) for each in value.values())


# -- host names in text ------------------------------------------------------------------------------------------------
# Names of objects in free text: in environment variables, command lines and files.
#
# A host name of a Service follows the new names where what is around it shows that it is one: a URL, a domain, a port,
# or a variable, key or option that asks for a host. Any other word that is the name of an object stays, and is listed:
# it may be the name of a database, an image or a user as well.

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
