"""The field managers by which custom resources set fields of objects that belong to somebody else.

Each child with `patch` has a manager of its own, so that each field has one owner, and so that the fields of a child
that is gone are found again. The managedFields of an object are the only record of these fields: ruleop writes none of
its own on it.

Any client chooses the name of its manager, and who may write an object can write its managedFields. So the name ends
with a proof, as owner annotations do, of the custom resource, the child and the object: copied to another object it
proves nothing. Without it, a tenant could name the custom resource of somebody else, whose deletion would then wait for
the release of fields in the tenant's object.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.merge import canonical, fingerprint
from ruleop.kubernetes.names import PATCH_MANAGER
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import JSON, Object, ObjectKey
    from ruleop.planning.model.marks import Owner
    from ruleop.planning.model.proofs import Proofs

_PROOF_LENGTH: Final = 26
"""Characters of a proof of 128 bits in base 32: with the longest id, a name has 125 of the 128 characters that the API
server allows."""


@dataclass(frozen=True, slots=True)
class FieldsManager:
    """A manager of ruleop on an object."""

    name: str
    part_of: str  # the label of the custom resource
    child: str
    proof: str  # empty on managers of earlier versions, and of offline commands

    @classmethod
    def named(cls, name: str) -> FieldsManager | None:
        """The manager of this name; None if it is not one of ruleop's."""
        part_of, *rest = name.removeprefix(PATCH_MANAGER).split(":")
        if not name.startswith(PATCH_MANAGER) or len(rest) not in {1, 2}:
            return None
        return cls(name, part_of, rest[0], rest[1] if len(rest) > 1 else "")

    def is_proven(self, key: ObjectKey, proofs: Proofs | None) -> bool:
        """Whether the operator has set fields of this object by this name; offline, each name counts as proven."""
        return proofs is None or proofs.hold(_proven_text(self.part_of, self.child, key), _decoded(self.proof))

    def is_believed(self, key: ObjectKey, proofs: Proofs | None) -> bool:
        return self.is_proven(key, proofs) or (proofs is not None and proofs.accept_unproven_managers)


def manager_of(owner: Owner, child: str, key: ObjectKey) -> str:
    """The manager by which a child sets fields of this object."""
    name = f"{PATCH_MANAGER}{owner.part_of}:{child}"
    proof = owner.proofs.of(_proven_text(owner.part_of, child, key)) if owner.proofs is not None else ""
    return f"{name}:{_encoded(proof)}" if proof else name


def _proven_text(part_of: str, child: str, key: ObjectKey) -> str:
    return f"manager {part_of} {child} {key.group}/{key.kind}/{key.namespace}/{key.name}"


def _encoded(proof: str) -> str:
    return base64.b32encode(bytes.fromhex(proof)).decode().lower()[:_PROOF_LENGTH]


def _decoded(text: str) -> str:
    """The proof as `Proofs` writes it; empty if the text is none. Of the texts of one proof only one counts."""
    try:
        proof = base64.b32decode(f"{text.upper()}======").hex() if len(text) == _PROOF_LENGTH else ""
    except (binascii.Error, ValueError):
        return ""
    return proof if proof and _encoded(proof) == text else ""


def managers_on(live: Object) -> Iterator[FieldsManager]:
    """The managers of ruleop on an object, whether they are believed or not."""
    for entry in _entries(live):
        if (found := FieldsManager.named(str(entry.get("manager")))) is not None:
            yield found


def applied_fields(live: Object, manager: str) -> tuple[str, Mapping[str, Any]] | None:
    """The fields that a manager has applied, as the API server writes them, with their apiVersion."""
    for entry in _entries(live):
        if entry.get("manager") == manager:
            fields = entry.get("fieldsV1")
            return str(entry.get("apiVersion")), fields if isinstance(fields, Mapping) else {}
    return None


def _entries(live: Object) -> Iterator[Mapping[str, Any]]:
    for entry in patch_entries(live["metadata"].get("managedFields")):
        if entry.get("operation") == "Apply" and not entry.get("subresource"):
            yield entry


def patch_entries(managed: Iterable[Any] | None) -> list[Mapping[str, Any]]:
    """The part of managedFields that is about managers of ruleop, by their names."""
    return [
        each
        for each in managed or ()
        if isinstance(each, Mapping) and isinstance(name := each.get("manager"), str) and name.startswith(PATCH_MANAGER)
    ]


def values_of(value: JSON, fields: Any) -> JSON:
    """The part of a value that is in a field set of the API server; the items of a list in their order there. Who may
    write an object may also write a field set that the API server would not."""
    if not fields or not isinstance(fields, Mapping):
        return value
    if isinstance(value, dict):
        return {
            name[2:]: values_of(value[name[2:]], inner)
            for name, inner in fields.items()
            if name.startswith("f:") and name[2:] in value
        }
    if isinstance(value, list):
        items = _Items(fields)
        found = (items.part_of(position, item) for position, item in enumerate(value))
        return [item for item in found if item is not None]
    return value


class _Items:
    """The items of a list that are in a field set: by their position, their value, or their keys."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.exact: dict[bytes, Any] = {}
        self.keyed: dict[tuple[str, ...], dict[bytes, Any]] = {}
        for name, inner in fields.items():
            kind, _, text = name.partition(":")
            try:
                found = orjson.loads(text) if kind in {"i", "v", "k"} else None
            except ValueError:
                continue
            if kind == "k" and isinstance(found, dict):
                names = tuple(sorted(found))
                self.keyed.setdefault(names, {})[canonical([found[each] for each in names])] = inner
            elif kind in {"i", "v"}:
                self.exact[canonical([kind, found])] = inner

    def part_of(self, position: int, item: JSON) -> JSON:
        """The part of an item; None if it is not in the field set."""
        if self.exact:
            if canonical(["v", item]) in self.exact:
                return item
            if (place := canonical(["i", position])) in self.exact:
                return values_of(item, self.exact[place])
        if isinstance(item, dict):
            for names, known in self.keyed.items():
                key = canonical([item.get(name) for name in names])
                if key in known:
                    return values_of(item, known[key])
        return None


def fingerprint_of(live: Object, manager: str, desired: str) -> str:
    """A fingerprint of a desired object, and of what it became: the fields of the manager, and their values. There may
    be none: the server does not record a manager without fields."""
    found = applied_fields(live, manager)
    if found is None:
        return fingerprint([desired])
    version, fields = found
    return fingerprint([desired, version, dict(fields), values_of(dict(live), fields)])
