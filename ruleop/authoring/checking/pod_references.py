"""ConfigMaps, Secrets and keys that Pods refer to by a name that nothing in the rules provides.

A Pod with such a reference waits for ever (CreateContainerConfigError, FailedMount). An object whose name is in the
spec is provided by the author of the custom resource. Otherwise a child or an observed object has the name, or a field
mentions it by which somebody else creates the object: one of a custom kind, an annotation, an argument of a program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.authoring.checking.known_names import OF_CR, KnownName, KnownNames, may_be, text_of
from ruleop.authoring.checking.pod_specs import fields_of_pod
from ruleop.core.kinds import GroupKind
from ruleop.core.schema.builtin.table import builtin_resource
from ruleop.core.schema.nearest import did_you_mean, nearest
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.checking.dataflow.sources import Sources
    from ruleop.core.rules import Findings
    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.templating.bodies.body import Body, Field, FieldPath

_CONFIG_MAP, _SECRET, _ACCOUNT = (GroupKind("", kind) for kind in ("ConfigMap", "Secret", "ServiceAccount"))
_REFERENCES: Final[dict[FieldPath, GroupKind]] = {
    ("configMapKeyRef", "name"): _CONFIG_MAP,
    ("configMapRef", "name"): _CONFIG_MAP,
    ("configMap", "name"): _CONFIG_MAP,  # of a volume, or of a part of a projected one
    ("secretKeyRef", "name"): _SECRET,
    ("secretRef", "name"): _SECRET,
    ("secret", "name"): _SECRET,
    ("secret", "secretName"): _SECRET,
}
_OF_CLUSTER: Final = frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"})
"""ConfigMaps that every namespace has."""
_MAKE_NO_OBJECTS: Final = frozenset({"monitoring.coreos.com", "gateway.networking.k8s.io", "snapshot.storage.k8s.io"})
"""Groups whose controllers make no ConfigMaps and Secrets named after an object. Others may: db-app for db."""
_DATA: Final = frozenset({"data", "stringData", "binaryData"})
_KEY: Final = re.compile(r"([-.\w]+)['\"]?\s*:")
_FILLED: Final = frozenset({"kubernetes.io/service-account-token"})
"""Types of Secrets whose data the cluster writes."""


class _Reference(NamedTuple):
    kind: GroupKind
    name: Field
    keys: tuple[Field, ...]
    if_derived: bool  # reported only if the name derives from that of the CR: others may be of the platform


@dataclass(frozen=True, slots=True)
class _Provider:
    name: KnownName
    child: str = ""
    keys: frozenset[str] | None = None  # None: not known
    written: frozenset[str] = frozenset()  # all keys in its files: a body that cannot be read is not among the bodies


@dataclass(slots=True)
class _Provided:
    """The objects that the children of a watch provide."""

    objects: dict[GroupKind, list[_Provider]] = field(default_factory=dict)
    owners: list[str] = field(default_factory=list)  # of custom kinds: their controllers make objects named after them
    mentions: list[str] = field(default_factory=list)

    def may_have(self, kind: GroupKind, name: str) -> bool:
        if any(may_be(each.name, name) for each in self.objects.get(kind, ())):
            return True
        if any(name.startswith(f"{owner}-") for owner in self.owners):
            return True
        whole = re.compile(rf"(?<![\w.}}-]){re.escape(name)}(?![\w.{{-])")
        return any(whole.search(text) for text in self.mentions)


def check_pod_references(watches: Iterable[Sources], findings: Findings) -> None:
    """Of all watches together: a custom resource may be a child of another one, and read what that one provides."""
    all_names = [KnownNames(sources) for sources in watches]
    provided = [_provided(names) for names in all_names]
    for names, own in zip(all_names, provided, strict=True):
        for part in names.sources.body_parts:
            for body in names.sources.bodies(part):
                for reference in _references(body):
                    name = text_of(names.of_field(reference.name, part))
                    if name and not any(each.may_have(reference.kind, name) for each in provided):
                        _report_missing(reference, name, own, findings)
                    elif name:
                        _check_keys(reference, name, own, findings)


def _references(body: Body) -> Iterator[_Reference]:
    in_pod = {path: found for found, path in fields_of_pod(body)}
    for path, name in in_pod.items():
        if path == ("serviceAccountName",):
            yield _Reference(_ACCOUNT, name, (), if_derived=True)
        elif path[:1] == ("imagePullSecrets",) and path[2:] == ("name",):
            yield _Reference(_SECRET, name, (), if_derived=True)
        elif (kind := _REFERENCES.get(path[-2:])) is not None:
            optional = in_pod.get((*path[:-1], "optional"))
            if optional is None or optional.value is False:
                yield _Reference(kind, name, tuple(_keys(in_pod, path[:-1])), if_derived=False)


def _keys(in_pod: dict[FieldPath, Field], source: FieldPath) -> Iterator[Field]:
    """The fields that name keys: `key`, and `items[].key` of a volume."""
    for path, found in in_pod.items():
        rest = path[len(source) :]
        if path[: len(source)] == source and (rest == ("key",) or (rest[:1] == ("items",) and rest[2:] == ("key",))):
            yield found


# -- what there is -----------------------------------------------------------------------------------------------------


def _provided(names: KnownNames) -> _Provided:
    found = _Provided()
    for part in names.sources.body_parts:
        bodies = names.sources.bodies(part)
        for body in bodies:
            _add_body(found, body, part, names)
        kinds = part.child.kinds if part.child is not None else frozenset()
        for kind in {each.versionless for each in kinds} - {each.kind.versionless for each in bodies}:
            found.objects.setdefault(kind, []).append(_Provider((None,)))
    for entry in names.sources.watch.draft.observed.values():
        table = entry.value
        if table is None or table.kind is None:
            continue
        kind = GroupKind(table.group.text, table.kind.text)
        for value in (*((table.name,) if table.name is not None else ()), *table.names):
            part = next(each for each in names.sources.watch.parts if each.node is value.node)
            found.objects.setdefault(kind, []).append(_Provider(names.of_text(value.node, part)))
    return found


def _add_body(found: _Provided, body: Body, part: Part, names: KnownNames) -> None:
    name, child = names.of_object(body, part), part.child.id if part.child is not None else ""
    files = part.compiled.files if isinstance(part.compiled, TextTemplate) else ()
    texts = names.sources.loaded.library.texts
    written = frozenset(key for file in files for key in _KEY.findall(texts[file]))
    provider = _Provider(name, child, _keys_of(body, part), written)
    found.objects.setdefault(body.kind.versionless, []).append(provider)
    is_custom = builtin_resource(body.kind) is None
    if is_custom and body.kind.group not in _MAKE_NO_OBJECTS and (owner := text_of(name)):
        found.owners.append(owner)
    for each in body.fields:
        if is_custom or _mentions({step for step in each.path if isinstance(step, str)}):
            found.mentions.append("".join("\0" if text is None else text for text in names.of_field(each, part)))


def _mentions(steps: set[str]) -> bool:
    """Whether a field of a built-in kind may name an object that somebody else creates: an argument, an annotation, the
    certificate of an Ingress, or a permission to create it."""
    return bool(steps & {"args", "command", "annotations", "tls", "resourceNames"}) or {"env", "value"} <= steps


def _keys_of(body: Body, part: Part) -> frozenset[str] | None:
    """The keys of a ConfigMap or a Secret, if all are known."""
    ignored = (each.path for each in part.child.ignore) if part.child is not None else ()
    if any(path is not None and path.segments[0] in _DATA for path in ignored):
        return None  # others write some
    keys: set[str] = set()
    for each in body.fields:
        if each.path == ("type",) and each.value in _FILLED:
            return None
        if not each.path or each.path[0] not in _DATA:
            if each.spread and not each.path:
                return None
            continue
        key = each.path[1] if len(each.path) > 1 else "*"
        if each.spread or key == "*" or not isinstance(key, str):
            return None
        keys.add(key)
    return frozenset(keys)


# -- findings ----------------------------------------------------------------------------------------------------------


def _report_missing(reference: _Reference, name: str, own: _Provided, findings: Findings) -> None:
    if name in _OF_CLUSTER or (reference.if_derived and OF_CR not in name):
        return
    kind = reference.kind.kind
    children = {text: each.child for each in own.objects.get(reference.kind, ()) if (text := text_of(each.name))}
    similar = nearest(name, children) or (next(iter(children)) if len(children) == 1 else None)
    child = children.get(similar or "", "")
    hint = f' (the {kind} of the child "{child}" is named {similar})' if child else ""
    to_do = "" if reference.if_derived else ", or set `optional: true`"
    message = f"nothing provides the {kind} {name}{hint}: make it a child, observe it{to_do}"
    findings.warning("missing-reference", message, reference.name.site)


def _check_keys(reference: _Reference, name: str, own: _Provided, findings: Findings) -> None:
    """Reports keys that the one child with this name does not have."""
    providers = [each for each in own.objects.get(reference.kind, ()) if may_be(each.name, name)]
    children = {each.child for each in providers}
    if len(children) != 1 or any(text_of(each.name) != name or not each.keys for each in providers):
        return
    keys = {key for each in providers for key in each.keys or ()}
    for found in reference.keys:
        key = "".join(piece for piece in found.pieces if isinstance(piece, str)) if not any(found.slots) else ""
        if key and key not in keys and not any(key in each.written for each in providers):
            message = f'the {reference.kind.kind} of the child "{children.pop()}" has no key "{key}"'
            hint = did_you_mean(key, keys) or f" (it has {', '.join(sorted(keys))})"
            findings.mistake("missing-reference", f"{message}{hint}", found.site)
            return
