"""Writes and reads the labels, annotations and ownerReferences by which ruleop identifies owned objects.

A CR owns an object if the object's controller ownerReference has the CR's uid. If an ownerReference is not possible
(the garbage collector deletes an object whose owner is not in its namespace), the annotation `ruleop.dev/owner` names
the owner instead. It names the object too, so that a copy of the object under another name is not owned.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.merge import ANNOTATION
from ruleop.names import PART_OF_LABEL, RESERVED_PREFIX

APPLIED = ANNOTATION
OWNER = f"{RESERVED_PREFIX}owner"
PART_OF = PART_OF_LABEL
MANAGED_BY = "app.kubernetes.io/managed-by"
RULEOP = "ruleop"  # the value of managed-by; also the field manager
PAUSED = f"{RESERVED_PREFIX}paused"
SKIP_FINALIZE = f"{RESERVED_PREFIX}skip-finalize"
RECONCILE_PERIOD = f"{RESERVED_PREFIX}reconcile-period"
RESERVED = RESERVED_PREFIX


@lru_cache(maxsize=16_384)
def _part_of(text: str) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest())[:26].decode().lower()


@dataclass(frozen=True, slots=True)
class Owner:
    """The CR that children belong to."""

    kind: Kind
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, resource: Object) -> Owner:
        metadata = resource["metadata"]
        return cls(Kind.of(resource), metadata.get("namespace") or "", metadata["name"], metadata.get("uid") or "")

    @property
    def part_of(self) -> str:
        """The value of the label that identifies a CR's children: short, and the same for every version of the kind."""
        return _part_of(f"{self.kind.group}/{self.kind.kind}/{self.namespace}/{self.name}")

    def reference(self) -> dict[str, Any]:
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def annotation(self, child: ObjectKey, *, orphan: bool, kept: bool = False) -> str:
        """The value of the annotation. `orphan` is recorded because its rule may have been removed when it is needed;
        `kept`, because the finalizer of `--cascade=orphan` is removed as soon as the garbage collector is done."""
        data: dict[str, Any] = {
            "group": self.kind.group,
            "kind": self.kind.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "of": f"{child.kind}.{child.group}/{child.namespace}/{child.name}",
        }
        if orphan:
            data["orphan"] = True
        if kept:
            data["kept"] = True
        return orjson.dumps(data).decode()


@dataclass(frozen=True, slots=True)
class Claim:
    """Who owns an object, by its metadata."""

    owned: bool  # by the CR
    by: str = ""  # another owner, for a message: "Deployment/web"; empty if there is none
    annotated: bool = False  # owned by the annotation, so the garbage collector does not delete it
    orphan: bool = False  # by the annotation, it stays when the CR is deleted
    kept: bool = False  # the same, and the CR is being deleted: the rules cannot change that any more
    referenced: bool = False  # it has an ownerReference, of a controller or not


def claim_on(live: Object, key: ObjectKey, owner: Owner) -> Claim:
    metadata = live.get("metadata") or {}
    references = metadata.get("ownerReferences") or ()
    for reference in references:
        if reference.get("controller"):
            if owner.uid and reference.get("uid") == owner.uid:
                return Claim(owned=True, referenced=True)
            return Claim(owned=False, by=f"{reference.get('kind')}/{reference.get('name')}", referenced=True)
    note = _note(metadata)
    if note is not None:
        annotated = f"{key.kind}.{key.group}/{key.namespace}/{key.name}"
        if note.get("of") == annotated:
            if _is(note, owner):
                orphan, kept = note.get("orphan") is True, note.get("kept") is True
                return Claim(owned=True, annotated=True, orphan=orphan, kept=kept, referenced=bool(references))
            return Claim(
                owned=False, by=f"{note.get('kind')}/{note.get('name')}", annotated=True, referenced=bool(references)
            )
    return Claim(owned=False, referenced=bool(references))


def _note(metadata: Object) -> dict[str, Any] | None:
    text = (metadata.get("annotations") or {}).get(OWNER)
    if not isinstance(text, str):
        return None
    try:
        note = orjson.loads(text)
    except ValueError:
        return None
    return note if isinstance(note, dict) else None


def _is(note: dict[str, Any], owner: Owner) -> bool:
    return (
        bool(owner.uid)
        and note.get("uid") == owner.uid
        and note.get("group") == owner.kind.group
        and note.get("kind") == owner.kind.kind
        and note.get("namespace") == owner.namespace
        and note.get("name") == owner.name
    )


def annotations_of(obj: Object) -> dict[str, Any]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def is_paused(resource: Object) -> bool:
    return annotations_of(resource).get(PAUSED) == "true"
