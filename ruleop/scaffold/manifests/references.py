"""References from one object to another, by name: they follow the names of the new objects.

Where a field refers to a kind is known by the names of fields, which the API and custom kinds use alike. In other text,
such as a URL in an environment variable, only the host names of Services are followed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.scaffold.trees import walk
from ruleop.scaffold.yaml_layout import Expr, Joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.scaffold.manifests.names import SharedName
    from ruleop.scaffold.trees import TreePath

_NAMES: Final = {
    "serviceName": "Service",
    "secretName": "Secret",
    "claimName": "PersistentVolumeClaim",
    "configMapName": "ConfigMap",
    "serviceAccountName": "ServiceAccount",
}
"""Fields whose value is a name."""
_HOLDERS: Final = {
    **dict.fromkeys(("configMap", "configMapRef", "configMapKeyRef"), "ConfigMap"),
    **dict.fromkeys(("secret", "secretRef", "secretKeyRef"), "Secret"),
    "service": "Service",
}
"""Mappings with the field `name`."""
_LISTS: Final = {"imagePullSecrets": "Secret", "backendRefs": "Service"}
"""Lists of mappings with the field `name`."""
_HOST_VARIABLE: Final = re.compile(r"(?i).*(HOST|HOSTNAME|SERVER|ADDR|ADDRESS|URL|URI|ENDPOINT)")


@dataclass(frozen=True, slots=True)
class Reference:
    path: TreePath
    kind: str
    name: str


def references(body: Mapping[str, Any]) -> Iterator[Reference]:
    """All fields that name another object."""
    for path, value in walk(body):
        if not path or not isinstance(value, dict):
            continue
        for key, member in value.items():
            if key in _NAMES and isinstance(member, str) and member:
                yield Reference((*path, key), _NAMES[key], member)
        name, kind = value.get("name"), value.get("kind")
        if not isinstance(name, str):
            continue
        if isinstance(kind, str):
            yield Reference((*path, "name"), kind, name)
        elif path[-1] in _HOLDERS:
            yield Reference((*path, "name"), _HOLDERS[str(path[-1])], name)
        elif len(path) > 1 and path[-2] in _LISTS:
            yield Reference((*path, "name"), _LISTS[str(path[-2])], name)


@dataclass(slots=True)
class Links:
    """Which child reads which. An expression that would close a circle is refused."""

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


def host_changes(
    body: Mapping[str, Any], services: Iterable[str], shared: SharedName, namespace: str
) -> dict[TreePath, Joined | Expr]:
    """The texts with host names of Services in them, with expressions in their place."""
    names = sorted(services, key=len, reverse=True)
    if not names:
        return {}
    pattern = _host_pattern(names, namespace)
    found: dict[TreePath, Joined | Expr] = {}
    for path, value in walk(body):
        if not isinstance(value, str) or path[0] in ("apiVersion", "kind", "metadata") or "metadata" in path:
            continue
        always = _is_host_variable(body, path)
        changed = _replace(value, pattern, shared, always=always)
        if changed is not None:
            found[path] = changed
    return found


def _host_pattern(names: list[str], namespace: str) -> re.Pattern[str]:
    inside = rf"\.{re.escape(namespace)}(?=\.svc|[:/]|$)" if namespace else "(?!)"
    words = "|".join(map(re.escape, names))
    pod = rf"(?P<pod>-\d+)\.(?P<domain>{words})"
    return re.compile(rf"(?<![\w.-])(?P<name>{words})(?:{pod})?(?P<namespace>{inside})?(?![\w-])")


def _replace(text: str, pattern: re.Pattern[str], shared: SharedName, *, always: bool) -> Joined | Expr | None:
    parts: list[str | Expr] = []
    end = 0
    for match in pattern.finditer(text):
        if not (always or _is_host(match)):
            continue
        parts += [text[end : match.start()], *_parts(shared.template(match["name"]))]
        if match["pod"]:
            parts += [f"{match['pod']}.", *_parts(shared.template(match["domain"]))]
        if match["namespace"]:
            parts += [".", Expr("metadata.namespace")]
        end = match.end()
    if not end:
        return None
    merged = _merged([*parts, text[end:]])
    return merged[0] if len(merged) == 1 and isinstance(merged[0], Expr) else Joined(tuple(merged))


def _parts(name: Expr | Joined) -> tuple[str | Expr, ...]:
    return name.parts if isinstance(name, Joined) else (name,)


def _merged(parts: list[str | Expr]) -> list[str | Expr]:
    found: list[str | Expr] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part:
            found.append(part)
    return found


def _is_host(match: re.Match[str]) -> bool:
    """Whether a word is a host name by what is around it: `://NAME`, `user@NAME`, `NAME:5432`, `NAME.shop.svc`."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    return (
        before.endswith(("://", "@"))
        or bool(match["namespace"] or match["pod"])
        or re.match(r":\d|\.[a-z0-9-]+\.svc\b", after) is not None
    )


def _is_host_variable(body: Mapping[str, Any], path: TreePath) -> bool:
    """Whether the text is the value of an environment variable for hosts."""
    if path[-1] != "value" or len(path) < 3 or path[-3] != "env":
        return False
    holder: Any = body
    for part in path[:-1]:
        holder = holder[part]
    return _HOST_VARIABLE.fullmatch(str(holder.get("name"))) is not None
