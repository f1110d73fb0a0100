"""References of children to objects, keys of them and Pods that the rules do not provide; and fields that both the
rules and an autoscaler set.

A Pod with such a reference waits for ever (CreateContainerConfigError, FailedMount); an Ingress, an autoscaler or a
binding has no effect. An object whose name is in the spec is provided by the author of the custom resource. Otherwise a
child or an observed object has the name, or a field mentions it by which somebody else creates the object: one of a
custom kind, an annotation, an argument of a program.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ruleop.authoring.checking.dataflow import MAKE_NOTHING, fields_of_pod, pod_template
from ruleop.authoring.checking.known_names import (
    ANY,
    OF_CR,
    KnownMembers,
    KnownName,
    KnownNames,
    UnknownName,
    can_be,
    may_be,
    shown,
    text_of,
)
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import GroupKind
from ruleop.language.templates import TextTemplate
from ruleop.language.templates.syntax import names_in
from ruleop.nearest import did_you_mean, nearest
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.checking.known_names import KnownName, KnownNames
    from ruleop.errors import Site
    from ruleop.language.rules import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft
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
class Provided:
    """The objects that the children of a watch provide, and the Pods that they make. A custom resource may be a child
    of another one, and read what that one provides, so all watches are asked for it first."""

    objects: dict[GroupKind, list[_Provider]] = dataclasses.field(default_factory=dict)
    owners: list[tuple[GroupKind, str]] = dataclasses.field(
        default_factory=list
    )  # of custom kinds, whose controllers make objects
    mentions: list[tuple[BodyField, str]] = dataclasses.field(default_factory=list)
    pods: list[_Pods] = dataclasses.field(default_factory=list)
    may_be_others: bool = False  # Pods

    @classmethod
    def by(cls, names: KnownNames) -> Provided:
        found = cls()
        _add_objects(found, names)
        _add_pods(found, names)
        return found

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


def check_references(names: KnownNames, own: Provided, provided: Sequence[Provided], findings: Findings) -> None:
    """`provided`: by all watches."""
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
        has_annotations = any(
            each.path[:2] == ("metadata", "annotations") or (each.spread and len(each.path) < 2) for each in body.fields
        )
        for path, found in fields.items():
            if path[-2:] == ("service", "name"):
                yield ObjectReference(_SERVICE, found, "related")
            elif path[-1:] == ("secretName",) and not has_annotations:  # by which cert-manager makes it
                yield ObjectReference(_SECRET, found, "beside")


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


# -- objects that the rules provide ------------------------------------------------------------------------------------


def _add_objects(found: Provided, names: KnownNames) -> None:
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


@functools.lru_cache(maxsize=512)
def _keys_in(text: str) -> frozenset[str]:
    return frozenset(_KEY.findall(text))


def _add_body(found: Provided, body: Body, part: RulePart, names: KnownNames) -> None:
    name, child = names.of_object(body, part), part.child.id if part.child is not None else ""
    files = part.compiled.files if isinstance(part.compiled, TextTemplate) else ()
    texts = names.sources.loaded.library.texts
    written = frozenset[str]().union(*(_keys_in(texts[file]) for file in files))
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


# -- missing objects ---------------------------------------------------------------------------------------------------


def _report_missing(reference: ObjectReference, name: str, own: Provided, findings: Findings) -> None:
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


def _check_keys(reference: ObjectReference, name: str, own: Provided, findings: Findings) -> None:
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


# -- selectors ---------------------------------------------------------------------------------------------------------
# Selectors of Services, PodDisruptionBudgets and NetworkPolicies that select the Pods of no child.
#
# Such a Service has no endpoints, and such a budget guards nothing; nothing reports it in a cluster. Labels are
# compared as far as they are known before anything is rendered. A selector may be for Pods of others: nothing is
# reported where the rule makes no Pods, observes some, or has a child of a custom kind whose controller may make some.
#
# A workload whose own selector does not match the labels of its Pods is refused by the API server.

_SELECTOR: Final = ("spec", "selector")
_POLICY: Final = GroupKind("networking.k8s.io", "NetworkPolicy")
_SELECTORS: Final[dict[GroupKind, FieldPath]] = {
    GroupKind("", "Service"): _SELECTOR,
    GroupKind("policy", "PodDisruptionBudget"): _SELECTOR,
    _POLICY: ("spec", "podSelector"),
}
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
_SET_BY_CONTROLLERS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that Pods have without being in a template."""
_CONTAINERS: Final[frozenset[FieldPath]] = frozenset({(), ("containers",), ("initContainers",)})
_END: Final = frozenset({"Job", "CronJob"})
"""Kinds whose Pods serve nothing: a rule of these alone selects the Pods of others."""


class _Required(NamedTuple):
    """A label that a selector requires."""

    values: tuple[KnownName, ...]  # one of them; none: any
    site: Site


@dataclass(frozen=True, slots=True)
class _Pods:
    child: str
    labels: KnownMembers
    ports: frozenset[KnownName]  # the names of the ports of their containers
    end: bool


def check_selectors(names: KnownNames, own: Provided, provided: Sequence[Provided], findings: Findings) -> None:
    """`provided`: by all watches."""
    for part in names.sources.body_parts:
        _check_own(part, names, findings)
        if own.may_be_others or all(pods.end for pods in own.pods):
            continue
        for body in names.sources.bodies(part):
            required = _required(body, part, names)
            if not required:
                continue
            selected = [
                pods
                for others in provided
                for pods in others.pods
                if all(_has(key, each, pods.labels) for key, each in required.items())
            ]
            if selected:
                _check_target_ports(body, part, names, selected, findings)
            else:
                _report(required, body.kind.versionless, own.pods, findings)


def _add_pods(found: Provided, names: KnownNames) -> None:
    for part in names.sources.body_parts:
        bodies, kinds = names.sources.bodies(part), part.child.kinds if part.child is not None else frozenset()
        read = {body.kind for body in bodies}
        found.may_be_others |= any(each not in read and pod_template(each.versionless) is not None for each in kinds)
        custom = {each.versionless for each in kinds if builtin_resource(each) is None}
        found.may_be_others |= not custom <= MAKE_NOTHING
        is_partial = part.child is not None and part.child.table.patch is not None
        for body in bodies:
            if (template := pod_template(body.kind.versionless)) is not None:
                labels = names.of_members(body, (*template, "metadata", "labels"), part)
                labels.is_open |= is_partial
                child = part.child.id if part.child is not None else ""
                ports = frozenset({ANY}) if is_partial else _ports_of(body, (*template, "spec"), part, names)
                found.pods.append(_Pods(child, labels, ports, body.kind.kind in _END))
    for entry in names.sources.watch.draft.observed.values():
        table = entry.value
        if table is not None and table.kind is not None:
            found.may_be_others |= pod_template(GroupKind(table.group.text, table.kind.text)) is not None


def _ports_of(body: Body, spec: FieldPath, part: RulePart, names: KnownNames) -> frozenset[KnownName]:
    """The names of the ports of a Pod's containers; any, where ports may be among what is printed."""
    found = set()
    for each in body.fields:
        below = each.path[len(spec) :]
        if each.path[: len(spec)] != spec[: len(each.path)] or below[:1] not in _CONTAINERS:
            continue
        match below[1:]:
            case (_, "ports", _, "name"):
                found.add(names.of_field(each, part))
            case () | (_,) | (_, "ports") | (_, "ports", _) if any(each.slots):
                found.add(ANY)
            case within if "*" in within:
                found.add(ANY)
    return frozenset(found)


# -- labels that a selector requires -----------------------------------------------------------------------------------


def _required(body: Body, part: RulePart, names: KnownNames) -> dict[str, _Required]:
    """The labels that a selector for Pods requires, as far as they are known."""
    kind = body.kind.versionless
    path = _SELECTORS.get(kind)
    if path is None:
        return {}
    if kind.group == "":
        return _labels(names.of_members(body, path, part), body, path)
    return _full(body, path, part, names)


def _full(body: Body, path: FieldPath, part: RulePart, names: KnownNames) -> dict[str, _Required]:
    """The labels of `matchLabels` and `matchExpressions`."""
    of_labels = (*path, "matchLabels")
    found = _labels(names.of_members(body, of_labels, part), body, of_labels)
    expressions: dict[object, dict[object, list[BodyField]]] = defaultdict(lambda: defaultdict(list))
    for each in body.fields:
        if each.path[: len(path) + 1] == (*path, "matchExpressions") and len(each.path) > len(path) + 2:
            expressions[each.path[len(path) + 1]][each.path[len(path) + 2]].append(each)
    for members in expressions.values():
        key, operator = members["key"], members["operator"]
        if len(key) == len(operator) == 1 and not any(key[0].slots) and operator[0].value in ("In", "Exists"):
            allowed = tuple(names.of_field(each, part) for each in members["values"])
            found.setdefault(str(key[0].value), _Required(allowed, key[0].site))
    return found


def _labels(members: KnownMembers, body: Body, path: FieldPath) -> dict[str, _Required]:
    whole = next((each.site for each in body.fields if each.path == path), None)
    found = {}
    for key, value in members.known.items():
        written = members.fields.get(key)
        site = written.site if written is not None else whole
        if site is not None:
            found[key] = _Required((value,), site)
    return found


def _has(key: str, required: _Required, labels: KnownMembers) -> bool:
    if key not in labels.known:
        return labels.is_open or key in _SET_BY_CONTROLLERS
    return not required.values or any(may_be(value, labels.known[key]) for value in required.values)


# -- ports of Services -------------------------------------------------------------------------------------------------


def _check_target_ports(
    body: Body, part: RulePart, names: KnownNames, selected: Sequence[_Pods], findings: Findings
) -> None:
    """Reports a port of a Service that has the name of no port of its Pods: it has no endpoints."""
    known = {port for pods in selected for port in pods.ports}
    for each in body.fields if body.kind.versionless == _SERVICE else ():
        if each.path[:2] != ("spec", "ports") or each.path[3:] != ("targetPort",) or isinstance(each.value, int):
            continue
        name = names.of_field(each, part)
        if not any(may_be(name, port) for port in known):
            hint = did_you_mean(text_of(name), [text_of(port) for port in known])
            message = f'the Pods of "{selected[0].child}" have no port named {shown(name)}{hint}'
            findings.warning("missing-reference", message, each.site)


# -- selectors of no Pods ----------------------------------------------------------------------------------------------


def _report(required: dict[str, _Required], kind: GroupKind, made: list[_Pods], findings: Findings) -> None:
    similar = max(made, key=lambda pods: sum(_has(key, each, pods.labels) for key, each in required.items()))
    wrong = {key: each for key, each in required.items() if not _has(key, each, similar.labels)}
    if kind == _POLICY and not _is_for_own(wrong, similar.labels):
        return
    key, first = next(iter(wrong.items()))
    of_pods = similar.labels.known.get(key)
    has = f"{key}: {shown(of_pods)}" if of_pods is not None else f"no label {key}"
    message = (
        f'selects the Pods of no child: {_text(key, first)} is required, and the Pods of "{similar.child}" have {has}'
    )
    findings.warning("unmatched-selector", message, first.site)


def _is_for_own(wrong: dict[str, _Required], labels: KnownMembers) -> bool:
    """Whether a selector that may be for Pods of others is meant for these: it has their keys, and the name of the
    CR."""
    return all(key in labels.known for key in wrong) and any(
        OF_CR in value for each in wrong.values() for value in each.values
    )


def _text(key: str, required: _Required) -> str:
    return f"{key}: {' or '.join(map(shown, required.values))}" if required.values else key


def _check_own(part: RulePart, names: KnownNames, findings: Findings) -> None:
    """Of a workload, in all bodies that have the place: some may never be rendered."""
    if part.child is None or part.child.table.patch is not None:
        return
    seen: dict[Site, list[str]] = {}
    for body in names.sources.bodies(part):
        template = pod_template(body.kind.versionless)
        if template is None or body.kind.kind not in _WORKLOADS:
            continue
        of_pods = (*template, "metadata", "labels")
        labels = names.of_members(body, of_pods, part)
        compared = [each for each in body.fields for path in (_SELECTOR, of_pods) if each.path[: len(path)] == path]
        has_slots = any(slot for each in compared for slot in each.slots)  # literals are refused as such
        for key, each in _full(body, _SELECTOR, part, names).items():
            seen.setdefault(each.site, []).append(_refusal(key, each, labels) if has_slots else "")
    for site, refusals in seen.items():
        if all(refusals):
            findings.mistake("unmatched-selector", refusals[0], site)


def _refusal(key: str, required: _Required, labels: KnownMembers) -> str:
    """The reason that the API server refuses a workload; "" if it may accept it."""
    value = labels.known.get(key)
    if value is None:
        return (
            "" if labels.is_open else f"the selector requires the label {key}, and the Pods of the template have none"
        )
    if not required.values or any(can_be(each, value) for each in required.values):
        return ""
    return f"the selector requires {_text(key, required)}, and the Pods of the template have {key}: {shown(value)}"


# -- scaled replicas ---------------------------------------------------------------------------------------------------
# Workloads of which both the rule and an autoscaler set `spec.replicas`.
#
# Each pass reverts what the autoscaler has done, until it backs off. The field is left to the autoscaler by
# `apply.ignore`, or by leaving it out. What reads the live object may follow the autoscaler, and is not reported.

_REPLICAS: Final = ("spec", "replicas")
_LEAVE_IT: Final = frozenset({"live", "omit"})


def check_scaled_replicas(names: KnownNames, findings: Findings) -> None:
    for part in names.sources.body_parts:
        for body in names.sources.bodies(part):
            if part.child is None or body.kind.versionless not in SCALERS:
                continue
            for reference in references(body):
                scaled = reference.kind, names.of_field(reference.name, part)
                for child, field in _set_replicas(*scaled, scaler=part.child, names=names):
                    message = (
                        f'the {body.kind.kind} of "{part.child.id}" sets `spec.replicas`, and each pass reverts it: '
                        f'add `apply: {{ignore: [spec.replicas]}}` to "{child.id}", or leave the field out'
                    )
                    findings.warning("scaled-replicas", message, field.site)


def _set_replicas(
    kind: GroupKind, name: KnownName, *, scaler: ChildDraft, names: KnownNames
) -> Iterator[tuple[ChildDraft, BodyField]]:
    """The children that are scaled under this name, with the fields by which they set their replicas."""
    if any(part == UnknownName() for part in name):
        return
    for part in names.sources.body_parts:
        child = part.child
        if child is None or _leaves_replicas(child) or _condition(child) not in ("", _condition(scaler)):
            continue
        named = [body for body in names.sources.bodies(part) if body.kind.versionless == kind]
        if all(names.of_object(body, part) == name for body in named):
            fields = [_replicas(body) for body in named]
            if None not in fields:
                yield from {(child.id, field.site): (child, field) for field in fields if field is not None}.values()


def _replicas(body: Body) -> BodyField | None:
    """The field, unless a condition may leave it to others."""
    found = next((each for each in body.fields if each.path == _REPLICAS), None)
    slots = [*found.slots] if found is not None else []
    return None if any(_LEAVE_IT & names_in(slot.node) for slot in slots) else found


def _leaves_replicas(child: ChildDraft) -> bool:
    ignored = (each.path.segments for each in child.ignore if each.path is not None)
    return (
        child.create_only
        or child.final
        or child.table.patch is not None
        or any(path == _REPLICAS[: len(path)] for path in ignored)
    )


def _condition(child: ChildDraft) -> str:
    return child.table.when.compiled.source if child.table.when is not None else ""
