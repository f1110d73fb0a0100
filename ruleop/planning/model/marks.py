"""Writes and reads the labels, annotations and ownerReferences by which ruleop identifies owned objects.

A CR owns an object if the object's controller ownerReference names the CR: its uid, group, kind and name. If an
ownerReference is not possible (the garbage collector deletes an object whose owner is not in its namespace), the
annotation `ruleop.dev/owner` names the owner instead. It names the object too, so that a copy of the object under
another name is not owned, and has a proof that the operator wrote it.

Anybody who may write an object can write its ownerReferences, but those count only in the CR's own namespace (for a
cluster-scoped CR: everywhere). The annotation counts in any namespace, but only with a valid proof."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from ruleop.kubernetes.buckets import bucket_of
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.merge import ANNOTATION, canonical
from ruleop.kubernetes.names import BUCKET_LABEL, PART_OF_LABEL, RESERVED_PREFIX
from ruleop.language.rules import parse_duration
from ruleop.messages import shortened
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules import Rule


# -- proofs ------------------------------------------------------------------------------------------------------------
#
# Proofs of ownership: keyed digests that only the operator can make.
#
# A tenant who may label and annotate an object in one namespace can write any annotation, also one that names the
# custom resource of somebody else: its uid can be read or guessed. So the annotation `ruleop.dev/owner` carries a
# proof, an HMAC of its text with the operator's key. The text names the object, so a copy of the annotation proves
# nothing about another one. Field managers of children with `patch` carry such a proof in their names.


_PURPOSE: Final = b"ruleop.dev/owner\0"
_LENGTH: Final = 16  # bytes of the digest: 128 bits
KEY_LENGTH: Final = 32


class Proofs(Protocol):
    """The proofs that planning needs."""

    def of(self, text: str) -> str:
        """The proof of a text; empty without a key."""
        ...

    def hold(self, text: str, proof: str) -> bool: ...

    @property
    def accept_unproven(self) -> bool:
        """Whether a text without a valid proof is believed, because it may be older than the key."""
        ...

    @property
    def accept_unproven_managers(self) -> bool:
        """The same for the name of a field manager, which may also be older than their proofs."""
        ...


@dataclass(frozen=True, slots=True)
class KeyedProofs:
    """Proofs with these keys: the first makes new ones; those of the others, which it replaced, are still valid."""

    keys: tuple[bytes, ...] = ()
    accept_unproven: bool = False
    accept_unproven_managers: bool = False

    def of(self, text: str) -> str:
        return _digest(self.keys[0], text) if self.keys else ""

    def hold(self, text: str, proof: str) -> bool:
        given = proof.encode(errors="replace")
        return any(hmac.compare_digest(_digest(key, text).encode(), given) for key in self.keys)


@lru_cache(maxsize=4096)
def _digest(key: bytes, text: str) -> str:
    return hmac.digest(key, _PURPOSE + text.encode(errors="replace"), "sha256")[:_LENGTH].hex()


# -- marks -------------------------------------------------------------------------------------------------------------


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


# -- item records ------------------------------------------------------------------------------------------------------
#
# The annotation `ruleop.dev/item`: the item of a `forEach` that an object was made for.
#
# It is on the objects of children that a `finalize` child names in `forEachOf`, because the CR no longer has the item
# when that child is made. The object of that child has it too, with the object of the item: so an end that has begun is
# known whatever becomes of the rules, of the CR and of the other object.
#
# The items decide what is cleaned up, and anybody who may write the object can edit its annotations. So the text has a
# proof, like that of the owner, and names the object and the CR. It is data: nothing in it is ever evaluated.


ITEM: Final = f"{RESERVED_PREFIX}item"
MAX_ITEM: Final = 4096
"""Bytes of the items. All annotations of an object share 256 KiB, and a list of many such objects is read at once."""

_MAX_TEXT: Final = MAX_ITEM + 4096  # bytes; the API server's limits for names leave much of it


@dataclass(frozen=True, slots=True)
class ItemRecord:
    child: str  # with the `forEach`
    items: str  # JSON of the items of all loops by their names, in canonical form: equal texts are equal items
    ends: ObjectKey | None = None  # the object of the item, if this one is made at its end

    @classmethod
    def of(cls, child: str, items: Mapping[str, JSON]) -> ItemRecord:
        return cls(child, canonical(dict(items)).decode())

    @property
    def values(self) -> dict[str, JSON]:
        found: dict[str, JSON] = orjson.loads(self.items)
        return found

    def annotation(self, owner: Owner, key: ObjectKey, live: Object | None = None) -> str:
        """The text for an object. Without a key, the proof on the live object is kept, as with the owner."""
        data: dict[str, JSON] = {"child": self.child, "items": self.values, "of": list(key), "uid": owner.uid}
        if self.ends is not None:
            data["ends"] = list(self.ends)
        text = canonical(data).decode()
        proof = owner.proofs.of(text) if owner.proofs is not None else ""
        if not proof and live is not None and (found := _item_of(live)) is not None:
            known = found.pop(_PROOF, "")
            proof = known if isinstance(known, str) and canonical(found).decode() == text else ""
        return canonical({**data, _PROOF: proof}).decode() if proof else text


def item_on(live: Object, key: ObjectKey, owner: Owner) -> ItemRecord | None:
    """The record on an object; None if there is none that is to be believed. As with owners, without a key offline it
    is believed by its text."""
    data = _item_of(live)
    if data is None:
        return None
    proof = data.pop(_PROOF, "")
    match data:
        case {"child": str() as child, "items": dict() as items, "of": of, "uid": uid, **rest} if (
            of == list(key) and uid == owner.uid != ""
        ):
            ends = _object(rest.get("ends"))
            if rest and (ends is None or len(rest) > 1):
                return None
        case _:
            return None
    proofs = owner.proofs
    if proofs is None or proofs.accept_unproven or proofs.hold(canonical(data).decode(), str(proof)):
        return ItemRecord(child, canonical(items).decode(), ends)
    return None


def _item_of(live: Object) -> dict[str, Any] | None:
    text = annotations_of(live).get(ITEM)
    if not isinstance(text, str) or len(text) > _MAX_TEXT:
        return None
    try:
        found = orjson.loads(text)
        canonical(found)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _object(value: Any) -> ObjectKey | None:
    if isinstance(value, list) and len(value) == 4 and all(isinstance(part, str) for part in value):
        return ObjectKey(*value)
    return None
