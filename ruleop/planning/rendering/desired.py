"""The desired objects of a child: its body rendered for one CR, validated, with namespace and ruleop's own metadata.

A rendered object is rejected unless its kind is one that the template declares, the rule may write to its namespace,
and it sets no field that belongs to the server, to the garbage collector or to ruleop.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ruleop.errors import RenderError, Site
from ruleop.kubernetes.kinds import JSON, Kind, Object, ObjectKey
from ruleop.kubernetes.merge import canonical
from ruleop.kubernetes.names import (
    KEY_IN_WORDS,
    LABEL_IN_WORDS,
    VALUE_IN_WORDS,
    is_label,
    is_label_key,
    is_label_value,
    is_object_name,
    name_in_words,
)
from ruleop.language.rules import REFUSED_METADATA, Given, Patched
from ruleop.language.templates import NONDETERMINISTIC, TextTemplate
from ruleop.language.templates.values.cost import METER, Exhausted, bytes_of
from ruleop.messages import shortened
from ruleop.planning.model.marks import ITEM, MANAGED_BY, OWNER, RESERVED, RULEOP, ItemRecord, Owner
from ruleop.planning.model.observed import KindInfo, Served
from ruleop.planning.rendering.randomness import COSTLY, different_time, is_due, random_keys
from ruleop.planning.rendering.unplanned import ChildFails, ChildWaits, child_error
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.language.rules import Child
    from ruleop.language.templates import Expression, StringTemplate
    from ruleop.planning.model.observed import Kinds
    from ruleop.planning.rendering.scope import ResourceScope


@dataclass(frozen=True, slots=True)
class Desired:
    """One desired object of a child."""

    key: ObjectKey
    kind: Kind
    document: Object | Unrendered
    info: KindInfo
    names: Mapping[str, Any]  # the scope that it was rendered in
    orphan: bool
    rotated: frozenset[str] = frozenset()  # the keys of the Secret whose values are regenerated in this pass
    recreate: bool = False  # it is deleted and created again when the server rejects a change of an immutable field
    item: ItemRecord | None = None  # the item that it is recorded for

    @property
    def rendered(self) -> Object:
        """With its namespace, without ruleop's own metadata."""
        document = self.document
        return document.of(self.key) if isinstance(document, Unrendered) else document

    @property
    def is_settled(self) -> bool:
        """Whether it is the same as in the last plan."""
        return isinstance(self.document, Unrendered)

    @property
    def digest(self) -> str:
        """A failure is recorded for one digest; a changed digest is an edit, not drift. So is a change of the item
        alone."""
        source = self.rendered if self.item is None else {**self.rendered, ITEM: self.item.items}
        return hashlib.blake2b(canonical(source), digest_size=12).hexdigest()

    def renamed(self, name: str) -> Desired:
        rendered = {**self.rendered, "metadata": {**self.rendered["metadata"], "name": name}}
        return replace(self, key=self.key._replace(name=name), document=rendered)


class Unrendered:
    """The objects of a steady child that were rendered in an earlier pass, and are rendered again once they are
    needed."""

    __slots__ = ("_made", "_render")

    def __init__(self, child: Child, scope: ResourceScope, names: Mapping[str, Any]) -> None:
        self._render = partial(_rendered, child, scope, names)
        self._made: dict[ObjectKey, Object] = {}

    def of(self, key: ObjectKey) -> Object:
        if not self._made:
            self._made = {each.key: each.rendered for each in self._render()}
        return self._made[key]


def source_of(child: Child) -> str:
    """The file, or the place in watches.yaml, that a child is rendered from."""
    return child.body.site.path if isinstance(child.body, TextTemplate) else str(child.body.site)


def is_enabled(when: Expression, names: Mapping[str, Any]) -> bool:
    """The value of `when`. Raises ChildWaits while a value that it reads is missing."""
    try:
        return when.truth(names)
    except RenderError as error:
        raise child_error(error) from None


def wait_for(condition: Expression, names: Mapping[str, Any]) -> None:
    """Raises ChildWaits unless `waitFor` is true. A missing value counts as false."""
    try:
        if condition.truth(names):
            return
    except RenderError as error:
        raise child_error(error) from None
    raise ChildWaits(f"waitFor: {condition.source}", condition.site, why="condition")


def render(
    child: Child,
    scope: ResourceScope,
    names: Mapping[str, Any],
    index: int,
    *,
    selected: Iterable[ObjectKey] | None = None,
) -> list[Desired]:
    """The desired objects of one item. `selected`: the objects that a body without a name is for.

    Kind, namespace and name must not be random, or each pass would create more objects. So a child with random values
    is rendered twice, with another seed and time, and both results must have the same identities. Values that take long
    to generate are generated only if one of the objects has to be created.
    """
    calls = child.body.reads.calls
    drawn = sorted(NONDETERMINISTIC.intersection(name for name, _ in calls)) if calls else []
    if not drawn:
        return _rendered(child, scope, names, selected=selected)
    purpose, now = f"{child.id}/{index}", scope.observed.now
    desired = _rendered(child, scope, scope.random(names, purpose, now))
    again = _rendered(child, scope, scope.random(names, f"again/{purpose}", different_time(now)))
    if [each.key for each in desired] != [each.key for each in again]:
        functions = " or ".join(f"`{name}`" for name in drawn)
        message = f"{functions} gives the object another kind, namespace or name each time: derive them from the CR"
        raise ChildFails(message, child.body.site)
    live = [scope.objects.get(each.key, version=each.kind.version) for each in desired]
    rotated: frozenset[str] = frozenset()
    if child.rotation is not None and desired and live[0] is not None:
        keys = random_keys(child, desired[0].rendered, again[0].rendered)
        rotated = keys if is_due(child, child.rotation, live[0], keys, scope.time_functions()) else rotated
    if not COSTLY.isdisjoint(drawn) and (rotated or not all(live)):
        real = scope.random(names, purpose, now, is_real=True)
        desired = _rendered(child, scope, real)
    return [replace(each, rotated=rotated) for each in desired] if rotated else desired


def _rendered(
    child: Child,
    scope: ResourceScope,
    names: Mapping[str, Any],
    *,
    selected: Iterable[ObjectKey] | None = None,
) -> list[Desired]:
    try:
        documents = child.body.render(names)
        orphan = child.deletion.policy is not None and _deletion(child, names) == "orphan"
        recreate = child.apply.on_immutable is not None and _recreates(child.apply.on_immutable, names)
        namespace = child.namespace.string(names) if child.namespace is not None else ""
    except RenderError as error:
        raise child_error(error) from None
    if selected is not None:
        documents = [_of_object(document, key) for document in documents for key in selected]
    try:
        desired = [
            _desired(child, scope, names, document, orphan=orphan, namespace=namespace) for document in documents
        ]
        return [replace(each, recreate=True) for each in desired] if recreate else desired
    except Exhausted as limit:
        raise ChildFails(limit.reason, child.body.site, limit=True) from None


def _of_object(document: JSON, key: ObjectKey) -> JSON:
    """The fields as those of this object."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(metadata, dict):
        return document
    identity = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    return {**document, "metadata": {**metadata, **identity}}


def _deletion(child: Child, names: Mapping[str, Any]) -> str:
    if child.deletion.policy is None:
        return "delete"
    policy = child.deletion.policy.string(names) or "delete"
    if policy not in {"delete", "orphan"}:
        raise RenderError("deletion must be delete or orphan", child.deletion.policy.site)
    return policy


def _recreates(on_immutable: StringTemplate, names: Mapping[str, Any]) -> bool:
    found = on_immutable.string(names) or "fail"
    if found not in {"fail", "recreate"}:
        raise RenderError("onImmutable must be fail or recreate", on_immutable.site)
    return found == "recreate"


def deletion_policy(child: Child, names: Mapping[str, Any]) -> str | None:
    """The value of `deletion`; None if it cannot be evaluated."""
    try:
        return _deletion(child, names)
    except RenderError:
        return None


def _desired(
    child: Child, scope: ResourceScope, names: Mapping[str, Any], document: JSON, *, orphan: bool, namespace: str
) -> Desired:
    site = child.body.site
    if not isinstance(document, dict):
        is_given = isinstance(child.form, Given)
        whose = "an item must be an object (a mapping" if is_given else "a template must render objects (mappings"
        raise ChildFails(f"{whose} with apiVersion, kind and metadata), not a list or text", site)
    kind = _kind(child, document, site)
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise ChildFails(f"metadata of the {kind.kind} is missing or not a mapping", site)
    title = Title(kind.kind, metadata.get("name", ""))
    _refuse_fields(document, metadata, title, site)
    spec = document.get("spec")
    if isinstance(child.form, Patched) and isinstance(spec, dict) and "finalizers" in spec:
        raise title.error(f" has spec.finalizers, which is not allowed: {REFUSED_METADATA['finalizers']}", site)
    info = scope.observed.kinds.info(kind)
    if info.state is Served.UNSERVED:
        raise ChildWaits(f"the kind {kind} to be served by the cluster", site, why="kind")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise ChildFails(f"metadata.name of the {kind.kind} is missing or not a string", site)
    if not is_object_name((kind.group, kind.kind), name):
        raise title.error(f": a name has {name_in_words(kind.versionless)}; make one with dns_label", site)
    place, changed = _choose_namespace(child, scope, metadata.get("namespace"), namespace, info, title)
    if changed:
        kept = {key: value for key, value in metadata.items() if key != "namespace"}
        document = {**document, "metadata": {**kept, "namespace": place} if place else kept}
    key = ObjectKey(kind.group, kind.kind, place, name)
    METER.enter(bytes_of(document))
    return Desired(key, kind, document, info, names, orphan)


class Title(NamedTuple):
    """An object in messages. Its name may come from a Secret."""

    kind: str
    name: Any  # a template can render anything

    def error(self, text: str, site: Site, *, redacted: str = "") -> ChildFails:
        named = f"the {self.kind} {self.name!r}{text}"
        return ChildFails(named, site, redacted=f"the {self.kind}{redacted or text}")


def _kind(child: Child, document: dict[str, Any], site: Site) -> Kind:
    api_version, name = document.get("apiVersion"), document.get("kind")
    if not isinstance(api_version, str) or not isinstance(name, str) or not api_version or not name:
        raise ChildFails("a rendered object has no apiVersion or no kind", site)
    kind = Kind.parse(api_version, name)
    if kind not in child.kinds:
        known = ", ".join(sorted(map(str, child.kinds)))
        if isinstance(child.form, Given):
            raise ChildFails(f"it is a {kind}, and `kinds` permits only: {known}", site)
        declared = f"but the template declares only: {known}"
        raise ChildFails(f"rendered {kind}, {declared}", site, redacted=f"rendered another kind, {declared}")
    return kind


def _refuse_fields(document: dict[str, Any], metadata: dict[str, Any], title: Title, site: Site) -> None:
    for field in metadata:
        if field in REFUSED_METADATA:
            raise title.error(f" has metadata.{field}, which is not allowed: {REFUSED_METADATA[field]}", site)
    if "status" in document:
        raise title.error(" has a status, which belongs to its controller: remove it", site)
    for marks in ("labels", "annotations"):
        found = metadata.get(marks)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise title.error(f": metadata.{marks} is not a mapping", site)
        for key, value in found.items():
            if key.startswith(RESERVED):
                text = f": {RESERVED} is reserved for ruleop"
                raise title.error(f" has the {marks[:-1]} {key}{text}", site, redacted=f" has a {marks[:-1]}{text}")
            if value is not None and not isinstance(value, str):
                text = "is not a string; put it in quotes, or use `| string`"
                raise title.error(f": the {marks[:-1]} {key} {text}", site, redacted=f": a {marks[:-1]} {text}")
            if not is_label_key(key if marks == "labels" else key.lower()):
                text = f"is not valid: use {KEY_IN_WORDS}"
                found_key = f": the key {shortened(key, 80)!r} in metadata.{marks} {text}"
                raise title.error(found_key, site, redacted=f": a key in metadata.{marks} {text}")
            if marks == "labels" and value is not None and not is_label_value(value):
                text = f"is not valid: use {VALUE_IN_WORDS}; `dns_label` makes such a text"
                found_value = f": {shortened(value, 80)!r} of the label {key} {text}"
                raise title.error(found_value, site, redacted=f": a label {text}")


def _choose_namespace(
    child: Child, scope: ResourceScope, rendered: Any, default: str, info: KindInfo, title: Title
) -> tuple[str, bool]:
    """The object's namespace ('' for a cluster-scoped kind), and whether it differs from the rendered one."""
    site = child.body.site
    if rendered is not None and not isinstance(rendered, str):
        raise title.error(": metadata.namespace is not a string", site)
    cluster = scope.rule.reach.cluster
    if not info.namespaced:
        if not cluster:
            raise title.error(
                " is cluster-scoped: set `reach: cluster` in the watch if its CRs may create such objects", site
            )
        return "", rendered is not None
    place = rendered or default or scope.namespace
    if not place:
        raise title.error(
            " needs a namespace, and a cluster-scoped CR has none: "
            "set `namespace:` in the child, or metadata.namespace",
            site,
        )
    if place != scope.namespace and not cluster:
        text = ", not the CR's: set `reach: cluster` in the watch if its CRs may use other namespaces"
        raise title.error(f" is in the namespace {place!r}{text}", site, redacted=f" is in another namespace{text}")
    if place != scope.namespace and not is_label(place):
        text = f"not a valid namespace: {LABEL_IN_WORDS}"
        raise title.error(f": {place!r} is {text}", site, redacted=f": {text}")
    return place, rendered != place


def with_marks(
    desired: Desired, owner: Owner, *, reference: Mapping[str, Any] | None, managed: bool, live: Object | None = None
) -> dict[str, Any]:
    """The rendered object with its owner and labels. `reference`: the ownerReference; None: it is not allowed here, and
    the annotation names the owner. `managed`: whether ruleop sets the label managed-by (not if somebody else set it).
    """
    rendered = desired.rendered
    metadata = dict(rendered["metadata"])
    labels = dict(metadata.get("labels") or {})
    labels |= owner.labels(live)
    if managed:
        labels.setdefault(MANAGED_BY, RULEOP)
    metadata["labels"] = labels
    if reference is not None:
        metadata["ownerReferences"] = [reference]
    else:
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            OWNER: owner.annotation(desired.key, orphan=desired.orphan, live=live),
        }
    if desired.item is not None:
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            ITEM: desired.item.annotation(owner, desired.key, live),
        }
    return {**rendered, "metadata": metadata}


def kept_reference(live: Object, owner: Owner, kinds: Kinds) -> dict[str, Any]:
    """The ownerReference, with the apiVersion that it has on the live object if the cluster serves that version. The
    garbage collector finds no owner by a version that is not served."""
    desired = owner.reference()
    for reference in (live.get("metadata") or {}).get("ownerReferences") or ():
        if (
            reference.get("uid") == owner.uid
            and reference.get("controller")
            and reference.get("apiVersion") != desired["apiVersion"]
        ):
            kind = Kind.parse(str(reference.get("apiVersion", "")), str(reference.get("kind")))
            if kind.versionless == owner.kind.versionless and (
                _is_served(kind, kinds) or not _is_served(owner.kind, kinds)
            ):
                desired["apiVersion"] = reference["apiVersion"]
    return desired


def _is_served(kind: Kind, kinds: Kinds) -> bool:
    """False also while discovery is incomplete. So the caller checks the CR's own version too, which was just read."""
    return kinds.info(kind).state is not Served.UNSERVED
