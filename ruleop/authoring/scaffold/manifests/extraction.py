"""Takes the credentials out of manifests: no file of the new project has one.

- The value of an environment variable becomes a `secretKeyRef`; a part of a value or of a command line becomes
  `$(VARIABLE)`, with such a variable before it.
- A ConfigMap with credentials becomes a Secret whose template reads them, where only pods use it.
- Anywhere else there is a placeholder.

A value that a Secret of the application has is read from there; any other becomes a key of one more Secret that users
make.
"""

from __future__ import annotations

import base64
import re
from dataclasses import field, replace
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.manifests.cleaning import Manifest, SecretRole
from ruleop.authoring.scaffold.manifests.names import references
from ruleop.authoring.scaffold.manifests.plain_credentials import (
    Origins,
    TextSpan,
    credentials,
    in_arguments,
    is_address_with_credentials,
    is_password,
    is_plain,
    is_secret_name,
    with_replaced,
)
from ruleop.authoring.scaffold.naming import free, words
from ruleop.authoring.scaffold.yaml_layout import items_at, replaced, value_at, walk
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import Kind
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.scaffold.yaml_layout import TreePath

    Write = Callable[[str, str, str], str]
    """Puts a credential away, by its value, name and place. Returns what takes its place in the text."""

PLACEHOLDER: Final = "change-me"
MARK: Final = re.compile("\ue000([^\ue000\ue001]*)\ue001([^\ue000\ue001]*)\ue002")
"""In the text of a template: the name of a Secret and a key, whose value goes there."""

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_FIXED: Final = frozenset(
    {
        *("apiVersion", "kind", "name", "namespace", "image", "key", "topologyKey", "host", "hosts", "clusterIP"),
        *("storageClassName", "volumeName", "nodeName", "schedule", "type", "operator", "protocol", "effect"),
    }
)
"""Fields whose value names something, or is a choice: not text of the author's."""
_FREE_KEYS: Final = frozenset({"annotations", "volumeAttributes", "options", "parameters"})
"""Fields of built-in kinds whose keys are the author's."""
_DIGEST: Final = re.compile(r"(?:sha256:)?[0-9a-f]{16,128}")
_TEXT_FILE: Final = re.compile(r".*\.(conf|cfg|cnf|ini|json|ya?ml|toml|properties|xml|sh|sql|env|txt|html?|js|py)")
_SHELLS: Final = re.compile(r"(?:.*/)?(?:ba|da|k|z)?sh")


@dataclass(frozen=True, slots=True)
class Extracted:
    """The manifests without credentials. `moved`: what takes the place of each credential, and where it was."""

    manifests: list[Manifest]
    moved: list[tuple[str, str]]


def extract(manifests: Sequence[Manifest], objects: Iterable[Mapping[str, Any]], secret: str) -> Extracted:
    """The manifests without credentials. `objects` are all that are known, `secret` a name for a new Secret."""
    taken = {each.name for each in manifests}
    origins, known, movable = _origins_of(manifests, objects), {str(each) for each in manifests}, _movable(manifests)
    # What is a credential in one place is one everywhere.
    found = _Vault("", origins, known)
    for manifest in manifests:
        _Extraction(manifest, found, False).body()
    places = {**{value: ("", name) for value, name in found.values.items()}, **origins.places}
    vault = _Vault(free(secret, taken), Origins(places, origins.public), known)
    names: dict[str, str] = {}
    cleaned = []
    for manifest in manifests:
        extraction = _Extraction(manifest, vault, manifest.name in movable)
        body = extraction.body()
        if extraction.is_marked:
            name = manifest.name if f"Secret/{manifest.name}" not in vault.known else f"{manifest.name}-config"
            names[manifest.name] = name = free(name, {each for each in taken if f"Secret/{each}" in vault.known})
            body = {("stringData" if key == "data" else key): value for key, value in body.items()}
            body |= {"kind": "Secret", "metadata": {**body["metadata"], "name": name}}
            body |= {"data": body.pop("binaryData")} if "binaryData" in body else {}
            kind = Kind("", "v1", "Secret")
            cleaned.append(replace(manifest, kind=kind, name=name, body=body, role=SecretRole.FILE))
        else:
            cleaned.append(replace(manifest, body=body))
    given = [
        replace(each, role=SecretRole.GIVEN) if str(each) in vault.read_by_files else each
        for each in (replace(each, body=_reading_secrets(each.body, names)) for each in cleaned)
    ]
    if vault.keys:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": dict.fromkeys(vault.keys.values())}
        namespace = manifests[0].namespace
        given.append(Manifest(Kind("", "v1", "Secret"), vault.name, namespace, body, role=SecretRole.GIVEN))
    return Extracted(given, vault.moved)


def _origins_of(manifests: Sequence[Manifest], objects: Iterable[Mapping[str, Any]]) -> Origins:
    """The data of the Secrets among the objects, and what is public anyway."""
    places: dict[str, tuple[str, str]] = {}
    for obj in objects:
        if obj.get("kind") != "Secret":
            continue
        name = str(value_at(obj, ("metadata", "name")))
        for source in ("stringData", "data"):
            members = obj.get(source)
            for key, value in members.items() if isinstance(members, dict) else ():
                if isinstance(value, str):
                    places.setdefault(_decoded(value) if source == "data" else value, (name, str(key)))
    public = {manifest.name for manifest in manifests}
    for manifest in manifests:
        for path, value in walk(manifest.body):
            if isinstance(value, str) and (path[-1] in ("name", "image") or path[-2:-1] == ("labels",)):
                public.update((value, *re.split(r"[/:@]", value)))
    return Origins(places, frozenset(public))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return text


@dataclass(slots=True)
class _Vault:
    """The Secrets that have the credentials."""

    name: str
    origins: Origins
    known: set[str]
    values: dict[str, str] = field(default_factory=dict)  # of all credentials, with a name
    keys: dict[str, str] = field(default_factory=dict)  # of the new Secret, by value
    moved: list[tuple[str, str]] = field(default_factory=list)
    read_by_files: set[str] = field(default_factory=set)

    def put(self, value: str, name: str, place: str) -> tuple[str, str]:
        """The Secret and the key that have the value from now on."""
        self.values.setdefault(value, name)
        secret, key = self.origins.places.get(value, ("", ""))
        if f"Secret/{secret}" not in self.known:
            wished = re.sub(r"[^A-Z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()).strip("_")
            secret = self.name
            key = self.keys.setdefault(value, free(wished or "VALUE", self.keys.values()))
        self.moved.append((f"Secret/{secret}:{key}", place))
        return secret, key


class _Extraction:
    """The extraction from one manifest."""

    def __init__(self, manifest: Manifest, vault: _Vault, movable: bool) -> None:
        self.manifest = manifest
        self.vault = vault
        self.movable = movable
        self.changes: dict[TreePath, Any] = {}
        self.variables: dict[TreePath, list[Any]] = {}  # of containers that have none
        self.is_marked = False

    def body(self) -> dict[str, Any]:
        manifest = self.manifest
        for path, value in walk(manifest.body):
            if path and path[-1] in _CONTAINERS and isinstance(value, list):
                for index, container in enumerate(value):
                    if isinstance(container, dict):
                        self._container((*path, index), container)
        if manifest.kind.kind == "ConfigMap":
            self._files()
        self._rest()
        changed = replaced(manifest.body, self.changes)
        containers = {path: _with_env(value_at(changed, path), env) for path, env in self.variables.items()}
        found: dict[str, Any] = replaced(changed, containers)
        return found

    # -- containers --------------------------------------------------------------------------------------------------

    def _container(self, path: TreePath, container: Mapping[str, Any]) -> None:
        present = items_at(container, ("env",))
        taken = {str(each.get("name")): each for each in present if isinstance(each, dict)}
        first: list[dict[str, Any]] = []
        env: list[Any] = []

        def variable(value: str, name: str, place: str) -> str:
            secret, key = self.vault.put(value, name, place)
            source = {"secretKeyRef": {"name": secret, "key": key}}
            for known in (*first, *env):
                if isinstance(known, dict) and known.get("valueFrom") == source:
                    return str(known["name"])
            wished = key if "envFrom" not in container else f"CREDENTIAL_{key}"
            added = free(re.sub(r"[^A-Za-z0-9_]", "_", wished), taken)
            taken[added] = {}
            first.append({"name": added, "valueFrom": source})
            return added

        env = [self._variable((*path, "env", index), each, variable) for index, each in enumerate(present)]
        for name in ("command", "args"):
            arguments = items_at(container, (name,))
            for index, spans in in_arguments(arguments, self.vault.origins).items():
                own = (*path, name, index)
                self.changes[own] = self._text(own, arguments[index], spans, lambda *each: f"$({variable(*each)})")
        for own, value in walk(container, path):
            if own[-2:] == ("exec", "command") and isinstance(value, list):
                self._hook(own, value, variable)
        if env != present or (first and present):
            self.changes[(*path, "env")] = [*first, *env]
        elif first:
            self.variables[path] = first

    def _hook(self, path: TreePath, command: list[Any], variable: Write) -> None:
        """A probe or another hook: it expands no `$(VARIABLE)` that is from a Secret, but a shell does."""
        found = in_arguments(command, self.vault.origins)
        is_script = bool(command) and _SHELLS.fullmatch(str(command[0])) is not None
        words = []
        for index, text in enumerate(map(str, command)):
            parts, end = [], 0
            for span in found.get(index, ()):
                before = text[: span.start]
                name = variable(text[span.start : span.end], span.name, self.manifest.place((*path, index), before))
                expansion = f'"${{{name}}}"'
                if is_script and before.count("'") % 2:
                    expansion = f"'{expansion}'"
                elif is_script and before.count('"') % 2:
                    expansion = expansion.strip('"')
                parts += [text[end : span.start], expansion]
                end = span.end
            parts.append(text[end:])
            words.append(parts)
        if is_script:
            self.changes |= {(*path, index): "".join(words[index]) for index in found}
        elif found:
            quoted = (
                "".join(quote(each) if each and not number % 2 else each for number, each in enumerate(parts))
                for parts in words
            )
            self.changes[path] = ["sh", "-c", " ".join(each or "''" for each in quoted)]

    def _variable(self, path: TreePath, item: Any, variable: Write) -> Any:
        text = item.get("value") if isinstance(item, dict) else None
        if isinstance(text, (int, float)) and is_password(str(item.get("name"))):
            text = str(text)
        if not isinstance(text, str):
            return item
        own, name = (*path, "value"), str(item.get("name"))
        spans = self._spans(text, name)
        if [(each.start, each.end) for each in spans] == [(0, len(text))]:
            secret, key = self.vault.put(text, name, self.manifest.place(own))
            rest = {key: each for key, each in item.items() if key != "value"}
            return {**rest, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        named = [TextSpan(each.start, each.end, f"{name}_{each.name}") for each in spans]
        return {**item, "value": self._text(own, text, named, lambda *each: f"$({variable(*each)})")}

    # -- ConfigMaps and the rest -------------------------------------------------------------------------------------

    def _files(self) -> None:
        data = self.manifest.body.get("data")
        for key, text in data.items() if isinstance(data, dict) else ():
            if isinstance(text, str):
                named = "" if _TEXT_FILE.fullmatch(key) else key
                write = self._mark if self.movable else self._placeholder
                self.changes["data", key] = self._text(("data", key), text, self._spans(text, named), write)
        binary = self.manifest.body.get("binaryData")
        for key, text in binary.items() if isinstance(binary, dict) else ():
            if isinstance(text, str) and (is_secret_name(key) or credentials(_decoded(text), self.vault.origins)):
                self.vault.moved.append((PLACEHOLDER, self.manifest.place(("binaryData", key))))
                self.changes["binaryData", key] = base64.b64encode(PLACEHOLDER.encode()).decode()

    def _rest(self) -> None:
        """All other text of the object."""
        body = self.manifest.body
        is_builtin = builtin_resource(self.manifest.kind) is not None
        skipped = [*self.changes, *(each.path for each in references(body))]
        if self.manifest.kind.kind in ("Secret", "ConfigMap"):
            skipped += [("data",), ("stringData",), ("binaryData",)]
        done = set(skipped)
        for path, value in walk(body):
            if not path or any(path[:length] in done for length in range(1, len(path) + 1)):
                continue
            names = [each for each in path if isinstance(each, str)]
            if names[-1] in _FIXED or _is_checksum(names, value):
                continue
            if path[-1] == "value" and len(names) > 1:
                name = str(value_at(body, (*path[:-1], "name")) or names[-2])
            else:
                name = "" if is_builtin and _FREE_KEYS.isdisjoint(names) else names[-1]
            if isinstance(value, (int, float)) and not isinstance(value, bool) and is_password(name):
                self.changes[path] = self._placeholder(str(value), name, self.manifest.place(path))
            if not isinstance(value, str):
                continue
            spans = self._spans(value, name)
            if spans:
                self.changes[path] = self._text(path, value, spans, self._placeholder)

    def _spans(self, text: str, name: str) -> list[TextSpan]:
        origins = self.vault.origins
        is_named = is_secret_name(name) and not is_address_with_credentials(name, text)
        if is_named and not is_plain(text) and text not in origins.public:
            return [TextSpan(0, len(text), name)]
        return credentials(text, origins)

    def _text(self, path: TreePath, text: str, spans: Iterable[TextSpan], write: Write) -> str:
        def written(span: TextSpan) -> str:
            return write(text[span.start : span.end], span.name, self.manifest.place(path, text[: span.start]))

        return with_replaced(text, spans, written)

    def _mark(self, value: str, name: str, place: str) -> str:
        secret, key = self.vault.put(value, name, place)
        self.vault.read_by_files.add(f"Secret/{secret}")
        self.is_marked = True
        return f"\ue000{secret}\ue001{key}\ue002"

    def _placeholder(self, value: str, name: str, place: str) -> str:
        self.vault.values.setdefault(value, name)
        self.vault.moved.append((PLACEHOLDER, place))
        return PLACEHOLDER


def _is_checksum(names: Sequence[str], value: Any) -> bool:
    """Whether an annotation is a digest of something, which rolls the pods when that changes."""
    if names[-2:-1] != ["annotations"]:
        return False
    if names[-1].startswith("checksum/"):
        return True
    is_digest = isinstance(value, str) and _DIGEST.fullmatch(value) is not None
    return is_digest and words(names[-1])[-1:] in (["hash"], ["checksum"]) and not is_secret_name(names[-1])


def _with_env(container: Mapping[str, Any], env: list[Any]) -> dict[str, Any]:
    first = {key: each for key, each in container.items() if key in ("name", "image", "command", "args")}
    return {**first, "env": env, **{key: each for key, each in container.items() if key not in (*first, "env")}}


# -- ConfigMaps that become Secrets ----------------------------------------------------------------------------------


def _movable(manifests: Sequence[Manifest]) -> set[str]:
    """The names of the ConfigMaps that pods use, and nothing else."""
    used: set[str] = set()
    others: set[str] = set()
    for manifest in manifests:
        for each in references(manifest.body):
            if each.kind == "ConfigMap":
                is_pods = builtin_resource(manifest.kind) is not None and each.path[-2] in _IN_PODS
                (used if is_pods else others).add(each.name)
    return used - others


_IN_PODS: Final = {"configMap": "secret", "configMapRef": "secretRef", "configMapKeyRef": "secretKeyRef"}


def _reading_secrets(value: Any, names: Mapping[str, str]) -> Any:
    """The body with Secrets in place of these ConfigMaps."""
    if not names:
        return value
    if isinstance(value, list):
        return [_reading_secrets(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, member in value.items():
        old = member.get("name") if key in _IN_PODS and isinstance(member, dict) else None
        if isinstance(old, str) and old in names:
            # A volume has a name; a source of a projected volume has none, and another form.
            field_name = "secretName" if key == "configMap" and "name" in value else "name"
            rest = {each: inner for each, inner in member.items() if each != "name"}
            found[_IN_PODS[key]] = {field_name: names[old], **rest}
        else:
            found[key] = _reading_secrets(member, names)
    return found


def marks(text: str) -> Iterator[tuple[str, str, str]]:
    """The text up to each mark, with the Secret and the key of the mark; at last the rest, with two empty texts."""
    end = 0
    for found in MARK.finditer(text):
        yield text[end : found.start()], found[1], found[2]
        end = found.end()
    yield text[end:], "", ""
