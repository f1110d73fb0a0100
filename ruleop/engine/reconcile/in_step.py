"""Remembers which objects matched the desired state when they were last seen or written, to distinguish drift from edits.

An object that differs from what is rendered has drifted only if the same was rendered when it was last in step: then
somebody else has changed it since. If something else was rendered then, or if nothing is known of that time (the first
pass after a start, or after an edit of the CR or of the rules), the write is a patch and nothing more is claimed. An
object that existed, was not deleted by ruleop, and is missing now was deleted by somebody else.

This is kept for every child of every CR, so it holds hashes and no names. A pass that changes nothing computes none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.planning import Create, Delete, Patch, Replace, ServerSideApply
from ruleop.planning.wanted import digest_of
from ruleop.planning.writes import Verb, changes, is_mark, verb_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ruleop.kinds import Object, ObjectKey
    from ruleop.planning import Action, Kinds, Plan
    from ruleop.rules import Rule

_UNKNOWN = -1  # never a hash: the object exists, and what was rendered when it was last in step is not known


class InStep:
    """Of one CR. `plan` before a plan is carried out, `done` after each of its actions."""

    __slots__ = ("_basis", "_count", "_digests", "_uid")

    def __init__(self) -> None:
        self._digests: dict[int, int] = {}
        self._uid = 0
        self._basis = 0
        self._count = -1

    def plan(self, rule: Rule, resource: Object, planned: Plan) -> None:
        """Remembers the objects that are in step by this plan, where something may have changed."""
        metadata = resource["metadata"]
        basis = hash((rule.digest, metadata.get("generation")))
        if basis == self._basis and len(planned.in_step) == self._count:
            return
        uid = hash(metadata.get("uid"))
        if uid != self._uid:  # another CR of this name: its children are others
            self._digests.clear()
        elif basis != self._basis:
            self._digests = dict.fromkeys(self._digests, _UNKNOWN)
        self._uid, self._basis, self._count = uid, basis, len(planned.in_step)
        for key, rendered in planned.in_step:
            self._digests[hash(key)] = hash(digest_of(rendered))

    def verb(self, action: Action, resource: Object, kinds: Kinds) -> Verb:
        """What the action is called, given what existed before."""
        verb = verb_of(action)
        if isinstance(action, Create):
            return Verb.RECREATE if hash(action.key) in self._digests else verb
        if not isinstance(action, (Patch, Replace, ServerSideApply)) or action.why != "changed":
            return verb
        same, uid = self._digests.get(hash(action.key)) == hash(action.wanted), resource["metadata"].get("uid") or ""
        # ruleop's own marks may change for reasons that are not rendered, such as `deletion`.
        return Verb.REVERT if same and not all(is_mark(each, uid) for each in changes(action, kinds)) else verb

    def done(self, action: Action) -> None:
        if isinstance(action, (Create, Patch, Replace, ServerSideApply)) and verb_of(action) is not Verb.RELEASE:
            self._digests[hash(action.key)] = hash(action.wanted)
        elif isinstance(action, (Delete, Patch)):
            self._digests.pop(hash(action.key), None)

    def doubt(self) -> None:
        """An action was not carried out, or its outcome is unknown: the next plan is compared again."""
        self._count = -1

    def keep(self, wanted: Collection[ObjectKey]) -> None:
        """These objects are all that the CR wants."""
        if len(self._digests) > len(wanted):
            known = {hash(key) for key in wanted}
            self._digests = {key: digest for key, digest in self._digests.items() if key in known}
