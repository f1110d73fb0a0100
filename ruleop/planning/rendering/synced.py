"""Rendered objects as later plans need them: digests that distinguish drift from an edit, and the objects that need no
look because nothing about them has changed."""

from __future__ import annotations

from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from ruleop.kubernetes.kinds import CHANGED_BY_WRITES, ObjectKey, version_of
from ruleop.planning.changes import Verb, is_mark, verb_of
from ruleop.planning.model.actions import Create, Delete, Patch, ServerSideApply
from ruleop.planning.model.marks import APPLIED, annotations_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Child, Rule
    from ruleop.planning.changes import Difference
    from ruleop.planning.model.actions import Action
    from ruleop.planning.model.observed import KindInfo, Kinds
    from ruleop.planning.rendering.desired import Desired


# -- synced ------------------------------------------------------------------------------------------------------------
#
# Digests of the rendered objects from when each was last in sync. They distinguish drift from an edit.
#
# An object that differs from the rendered one has drifted only if the same was rendered when it was last in sync: then
# another client has changed it. If something else was rendered then, or if that is unknown (in the first pass after a
# start, or after an edit of the CR or of the rules), the write is called a patch. An object that existed, was not
# deleted by ruleop, and is missing now was deleted by another client.
#
# There is one entry for every child of every CR, so it consists of hashes. A pass that changes nothing computes none.


_UNKNOWN: Final = -1  # never a hash: the object exists, and it is unknown what was rendered when it was last in sync
_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Synced:
    """The objects of one CR that were in sync."""

    digests: Mapping[int, int] = field(default_factory=lambda: _EMPTY)
    uid: int = 0  # of the CR, hashed
    basis: int = 0  # the rule and the CR's generation, hashed
    count: int = -1  # objects in sync by the last plan; -1: compare them again

    def with_in_sync(self, found: Sequence[Desired], rule_digest: str, resource: Object) -> Synced:
        """The value after a plan that found these objects in sync."""
        metadata = resource["metadata"]
        basis, uid = hash((rule_digest, metadata.get("generation"))), hash(metadata.get("uid") or "")
        if (basis, uid, len(found)) == (self.basis, self.uid, self.count):
            return self
        digests = dict(self.digests)
        if uid != self.uid:  # another CR of this name, with other children
            digests.clear()
        elif basis != self.basis:
            digests = dict.fromkeys(digests, _UNKNOWN)
        for each in found:
            key = hash(each.key)
            if not each.is_settled or digests.get(key, _UNKNOWN) == _UNKNOWN:
                digests[key] = hash(each.digest)
        return Synced(digests, uid, basis, len(found))

    def verb(self, action: Action, uid: str, changed: Iterable[Difference]) -> Verb:
        """The action's verb, given earlier passes. `uid`: of the CR. `changed`: the fields that the action changes, if
        it `may_be_of_marks`."""
        verb = verb_of(action)
        if not self.had(action):
            return verb
        if isinstance(action, Create):
            return Verb.RECREATE
        # ruleop's own metadata may change for reasons that are not rendered, such as `deletion`.
        is_of_marks = self.may_be_of_marks(action) and all(is_mark(each, uid) for each in changed)
        return verb if is_of_marks else Verb.REVERT

    def may_be_of_marks(self, action: Action) -> bool:
        """Whether the action may restore what was in sync, and yet change ruleop's own metadata alone."""
        return self.had(action) and (not isinstance(action, Patch) or action.patch.keys() <= {"metadata"})

    def had(self, action: Action) -> bool:
        """Whether the action restores what was in sync: the same rendered object, or one that was not deleted."""
        if isinstance(action, Create):
            return hash(action.key) in self.digests
        if not isinstance(action, (Patch, ServerSideApply)) or action.why != "changed":
            return False
        return self.digests.get(hash(action.key)) == hash(action.desired_digest)

    def done(self, actions: Iterable[Action], *, clean: bool) -> Synced:
        """The value after these writes. `clean`: all actions succeeded, so the next plan need not be compared."""
        digests, count = dict(self.digests), self.count
        for action in actions:
            if isinstance(action, (Create, Patch, ServerSideApply)) and verb_of(action) is not Verb.RELEASE:
                digests[hash(action.key)] = hash(action.desired_digest)
                count += 1
            elif isinstance(action, (Delete, Patch)):
                digests.pop(hash(action.key), None)
        return replace(self, digests=digests, count=count if clean else -1)

    def restricted_to(self, desired: Collection[ObjectKey]) -> Synced:
        """The value without any other objects."""
        if len(self.digests) <= len(desired):
            return self
        known = {hash(key) for key in desired}
        return replace(self, digests={key: digest for key, digest in self.digests.items() if key in known})


# -- settled -----------------------------------------------------------------------------------------------------------
#
# The objects that a child had when it was planned last, so that an unchanged one is neither rendered nor merged again.
#
# This holds for children whose objects follow from what clients write in the CR (`Inputs.steady`), for the same CR,
# rule and kinds, and for each object while nothing that it is compared by has changed. A plan is the same without it.


class SettledObject(NamedTuple):
    info: KindInfo
    orphan: bool
    recreate: bool
    version: str = ""  # of the live object that was in sync; empty: it was not
    content: int = 0  # its content, hashed

    def is_still_in_sync(self, live: Object) -> bool:
        if not self.version:
            return False
        return version_of(live) == self.version or (self.content != 0 and content_of(live) == self.content)

    def in_sync_as(self, live: Object) -> SettledObject:
        return self._replace(version=version_of(live), content=content_of(live))


SettledObjects: TypeAlias = "Mapping[ObjectKey, SettledObject]"  # of a child


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    inputs: int = 0  # the rule and what clients write in the CR, hashed
    info: KindInfo | None = None  # of the CR
    children: Mapping[str, SettledObjects] = field(default_factory=lambda: _EMPTY)

    def at(self, inputs: int, info: KindInfo) -> Settled:
        """The value for a plan; empty if it is that of another CR or rule, or if the cluster serves other versions."""
        return self if inputs and inputs == self.inputs and info is self.info else Settled(inputs, info)

    def objects(self, child: Child, kinds: Kinds) -> SettledObjects:
        """The objects of a child; empty if they have to be rendered."""
        found = self.children.get(child.id, _EMPTY)
        return found if all(kinds.info(each.info.kind) is each.info for each in found.values()) else _EMPTY

    def is_still_in_sync(self, child: Child, key: ObjectKey, live: Object) -> bool:
        known = self.children.get(child.id, _EMPTY).get(key)
        return known is not None and known.is_still_in_sync(live)

    def with_children(self, found: Mapping[str, SettledObjects]) -> Settled:
        return self if found == self.children else replace(self, children=found)

    def after(self, answers: Mapping[ObjectKey, tuple[Object, Object]]) -> Settled:
        """The value with the answers to writes: an object whose answer has the record that was sent is in sync."""
        found = {
            key: answer
            for key, (sent, answer) in answers.items()
            if annotations_of(sent).get(APPLIED) == annotations_of(answer).get(APPLIED)
        }
        children = {
            id_: {key: each.in_sync_as(found[key]) if key in found else each for key, each in objects.items()}
            for id_, objects in self.children.items()
        }
        return replace(self, children=children) if found else self


NOTHING_SETTLED: Final = Settled()


def inputs_of(rule: Rule, resource: Object, *, sharded: bool) -> int:
    """All that the objects of a steady child follow from, hashed. The spec itself: a default that is added to a CRD
    changes it without a new generation."""
    metadata = {name: value for name, value in resource["metadata"].items() if name not in CHANGED_BY_WRITES}
    return _hash_of([rule.digest, sharded, metadata, resource.get("spec")])


def content_of(live: Object) -> int:
    """All that a child is compared by, hashed."""
    found = {
        **live,
        "metadata": {name: value for name, value in live["metadata"].items() if name not in CHANGED_BY_WRITES},
    }
    found.pop("status", None)
    return _hash_of(found)


def _hash_of(value: Any) -> int:
    """0, which is never compared, for what is nested too deeply or has an integer of more than 64 bits."""
    try:
        return hash(orjson.dumps(value))
    except TypeError:
        return 0
