"""Objects, and keys of them, that children refer to by a name that nothing in the rules provides.

A Pod with such a reference waits for ever (CreateContainerConfigError, FailedMount); an Ingress, an autoscaler or a
binding has no effect. An object whose name is in the spec is provided by the author of the custom resource. Otherwise
a child or an observed object has the name, or a field mentions it by which somebody else creates the object: one of a
custom kind, an annotation, an argument of a program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ruleop.authoring.checking.known_names import ANY, OF_CR, KnownName, KnownNames, may_be, text_of
from ruleop.authoring.checking.pods import MAKE_NOTHING, fields_of_pod
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import GroupKind
from ruleop.language.templates import TextTemplate
from ruleop.nearest import did_you_mean, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.language.rules import Findings
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates.bodies.body import Body, BodyField, FieldPath

_CONFIG_MAP, _SECRET, _ACCOUNT, _SERVICE, _CLAIM = (
    GroupKind("", kind) for kind in ("ConfigMap", "Secret", "ServiceAccount", "Service", "PersistentVolumeClaim")
)
_RBAC: Final = "rbac.authorization.k8s.io"
_STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")
_INGRESS: Final = GroupKind("networking.k8s.io", "Ingress")
_BINDINGS: Final = frozenset({GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding")})
SCALERS: Final = frozenset({GroupKind("autoscaling", "HorizontalPodAutoscaler"), GroupKind("keda.sh", "ScaledObject")})
_DEPLOYMENT: Final = GroupKind("apps", "Deployment")
_IN_PODS: Final[dict[FieldPath, GroupKind]] = {
    ("configMapKeyRef", "name"): _CONFIG_MAP,
    ("configMapRef", "name"): _CONFIG_MAP,
    ("configMap", "name"): _CONFIG_MAP,  # of a volume, or of a part of a projected one
    ("secretKeyRef", "name"): _SECRET,
    ("secretRef", "name"): _SECRET,
    ("secret", "name"): _SECRET,
    ("secret", "secretName"): _SECRET,
    ("persistentVolumeClaim", "claimName"): _CLAIM,
}
_OF_CLUSTER: Final = frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"})
"""ConfigMaps that every namespace has."""
_MAKE_NO_OBJECTS: Final = frozenset({"monitoring.coreos.com", "gateway.networking.k8s.io", "snapshot.storage.k8s.io"})
"""Groups whose controllers make no ConfigMaps and Secrets named after an object. Others may: db-app for db."""
_DATA: Final = frozenset({"data", "stringData", "binaryData"})
_KEY: Final = re.compile(r"([-.\w]+)['\"]?\s*:")
_FILLED: Final = frozenset({"kubernetes.io/service-account-token"})
"""Types of Secrets whose data the cluster writes."""


_Certainty = Literal["needed", "own", "related", "beside"]
"""Whether a missing object is a mistake: always; if its name derives from that of the CR, as others may be of the
platform; if it is not just the name of the CR, which may be named after an object of its author, or the rules make
other objects of this kind; only if they do."""


class ObjectReference(NamedTuple):
    kind: GroupKind
    name: BodyField
    certainty: _Certainty
    keys: tuple[BodyField, ...] = ()


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
    owners: list[tuple[GroupKind, str]] = field(default_factory=list)  # of custom kinds, whose controllers make objects
    mentions: list[tuple[BodyField, str]] = field(default_factory=list)

    def may_have(self, reference: ObjectReference, name: str) -> bool:
        if any(may_be(each.name, (name,)) for each in self.objects.get(reference.kind, ())):
            return True
        if any(_makes(kind, owner, reference.kind, name) for kind, owner in self.owners):
            return True
        whole = re.compile(rf"(?<![\w.}}-]){re.escape(name)}(?![\w.{{-])")
        return any(whole.search(text) for field, text in self.mentions if field is not reference.name)

    def names(self, kind: GroupKind) -> dict[str, str]:
        """The children of a kind whose names are known, by these."""
        return {text: each.child for each in self.objects.get(kind, ()) if each.child and (text := text_of(each.name))}


def check_references(all_names: list[KnownNames], findings: Findings) -> None:
    """Of all watches together: a custom resource may be a child of another one, and read what that one provides."""
    provided = [_provided(names) for names in all_names]
    for names, own in zip(all_names, provided, strict=True):
        for part in names.sources.body_parts:
            for body in names.sources.bodies(part):
                for reference in (*_references_of_pods(body), *references(body)):
                    name = text_of(names.of_field(reference.name, part))
                    if name and not any(each.may_have(reference, name) for each in provided):
                        _report_missing(reference, name, own, findings)
                    elif name:
                        _check_keys(reference, name, own, findings)


def _references_of_pods(body: Body) -> Iterator[ObjectReference]:
    in_pod = {path: found for found, path in fields_of_pod(body)}
    for path, name in in_pod.items():
        if path == ("serviceAccountName",):
            yield ObjectReference(_ACCOUNT, name, "own")
        elif path[:1] == ("imagePullSecrets",) and path[2:] == ("name",):
            yield ObjectReference(_SECRET, name, "own")
        elif (kind := _IN_PODS.get(path[-2:])) is not None:
            optional = in_pod.get((*path[:-1], "optional"))
            if optional is None or optional.value is False:
                yield ObjectReference(kind, name, "needed", tuple(_keys(in_pod, path[:-1])))


def references(body: Body) -> Iterator[ObjectReference]:
    """Those of other objects than Pods."""
    kind, fields = body.kind.versionless, {each.path: each for each in body.fields}
    if kind == _STATEFUL_SET and (name := fields.get(("spec", "serviceName"))) is not None:
        yield ObjectReference(_SERVICE, name, "beside")  # its Pods work without, and have no names in DNS
    elif kind in SCALERS:
        yield from _scaled(fields)
    elif kind in _BINDINGS:
        yield from _bound(fields)
    elif kind == _INGRESS:
        has_annotations = any(each.path[:2] == ("metadata", "annotations") or _is_open(each) for each in body.fields)
        for path, found in fields.items():
            if path[-2:] == ("service", "name"):
                yield ObjectReference(_SERVICE, found, "related")
            elif path[-1:] == ("secretName",) and not has_annotations:  # by which cert-manager makes it
                yield ObjectReference(_SECRET, found, "beside")


def _is_open(found: BodyField) -> bool:
    return found.spread and len(found.path) < len(("metadata", "annotations"))


def _scaled(fields: dict[FieldPath, BodyField]) -> Iterator[ObjectReference]:
    target = ("spec", "scaleTargetRef")
    name, kind, version = (fields.get((*target, step)) for step in ("name", "kind", "apiVersion"))
    if name is None or any(each is not None and any(each.slots) for each in (kind, version)):
        return
    group = str(version.value).rpartition("/")[0] if version is not None else "apps"
    yield ObjectReference(GroupKind(group, str(kind.value)) if kind is not None else _DEPLOYMENT, name, "related")


def _bound(fields: dict[FieldPath, BodyField]) -> Iterator[ObjectReference]:
    for path, name in fields.items():
        kind, namespace = (fields.get((*path[:-1], step)) for step in ("kind", "namespace"))
        if path[-1:] != ("name",) or kind is None or any(kind.slots):
            continue
        if path[:1] == ("roleRef",):
            yield ObjectReference(GroupKind(_RBAC, str(kind.value)), name, "related")
        elif path[:1] == ("subjects",) and kind.value == "ServiceAccount" and _is_here(namespace):
            yield ObjectReference(_ACCOUNT, name, "related")


def _is_here(namespace: BodyField | None) -> bool:
    """Whether a namespace is that of the CR."""
    slots = [*namespace.slots] if namespace is not None else []
    return namespace is None or [each.place.expression for each in slots] == ["metadata.namespace"]


def _keys(in_pod: dict[FieldPath, BodyField], source: FieldPath) -> Iterator[BodyField]:
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
            found.objects.setdefault(kind, []).append(_Provider(ANY))
    for entry in names.sources.watch.draft.observed.values():
        table = entry.value
        if table is None or table.kind is None:
            continue
        kind = GroupKind(table.group.text, table.kind.text)
        if table.name is None:
            found.objects.setdefault(kind, []).append(_Provider(ANY))
        else:
            node = table.name.node
            part = next(each for each in names.sources.watch.parts if each.node is node)
            found.objects.setdefault(kind, []).append(_Provider(names.of_text(node, part)))
    return found


def _add_body(found: _Provided, body: Body, part: RulePart, names: KnownNames) -> None:
    name, child = names.of_object(body, part), part.child.id if part.child is not None else ""
    files = part.compiled.files if isinstance(part.compiled, TextTemplate) else ()
    texts = names.sources.loaded.library.texts
    written = frozenset(key for file in files for key in _KEY.findall(texts[file]))
    provider = _Provider(name, child, _keys_of(body, part), written)
    found.objects.setdefault(body.kind.versionless, []).append(provider)
    if body.kind.versionless == _STATEFUL_SET:
        found.objects.setdefault(_CLAIM, []).extend(_claims(body, name, part, names))
    is_custom = builtin_resource(body.kind) is None
    if is_custom and (owner := text_of(name)):
        found.owners.append((body.kind.versionless, owner))
    for each in body.fields:
        if is_custom or _mentions({step for step in each.path if isinstance(step, str)}):
            known = names.of_field(each, part)
            found.mentions.append((each, "".join(text if isinstance(text, str) else "\0" for text in known)))


def _makes(kind: GroupKind, owner: str, made: GroupKind, name: str) -> bool:
    """Whether the controller of a custom kind may make an object of this kind and name for the object `owner`."""
    if made in (_CONFIG_MAP, _SECRET):
        return kind.group not in _MAKE_NO_OBJECTS and name.startswith(f"{owner}-")
    return kind not in MAKE_NOTHING and owner in name  # such as prometheus-db


def _claims(body: Body, name: KnownName, part: RulePart, names: KnownNames) -> Iterator[_Provider]:
    """Those that a StatefulSet makes for its Pods: data-db-0."""
    for each in body.fields:
        if each.path[:2] == ("spec", "volumeClaimTemplates") and (
            each.path[3:] == ("metadata", "name") or len(each.path) < 4
        ):
            yield _Provider((*names.of_field(each, part), "-", *name, "-", *ANY))


def _mentions(steps: set[str]) -> bool:
    """Whether a field of a built-in kind may name an object that somebody else creates: an argument, an annotation, the
    certificate of an Ingress, or a permission to create it."""
    return bool(steps & {"args", "command", "annotations", "tls", "resourceNames"}) or {"env", "value"} <= steps


def _keys_of(body: Body, part: RulePart) -> frozenset[str] | None:
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


def _report_missing(reference: ObjectReference, name: str, own: _Provided, findings: Findings) -> None:
    children = own.names(reference.kind)
    if name in _OF_CLUSTER or not _is_mistake(reference, name, children):
        return
    kind = reference.kind.kind
    similar = nearest(name, children) or (next(iter(children)) if len(children) == 1 else None)
    child = children.get(similar or "", "")
    hint = f' (the {kind} of the child "{child}" is named {similar})' if child else ""
    is_optional = reference.certainty == "needed" and reference.kind != _CLAIM
    to_do = "observe it, or set `optional: true`" if is_optional else "or observe it"
    message = f"nothing provides the {kind} {name}{hint}: make it a child, {to_do}"
    findings.warning("missing-reference", message, reference.name.site)


def _is_mistake(reference: ObjectReference, name: str, children: dict[str, str]) -> bool:
    match reference.certainty:
        case "needed":
            return True
        case "beside" if not children:
            return False
        case "related" if not children and name == OF_CR:
            return False
    is_derived = OF_CR in name
    return is_derived or (reference.certainty != "own" and nearest(name, children) is not None)


def _check_keys(reference: ObjectReference, name: str, own: _Provided, findings: Findings) -> None:
    """Reports keys that the one child with this name does not have."""
    providers = [each for each in own.objects.get(reference.kind, ()) if may_be(each.name, (name,))]
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
