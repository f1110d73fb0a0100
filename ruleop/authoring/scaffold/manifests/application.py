"""A new project from the manifests of a running application.

Data of Secrets are never copied. A Secret of passwords is generated for each custom resource, once. Any other is one
that users make: the spec has its name, and the rule observes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.from_sample import check_kind
from ruleop.authoring.scaffold.manifests.cleaning import Manifest, SecretRole, clean
from ruleop.authoring.scaffold.manifests.extraction import MARK, PLACEHOLDER, extract, marks
from ruleop.authoring.scaffold.manifests.lifting import Lifted, lift, named, usual
from ruleop.authoring.scaffold.manifests.names import (
    HostNames,
    Links,
    ManifestReference,
    ids,
    label_changes,
    longest_name,
    references,
    shared_name,
    text_changes,
)
from ruleop.authoring.scaffold.manifests.plain_credentials import is_password
from ruleop.authoring.scaffold.naming import camel, expression, free_id, kebab, pascal
from ruleop.authoring.scaffold.new_project import NewChild, NewProject
from ruleop.authoring.scaffold.yaml_layout import TreePath, WrittenExpr, WrittenText, replaced, value_at, walk, without
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import Kind
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.authoring.offline import Document
    from ruleop.authoring.scaffold.manifests.names import SharedName

_OPAQUE: Final = (None, "Opaque")
_DOCKER: Final = "kubernetes.io/dockerconfigjson"


def keys(manifest: Manifest) -> list[str]:
    """The keys of a Secret."""
    data = [manifest.body.get(name) for name in ("data", "stringData")]
    return list(dict.fromkeys(key for each in data if isinstance(each, dict) for key in each))


def is_observed(manifest: Manifest) -> bool:
    """Whether it is a Secret that users make."""
    is_data = manifest.role is SecretRole.DATA and not _is_generated(manifest)
    return manifest.kind.kind == "Secret" and (is_data or manifest.role is SecretRole.GIVEN)


def _is_generated(manifest: Manifest) -> bool:
    """Whether new passwords are as good as those of the application."""
    found = keys(manifest)
    return manifest.body.get("type") in _OPAQUE and bool(found) and all(map(is_password, found))


def generated(manifest: Manifest) -> dict[str, Any]:
    """The Secret with new passwords."""
    body = {name: value for name, value in manifest.body.items() if name not in ("data", "stringData", "immutable")}
    return {**body, "stringData": dict.fromkeys(keys(manifest), WrittenExpr("random_password(24)"))}


def placeholder(manifest: Manifest) -> dict[str, Any]:
    """A Secret of the same name and keys, to be filled in by users."""
    declared = manifest.body.get("type")
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": manifest.name}}
    if declared not in _OPAQUE:
        found["type"] = declared
    value = '{"auths": {}}' if declared == _DOCKER else PLACEHOLDER
    return {**found, "stringData": dict.fromkeys(keys(manifest), value)}


_ORDER: Final = (
    *("ServiceAccount", "Role", "RoleBinding", "Secret", "ConfigMap", "PersistentVolumeClaim", "Service"),
    *("StatefulSet", "Deployment", "DaemonSet", "ReplicaSet", "Pod", "Job", "CronJob"),
    *("HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Ingress"),
)
_READY: Final = {
    **dict.fromkeys(("Deployment", "StatefulSet", "ReplicaSet"), "readyReplicas"),
    "DaemonSet": "numberReady",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that the user gave; empty where the manifests decide."""

    group: str
    version: str
    kind: str
    folder: str
    lift: tuple[str, ...] = ()


def application_project(
    objects: Sequence[Mapping[str, Any]], asked: Asked, *, documents: Sequence[Document] = ()
) -> NewProject:
    """The project whose one custom resource makes the application's objects. `documents` are where these are from."""
    manifests, notes = clean(objects, documents)
    own = [each for each in manifests if not is_observed(each)] or manifests
    shared = shared_name(own, manifests[0].namespace or asked.folder)
    kind = Kind(asked.group, asked.version, asked.kind or pascal(shared.text))
    check_kind(kind)
    extracted = extract(manifests, objects, f"{shared.text}-credentials")
    project = Application(extracted.manifests, shared, kind, notes).project(asked.lift)
    return replace(project, credentials=tuple(extracted.moved))


class Application:
    """The objects of an application, and what their templates need to know of each other."""

    def __init__(self, manifests: list[Manifest], shared: SharedName, kind: Kind, notes: list[str]) -> None:
        self.kind = kind
        self.shared = shared
        self.notes = notes
        known = [each for each in manifests if each.role is SecretRole.GIVEN or not _is_unused_secret(each, manifests)]
        notes += [
            f"{each} was left out: no other object refers to it, and its data are not copied."
            for each in manifests
            if each not in known
        ]
        ranked = sorted(known, key=lambda each: _ORDER.index(each.kind.kind) if each.kind.kind in _ORDER else 99)
        self.observed = [each for each in ranked if is_observed(each)]
        self.children = [each for each in ranked if each not in self.observed]
        self.ids = ids(ranked, shared)
        self.known = {(each.kind.kind, each.name): each for each in ranked}
        self.links = Links()
        self.left: list[tuple[str, str]] = []
        self.names: dict[str, str] = {}
        name = kebab(shared.text)
        self.name = name if name[0].isalpha() else f"x-{name}"

    def project(self, lift_paths: tuple[str, ...]) -> NewProject:
        lifted = Lifted()
        children = self._templates(lifted, lift_paths)
        sample = {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": {"name": self.name},
            "spec": lifted.spec,
        }
        return NewProject(
            kind=self.kind,
            samples=(sample,),
            spec=lifted.schema(),
            children=tuple(children),
            longest_name=max(len(self.name), longest_name(self.children, self.shared)),
            observe={self.ids[str(each)]: _observe(self.names[str(each)]) for each in self.observed},
            status=self._status(),
            existing=tuple(placeholder(each) for each in self.observed),
            notes=tuple(dict.fromkeys([*self.notes, *self._secret_notes(self.names)])),
            lifted=tuple(lifted.shown),
            left=tuple(self.left),
        )

    def _templates(self, lifted: Lifted, lift_paths: tuple[str, ...]) -> list[NewChild]:
        """The children, with lifted fields: those of the paths, or else those that usually vary."""
        self._leave_replicas_to_autoscalers()
        followed = {str(each): list(references(each.body)) for each in self.children}
        known = HostNames.of([*self.children, *self.observed])
        texts = {str(each): text_changes(each, known, self.shared) for each in self.children}
        self.left = [row for each in texts.values() for row in each.left]
        hosts = {name: each.changes for name, each in texts.items()}
        taken = {
            name: [*(each.path for each in found if self._target(each)), *hosts[name]]
            for name, found in followed.items()
        }
        named_ones = named(self.children, self.shared, lift_paths) if lift_paths else None
        lift(list(named_ones or usual(self.children, self.shared)), taken, lifted)
        self.names = self._secret_names(lifted)
        labels = label_changes(self.children, self.shared)
        children = []
        for manifest in self.children:
            own = str(manifest)
            changes = {
                **hosts[own],
                **self._namespaces(manifest, followed[own]),
                **self._references(manifest, followed[own]),
                **labels[own],
                **lifted.changes.get(own, {}),
                ("metadata", "name"): self.shared.template(manifest.name),
            }
            children.append(self._child(manifest, changes))
        return children

    def _leave_replicas_to_autoscalers(self) -> None:
        for number, manifest in enumerate(self.children):
            for scaler in self.children:
                kind, name = (value_at(scaler.body, ("spec", "scaleTargetRef", each)) for each in ("kind", "name"))
                same = (kind, name) == (manifest.kind.kind, manifest.name)
                if same and value_at(manifest.body, ("spec", "replicas")) is not None:
                    body = without(manifest.body, ("spec", "replicas"))
                    self.children[number] = replace(manifest, body=body)
                    self.notes.append(f"{manifest} has no replicas: {scaler} decides them.")

    # -- what follows the new names ----------------------------------------------------------------------------------

    def _target(self, reference: ManifestReference) -> Manifest | None:
        return self.known.get((reference.kind, reference.name))

    def _references(self, manifest: Manifest, found: list[ManifestReference]) -> dict[TreePath, Any]:
        changes: dict[TreePath, Any] = {}
        own = self.ids[str(manifest)]
        for reference in found:
            target = self._target(reference)
            if target is None:
                self._note_other(manifest, reference, changes)
                continue
            there = self.ids[str(target)]
            if not _is_optional(target) and self.links.add(own, there):
                changes[reference.path] = WrittenExpr(f"{there}.metadata.name")
            else:
                changes[reference.path] = self.shared.template(reference.name)
        return changes

    def _note_other(self, manifest: Manifest, reference: ManifestReference, changes: dict[TreePath, Any]) -> None:
        """A reference to an object that is not among the manifests: an application's own is renamed with it."""
        what = f"{manifest} refers to {reference.kind}/{reference.name}, which is not among the manifests"
        if self.shared.has(reference.name):
            changes[reference.path] = self.shared.template(reference.name)
            new = self.shared.rendered(reference.name, "NAME")
            self.notes.append(f"{what}: it has to exist as {new}, where NAME is that of the {self.kind.kind}.")
        elif (reference.kind, reference.name) != ("ServiceAccount", "default"):
            self.notes.append(f"{what}: it has to exist under this name.")

    def _namespaces(self, manifest: Manifest, found: list[ManifestReference]) -> dict[TreePath, Any]:
        """Fields that name the namespace of the application, such as those of a RoleBinding's subjects."""
        own = {(*each.path[:-1], "namespace") for each in found if self._target(each)}
        return {
            path: WrittenExpr("metadata.namespace")
            for path, value in walk(manifest.body)
            if path[-1:] == ("namespace",) and isinstance(value, str) and (value == manifest.namespace or path in own)
        }

    # -- the parts of the project ------------------------------------------------------------------------------------

    def _child(self, manifest: Manifest, changes: dict[TreePath, Any]) -> NewChild:
        is_secret = manifest.kind.kind == "Secret" and manifest.role is SecretRole.DATA
        body = generated(manifest) if is_secret else manifest.body
        metadata = value_at(body, ("metadata",))
        template = replaced({**body, "metadata": {"name": manifest.name, **metadata}}, changes)
        if manifest.role is SecretRole.FILE:
            template = self._with_data(template)
        return NewChild(
            self.ids[str(manifest)],
            template,
            create_only=is_secret,
            optional=_is_optional(manifest),
            settings={"deletion": "orphan"} if manifest.stays else {},
        )

    def _with_data(self, value: Any) -> Any:
        """The template with an expression in place of each mark."""
        if isinstance(value, dict):
            return {key: self._with_data(each) for key, each in value.items()}
        parts = value.parts if isinstance(value, WrittenText) else (value,)
        if not any(isinstance(each, str) and MARK.search(each) for each in parts):
            return value
        found: list[str | WrittenExpr] = []
        for part in parts:
            for text, secret, key in marks(part) if isinstance(part, str) else ():
                data = expression(self.ids[f"Secret/{secret}"], "data", key) if secret else ""
                found += [text, *([WrittenExpr(f"{data} | b64decode")] if data else [])]
            found += [] if isinstance(part, str) else [part]
        return WrittenText(tuple(each for each in found if each))

    def _secret_names(self, lifted: Lifted) -> dict[str, str]:
        """The expressions for the names of Secrets that users make, which the spec has from now on."""
        found = {}
        for manifest in self.observed:
            rest = self.shared.rest(manifest.name)
            last = camel(rest, "secret") if not rest.endswith("secret") else camel(rest)
            schema = {"type": "string", "minLength": 1, "maxLength": 253}
            name = lifted.add((last,), manifest.name, schema, required=True)
            found[str(manifest)] = expression("spec", *name)
            lifted.shown.append((expression("spec", *name), f"{manifest}:metadata.name"))
        return found

    def _secret_notes(self, names: Mapping[str, str]) -> list[str]:
        notes = [
            f"{each} was not copied: each {self.kind.kind} gets new random passwords, once."
            for each in self.children
            if each.kind.kind == "Secret" and each.role is SecretRole.DATA
        ]
        notes += [
            f"{each} was a ConfigMap: it has credentials, and pods use the Secret in its place."
            for each in self.children
            if each.role is SecretRole.FILE
        ]
        for each in self.observed:
            what = "was not copied: users make such a Secret, and"
            if each.role is SecretRole.GIVEN and each.document is None:
                what = "has the credentials of the manifests: users make it, and"
            notes.append(f"{each} {what} {names[str(each)]} has its name. existing/{each.name}.yaml is a placeholder.")
        return notes

    def _status(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for manifest in self.children:
            counted = _READY.get(manifest.kind.kind)
            if counted:
                rest = self.shared.rest(manifest.name)
                name = free_id(camel(rest, "readyReplicas") if rest else "readyReplicas", found)
                found[name] = f"{self.ids[str(manifest)]}.status.{counted} | default(0)"
        return found


def _is_optional(manifest: Manifest) -> bool:
    """Whether a cluster may lack the kind: it is not built in."""
    return builtin_resource(manifest.kind) is None


def _is_unused_secret(manifest: Manifest, manifests: Sequence[Manifest]) -> bool:
    """Whether a Secret of the application is one that users make, for which nothing of the application asks."""
    return is_observed(manifest) and not any(
        (each.kind, each.name) == ("Secret", manifest.name)
        for other in manifests
        if other is not manifest
        for each in references(other.body)
    )


def _observe(name: str) -> dict[str, Any]:
    return {"version": "v1", "kind": "Secret", "name": WrittenExpr(name)}
