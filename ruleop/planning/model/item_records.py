"""The annotation `ruleop.dev/item`: the item of a `forEach` that an object was made for.

It is on the objects of children that a `finalize` child names in `forEachOf`, because the CR no longer has the item
when that child is made. The object of that child has it too, with the object of the item: so an end that has begun is
known whatever becomes of the rules, of the CR and of the other object.

The items decide what is cleaned up, and anybody who may write the object can edit its annotations. So the text has a
proof, like that of the owner, and names the object and the CR. It is data: nothing in it is ever evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.merge import canonical
from ruleop.kubernetes.names import RESERVED_PREFIX
from ruleop.planning.model.marks import annotations_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.planning.model.marks import Owner

ITEM: Final = f"{RESERVED_PREFIX}item"
MAX_ITEM: Final = 4096
"""Bytes of the items. All annotations of an object share 256 KiB, and a list of many such objects is read at once."""

_MAX_TEXT: Final = MAX_ITEM + 4096  # bytes; the API server's limits for names leave much of it
_PROOF: Final = "proof"


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
        if not proof and live is not None and (found := _parsed(live)) is not None:
            known = found.pop(_PROOF, "")
            proof = known if isinstance(known, str) and canonical(found).decode() == text else ""
        return canonical({**data, _PROOF: proof}).decode() if proof else text


def item_on(live: Object, key: ObjectKey, owner: Owner) -> ItemRecord | None:
    """The record on an object; None if there is none that is to be believed. As with owners, without a key offline it
    is believed by its text."""
    data = _parsed(live)
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


def _parsed(live: Object) -> dict[str, Any] | None:
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
