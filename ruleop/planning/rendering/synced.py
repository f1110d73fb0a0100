"""Rendered objects as later plans need them: the digests of those that were in sync, for the next passes, and the work
of the plan before the writes, for the plan of the status."""

from __future__ import annotations

from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.kubernetes.kinds import ObjectKey, version_of
from ruleop.planning.changes import Verb, is_mark, verb_of
from ruleop.planning.model.actions import Create, Delete, Patch, ServerSideApply
from ruleop.planning.model.marks import APPLIED, annotations_of
from ruleop.planning.model.observed import Served
from ruleop.planning.rendering.desired import Desired
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Kind, Object
    from ruleop.language.rules import Child, Rule
    from ruleop.planning.changes import Difference
    from ruleop.planning.model.actions import Action
    from ruleop.planning.model.observed import Kinds


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
            digests[hash(each.key)] = hash(each.digest)
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


# -- work --------------------------------------------------------------------------------------------------------------
#
# Results of a plan that the status plan after its writes reuses.
#
# Objects whose templates read only the custom resource are not rendered again while the resource is unchanged, and
# objects in sync are not merged again while they are unchanged. The plan is the same with or without this cache.


class Rendered(NamedTuple):
    """One rendered object, without its scope, which would keep everything in memory that the pass has read."""

    key: ObjectKey
    kind: Kind
    object: Object
    orphan: bool
    recreate: bool


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    rule: str  # its digest
    resource: tuple[str, str]  # uid and resourceVersion
    rendered: Mapping[str, tuple[Rendered, ...]] = field(default_factory=lambda: _EMPTY)  # by child
    in_sync: Mapping[ObjectKey, str] = field(default_factory=lambda: _EMPTY)  # resourceVersions of objects in sync

    @classmethod
    def of(
        cls, rule: Rule, resource: Object, rendered: Mapping[str, Iterable[Desired]], in_sync: Iterable[Object]
    ) -> Work:
        """`rendered`: the desired objects of each child that reads only the resource. `in_sync`: live objects."""
        return cls(
            rule.digest,
            _identity(resource),
            {
                id_: tuple(Rendered(each.key, each.kind, each.rendered, each.orphan, each.recreate) for each in desired)
                for id_, desired in rendered.items()
            },
            {ObjectKey.of(live): version_of(live) for live in in_sync},
        )

    def is_for(self, rule: Rule, resource: Object) -> bool:
        return self.rule == rule.digest and self.resource == _identity(resource)

    def desired(self, child: Child, names: Mapping[str, Any], kinds: Kinds) -> list[Desired] | None:
        """The desired objects of a child, with the scope of the current plan; None if they have to be rendered."""
        if child.id not in self.rendered:
            return None
        found = [
            Desired(each.key, each.kind, each.object, kinds.info(each.kind), names, each.orphan, recreate=each.recreate)
            for each in self.rendered[child.id]
        ]
        return None if any(each.info.state is Served.UNSERVED for each in found) else found

    def is_still_in_sync(self, desired: Desired, child: Child, live: Object) -> bool:
        """Whether the live object was in sync and is unchanged."""
        return child.id in self.rendered and self.in_sync.get(desired.key) == version_of(live)

    def after(self, answers: Mapping[ObjectKey, tuple[Object, Object]]) -> Work:
        """The work with the answers to writes: an object whose answer has the record that was sent is in sync."""
        found = {
            key: version_of(answer)
            for key, (desired, answer) in answers.items()
            if annotations_of(desired).get(APPLIED) == annotations_of(answer).get(APPLIED)
        }
        return replace(self, in_sync={**self.in_sync, **found})


def _identity(resource: Object) -> tuple[str, str]:
    metadata = resource["metadata"]
    return metadata.get("uid") or "", metadata.get("resourceVersion") or ""
