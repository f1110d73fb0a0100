"""Writes and reads the labels, annotations and ownerReferences by which ruleop identifies owned objects.

A CR owns an object if the object's controller ownerReference names the CR: its uid, group, kind and name. If an
ownerReference is not possible (the garbage collector deletes an object whose owner is not in its namespace), the
annotation `ruleop.dev/owner` names the owner instead. It names the object too, so that a copy of the object under
another name is not owned, and has a proof that the operator wrote it.

Anybody who may write an object can write its ownerReferences, but those count only in the CR's own namespace (for a
cluster-scoped CR: everywhere). The annotation counts in any namespace, but only with a valid proof.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kubernetes.buckets import bucket_of
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.merge import ANNOTATION
from ruleop.kubernetes.names import BUCKET_LABEL, PART_OF_LABEL, RESERVED_PREFIX
from ruleop.language.rules import parse_duration
from ruleop.messages import shortened
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.language.rules import Rule
    from ruleop.planning.model.proofs import Proofs

APPLIED = ANNOTATION
OWNER = f"{RESERVED_PREFIX}owner"
PART_OF = PART_OF_LABEL
MANAGED_BY = "app.kubernetes.io/managed-by"
RULEOP = "ruleop"  # the value of managed-by; also the field manager
PAUSED = f"{RESERVED_PREFIX}paused"
SKIP_FINALIZE = f"{RESERVED_PREFIX}skip-finalize"
SKIP_ORDER = f"{RESERVED_PREFIX}skip-deletion-order"
RECONCILE_PERIOD = f"{RESERVED_PREFIX}reconcile-period"
SWITCHES: Mapping[str, str] = MappingProxyType(
    {
        PAUSED: '"true" stops all changes to the objects, until the annotation is removed.',
        SKIP_FINALIZE: '"true" gives up on the work that is done before a deletion.',
        SKIP_ORDER: '"true" deletes the objects without the order of the rules.',
        RECONCILE_PERIOD: "The time between two full checks, such as 1h; 0s is never.",
    }
)
"""The annotations that people set on custom resources, with what they do."""
RESERVED = RESERVED_PREFIX
MIN_PERIOD = 1.0  # seconds between two full checks; users who may edit a CR must not overload the operator
_PROOF = "proof"
_MAX_OWNER, _MAX_NOTE = 1024, 2048  # characters; more than the API server's limits for names allow


@lru_cache(maxsize=16_384)
def _part_of(text: str) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest())[:26].decode().lower()


@dataclass(frozen=True)
class Owner:
    """The CR that children belong to. Without `proofs`, as offline, annotations are believed by their text. With
    `sharded`, children are labelled with its bucket."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    proofs: Proofs | None = field(default=None, compare=False)
    sharded: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, resource: Object, proofs: Proofs | None = None, *, sharded: bool = False) -> Owner:
        metadata = resource["metadata"]
        namespace, uid = metadata.get("namespace") or "", metadata.get("uid") or ""
        return cls(Kind.of(resource), namespace, metadata["name"], uid, proofs, sharded)

    @cached_property
    def part_of(self) -> str:
        """The value of the label that identifies a CR's children: short, and the same for every version of the kind."""
        return _label_of(self.kind.group, self.kind.kind, self.namespace, self.name)

    def labels(self, live: Object | None) -> dict[str, str]:
        """Of a child. One that has the bucket keeps it: the operator may have been one of several."""
        found = {PART_OF: self.part_of}
        if self.sharded or (live is not None and BUCKET_LABEL in (live["metadata"].get("labels") or {})):
            found[BUCKET_LABEL] = str(bucket_of(self.uid))
        return found

    def reference(self) -> dict[str, Any]:
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def annotation(self, child: ObjectKey, *, orphan: bool, kept: bool = False, live: Object | None = None) -> str:
        """The value of the annotation. `orphan` is recorded because its rule may have been removed when it is needed;
        `kept`, because the finalizer of `--cascade=orphan` is removed as soon as the garbage collector is done.

        Without a key, the proof on the live object is kept: who has none cannot tell whether it is valid."""
        data: dict[str, Any] = {
            "group": self.kind.group,
            "kind": self.kind.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "of": _named(child),
        }
        if orphan:
            data["orphan"] = True
        if kept:
            data["kept"] = True
        text = orjson.dumps(data).decode()
        proof = self.proofs.of(text) if self.proofs is not None else ""
        if not proof and live is not None and (note := _note(live.get("metadata") or {})) is not None:
            found = note.get(_PROOF)
            proof = found if isinstance(found, str) and _proven_text(note) == text else ""
        return orjson.dumps({**data, _PROOF: proof}).decode() if proof else text

    def is_named_by(self, reference: Mapping[str, Any], child: ObjectKey) -> bool:
        """Whether an ownerReference on this object is the CR's. The version does not matter."""
        return (
            bool(self.uid)
            and reference.get("uid") == self.uid
            and reference.get("name") == self.name
            and reference.get("kind") == self.kind.kind
            and _api_group(reference) == self.kind.group
            and self.namespace in {"", child.namespace}
        )


def part_of(resource: Object) -> str:
    """The label of a CR's children."""
    metadata, kind = resource["metadata"], Kind.of(resource)
    return _label_of(kind.group, kind.kind, metadata.get("namespace") or "", metadata["name"])


def _label_of(group: Any, kind: Any, namespace: Any, name: Any) -> str:
    text = f"{group}/{kind}/{namespace}/{name}"
    return _part_of(text) if len(text) <= _MAX_OWNER else ""


def _named(child: ObjectKey) -> str:
    return f"{child.kind}.{child.group}/{child.namespace}/{child.name}"


def _api_group(reference: Mapping[str, Any]) -> str:
    group, slash, _ = str(reference.get("apiVersion", "")).rpartition("/")
    return group if slash else ""


@dataclass(frozen=True, slots=True)
class Claim:
    """The ownership of an object, by its metadata."""

    owned: bool  # by the CR
    by: str = ""  # another owner, for a message: "Deployment/web"; empty if there is none
    annotated: bool = False  # owned by the annotation, so the garbage collector does not delete it
    orphan: bool = False  # by the annotation, it stays when the CR is deleted
    kept: bool = False  # the same, and the CR is being deleted: the rules cannot change that any more
    referenced: bool = False  # it has an ownerReference, of a controller or not
    proven: bool = False  # by the annotation's proof; offline, each annotation counts as proven
    unproven: bool = False  # the annotation names the CR, and is not believed


_BY_REFERENCE = Claim(owned=True, referenced=True)


def claim_on(live: Object, key: ObjectKey, owner: Owner) -> Claim:
    metadata = live.get("metadata") or {}
    references = metadata.get("ownerReferences") or ()
    for reference in references:
        if reference.get("controller"):
            if owner.is_named_by(reference, key):
                return _BY_REFERENCE
            return Claim(owned=False, by=f"{reference.get('kind')}/{reference.get('name')}", referenced=True)
    note, referenced = _note(metadata), bool(references)
    if note is None or note.get("of") != _named(key):
        return Claim(owned=False, referenced=referenced)
    by = f"{note.get('kind')}/{note.get('name')}"
    if not _is(note, owner):
        return Claim(owned=False, by=by, annotated=True, referenced=referenced)
    proven = _is_proven(note, owner.proofs)
    if not proven and not (owner.proofs is not None and owner.proofs.accept_unproven):
        return Claim(owned=False, by=by, annotated=True, referenced=referenced, unproven=True)
    orphan, kept = note.get("orphan") is True, note.get("kept") is True
    return Claim(owned=True, annotated=True, orphan=orphan, kept=kept, referenced=referenced, proven=proven)


def names_an_owner(metadata: Object, key: ObjectKey, proofs: Proofs | None) -> bool:
    """Whether an object may be a CR's child: a controller ownerReference, or an annotation that is believed, names the
    CR of the label. Anybody can write the label alone."""
    label = (metadata.get("labels") or {}).get(PART_OF)
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            group, kind, name = _api_group(reference), reference.get("kind"), reference.get("name")
            return label in (_label_of(group, kind, key.namespace, name), _label_of(group, kind, "", name))
    note = _note(metadata)
    return (
        note is not None
        and note.get("of") == _named(key)
        and label == _label_of(note.get("group"), note.get("kind"), note.get("namespace"), note.get("name"))
        and (_is_proven(note, proofs) or (proofs is not None and proofs.accept_unproven))
    )


def owner_uid(metadata: Object) -> str:
    """The uid of the CR that an object names as its owner; empty if it names none."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid"))
    return str((_note(metadata) or {}).get("uid") or "")


def named_owner(live: Object) -> tuple[ObjectKey, str] | None:
    """The CR that the annotation names, and its uid. Whether that is true, `claim_on` tells."""
    note = _note(live.get("metadata") or {}) or {}
    group, kind, namespace, name, uid = (note.get(part) for part in ("group", "kind", "namespace", "name", "uid"))
    if not (
        isinstance(group, str)
        and isinstance(kind, str)
        and isinstance(namespace, str)
        and isinstance(name, str)
        and isinstance(uid, str)
    ):
        return None
    return ObjectKey(group, kind, namespace, name), uid


def _note(metadata: Object) -> Mapping[str, Any] | None:
    text = (metadata.get("annotations") or {}).get(OWNER)
    return _parsed(text) if isinstance(text, str) and len(text) <= _MAX_NOTE else None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Mapping[str, Any] | None:
    """A pass reads each annotation several times."""
    try:
        note = orjson.loads(text)
    except ValueError:
        return None
    if not isinstance(note, dict) or not all(isinstance(value, (str, bool)) for value in note.values()):
        return None
    return MappingProxyType(note)


def _is_proven(note: Mapping[str, Any], proofs: Proofs | None) -> bool:
    if proofs is None:
        return True
    proof = note.get(_PROOF)
    return isinstance(proof, str) and proofs.hold(_proven_text(note), proof)


def _proven_text(note: Mapping[str, Any]) -> str:
    """The text that is proven: the whole annotation, without the proof."""
    return orjson.dumps({name: value for name, value in note.items() if name != _PROOF}).decode()


def _is(note: Mapping[str, Any], owner: Owner) -> bool:
    return (
        bool(owner.uid)
        and note.get("uid") == owner.uid
        and note.get("group") == owner.kind.group
        and note.get("kind") == owner.kind.kind
        and note.get("namespace") == owner.namespace
        and note.get("name") == owner.name
    )


def other_operators(resource: Object, finalizer: str) -> tuple[str, ...]:
    """The names of other operators whose finalizers a CR has. `finalizer`: of this one."""
    finalizers = resource["metadata"].get("finalizers") or ()
    names = (str(each) for each in finalizers if each != finalizer)
    return tuple(each.removeprefix(RESERVED) for each in names if each.startswith(RESERVED))


def annotations_of(obj: Object) -> dict[str, Any]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def is_paused(resource: Object) -> bool:
    return annotations_of(resource).get(PAUSED) == "true"


def period_and_notes(annotations: Mapping[str, Any], rule: Rule) -> tuple[float, str]:
    """The seconds between two full checks of a CR, 0 for never: those of its rule, or of its annotation; and notes on
    annotations that have no effect. A person who pauses an operator in a hurry may mistype the value."""
    period, notes = rule.pace.period, []
    if (text := annotations.get(RECONCILE_PERIOD)) is not None:
        try:
            own = parse_duration(str(text))
            period = max(MIN_PERIOD, own) if own else 0.0
        except ValueError as error:
            notes.append(f"the annotation {RECONCILE_PERIOD} has no effect: {error}")
    for name in (PAUSED, SKIP_FINALIZE, SKIP_ORDER):
        if annotations.get(name, "false") not in {"true", "false"}:
            wrong = shortened(str(annotations[name]))
            notes.append(f'the annotation {name} has no effect: expected "true" or "false", not {wrong!r}')
    return period, "; ".join(notes)
