"""ConfigMaps, Secrets and keys that Pods refer to by a name that nothing in the rules provides.

A Pod with such a reference waits for ever (CreateContainerConfigError, FailedMount). An object whose name is in the
spec is provided by the author of the custom resource. Otherwise a child or an observed object has the name, or a field
mentions it by which somebody else creates the object: one of a custom kind, an annotation, an argument of a program.

Names of objects are compared as far as they are known before anything is rendered: `{{ metadata.name }}-config`. A name
is followed through `let`, `{% set %}`, macros, `vars`, and the names of children and observed objects, so that two
names that are written differently can be compared. What depends on the spec, an item or a filter is unknown, and so is
a name of very many parts.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from jinja2 import nodes

from ruleop.authoring.checking.bodies import fields_of
from ruleop.authoring.checking.typing.environments import attribute_path
from ruleop.core.kinds import GroupKind
from ruleop.core.schema.builtin.table import builtin_resource
from ruleop.core.schema.nearest import did_you_mean, nearest
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.checking.dataflow.sources import Sources
    from ruleop.core.kinds import JSON
    from ruleop.core.rules import Findings
    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.templating import YamlNode
    from ruleop.core.templating.bodies.body import Body, Field, FieldPath
    from ruleop.core.templating.bodies.body_writer import Printed

_POD_SPECS: Final[dict[tuple[str, str], FieldPath]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    ("apps", "Deployment"): ("spec", "template", "spec"),
    ("apps", "StatefulSet"): ("spec", "template", "spec"),
    ("apps", "DaemonSet"): ("spec", "template", "spec"),
    ("apps", "ReplicaSet"): ("spec", "template", "spec"),
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})


def fields_of_pod(body: Body) -> Iterator[tuple[Field, FieldPath]]:
    """The fields of a body that belong to the spec of a Pod, with their paths in it."""
    kind = body.kind
    prefix = _POD_SPECS.get((kind.group, kind.kind))
    if prefix is not None:
        for field in fields_of(body):
            if field.path[: len(prefix)] == prefix:
                yield field, field.path[len(prefix) :]


KnownName = tuple[str | None, ...]
"""Text with `{{ metadata.name }}` for the name of the CR; None is any text."""

OF_CR: Final = "{{ metadata.name }}"
_ANY: Final[KnownName] = (None,)
_NAME: Final = ("metadata", "name")
_AROUND_NAME: Final = frozenset({(), ("metadata",)})
_IDENTITY: Final = frozenset({"name", "namespace", "uid"})
_MAX_DEPTH: Final = 30  # of expressions in each other
_MAX_PARTS: Final = 64


def text_of(name: KnownName) -> str:
    """The text of a name that is known as a whole; "" of others."""
    return "" if None in name else "".join(part or "" for part in name)


def may_be(name: KnownName, text: str) -> bool:
    """Whether a name may have this text."""
    first, *others = "".join("\0" if part is None else part for part in name).split("\0")
    if not others:
        return text == first
    *middle, last = others
    at, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last)):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


@dataclass(slots=True)
class KnownNames:
    """Of one watch."""

    sources: Sources
    _lines: dict[str, list[str]] = field(default_factory=dict)  # of files
    _assigned: dict[int, dict[str, nodes.Node]] = field(default_factory=dict)
    _paths: dict[tuple[int, tuple[object, ...]], KnownName] = field(default_factory=dict)
    _depth: int = 0

    def of_field(self, found: Field, part: Part) -> KnownName:
        """The text that a field of a child will have. Of a line with a condition, a body shows one outcome only."""
        if found.spread or "{%" in self._line(found):
            return _ANY
        return self._of_pieces(found.pieces, part) if found.pieces else (str(found.value),)

    def of_object(self, body: Body, part: Part) -> KnownName:
        """The name of the object in a body."""
        names = [each for each in body.fields if each.path == _NAME or (each.spread and each.path in _AROUND_NAME)]
        return self.of_field(names[0], part) if len(names) == 1 else _ANY

    def of_text(self, node: YamlNode, part: Part) -> KnownName:
        """The text of a string of watches.yaml."""
        if not isinstance(node.value, str):
            return _ANY
        body = self.sources.loaded.library.written_string(node.value, node.site).body
        if not all(isinstance(each, nodes.Output) for each in body):
            return _ANY
        return self._joined((each for output in body for each in output.iter_child_nodes()), part)

    def _line(self, found: Field) -> str:
        path = found.site.path
        if path not in self._lines:
            self._lines[path] = self.sources.loaded.files.get(path, "").split("\n")
        lines = self._lines[path]
        return lines[found.site.line - 1] if 0 < found.site.line <= len(lines) else ""

    def _of_pieces(self, pieces: Iterable[str | Printed], part: Part) -> KnownName:
        found: list[str | None] = []
        for piece in pieces:
            if isinstance(piece, str):
                found.append(piece)
            elif piece.captured is not None:
                found += self._of_pieces(piece.captured, part)
            else:
                found += self._of_node(piece.node, part)
        return tuple(found) if len(found) <= _MAX_PARTS else _ANY

    def _joined(self, operands: Iterable[nodes.Node], part: Part) -> KnownName:
        found = tuple(text for each in operands for text in self._of_node(each, part))
        return found if len(found) <= _MAX_PARTS else _ANY

    def _of_node(self, node: nodes.Node, part: Part) -> KnownName:
        if self._depth > _MAX_DEPTH:
            return _ANY
        self._depth += 1
        try:
            if isinstance(node, nodes.TemplateData):
                return (str(node.data),)
            if isinstance(node, nodes.Const):
                return (str(node.value),)
            if isinstance(node, nodes.Concat):
                return self._joined(node.nodes, part)
            if isinstance(node, nodes.Add):
                return self._joined((node.left, node.right), part)
            path = attribute_path(node)
            return _ANY if path is None else self._of_path(path, part)
        finally:
            self._depth -= 1

    def _of_path(self, path: tuple[object, ...], part: Part) -> KnownName:
        key = (id(part), path)
        if key not in self._paths:
            self._paths[key] = _ANY  # of a name that refers to itself
            self._paths[key] = self._looked_up([str(step) for step in path], part)
        return self._paths[key]

    def _looked_up(self, path: list[str], part: Part) -> KnownName:
        head, *rest = path[1:] if path[0] in ("cr", "live") and len(path) > 1 else path
        watch = self.sources.watch
        if head == "metadata" and len(rest) == 1 and rest[0] in _IDENTITY:
            return (f"{{{{ metadata.{rest[0]} }}}}",)
        if not rest and (assigned := self._set_once(part).get(head)) is not None:
            return self._of_node(assigned, part)
        if head == "vars":
            value: JSON = dict(self.sources.watch.draft.vars)
            for step in rest:
                value = value.get(step) if isinstance(value, dict) else None
            return (value,) if isinstance(value, str) else _ANY
        let = next((each for each in watch.parts if each.let == head), None)
        if let is not None:
            return self._of_let(let, rest)
        if rest != ["metadata", "name"]:
            return _ANY
        child = next((each for each in self.sources.body_parts if each.child and each.child.id == head), None)
        if child is not None and child.child is not None and not child.child.many:
            names = {self.of_object(body, child) for body in self.sources.bodies(child)}
            return names.pop() if len(names) == 1 else _ANY
        observed = watch.draft.observed.get(head)
        table = observed.value if observed is not None else None
        return (
            self.of_text(table.name.node, part)
            if table is not None and table.name is not None and not table.many
            else _ANY
        )

    def _of_let(self, let: Part, path: list[str]) -> KnownName:
        node: YamlNode | None = let.node
        for step in path:
            node = node.value.get(step) if node is not None and isinstance(node.value, dict) else None
        return self.of_text(node, let) if node is not None else _ANY

    def _set_once(self, part: Part) -> dict[str, nodes.Node]:
        """The values of names that a template sets in one place."""
        found = self._assigned.get(id(part))
        if found is None:
            found = self._assigned[id(part)] = {}
            if isinstance(part.compiled, TextTemplate):
                trees = self.sources.loaded.library.written_trees([part.compiled.name])
                names = [each for tree in trees for each in tree.find_all(nodes.Name) if each.ctx != "load"]
                set_names = Counter(each.name for each in names)
                for each in (each for tree in trees for each in tree.find_all(nodes.Assign)):
                    if isinstance(each.target, nodes.Name) and set_names[each.target.name] == 1:
                        found[each.target.name] = each.node
        return found


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
