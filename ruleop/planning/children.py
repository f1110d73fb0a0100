"""The children of one CR in one pass: each rendered in its turn, compared with what is live, and given its state.

Children are planned in the order of the rule, so that what a child mentions is known before it is rendered. A child
that waits or fails ends its own planning only: what exists of it stays as it is, and those that do not need it go
ahead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError
from ruleop.planning.actions import Action, ChildReport, Create, Delete, Patch, ServerSideApply, State
from ruleop.planning.apply import Applied, HeldBack, Immutable, apply, refusal
from ruleop.planning.errors import ChildFails, ChildWaits, Unlisted, Unread
from ruleop.planning.failures import changes_in_words, public_message, reason_of
from ruleop.planning.list_conflicts import conflict_in_words
from ruleop.planning.marks import Claim, Owner
from ruleop.planning.observed import Observed, Served
from ruleop.planning.outcome import Failed, Failure
from ruleop.planning.permissions import refused, unlisted
from ruleop.planning.planned import (
    Existing,
    Piece,
    Planned,
    Said,
    as_it_exists,
    as_it_will_stand,
    existing_of,
    ready_as_it_exists,
)
from ruleop.planning.readiness import READY, Readiness, readiness
from ruleop.planning.scope import Scope, without_server_noise
from ruleop.planning.wanted import MAX_OBJECTS, Wanted, is_wanted, items_of, render, source_of, wait_for
from ruleop.templating import Disabled, MapView, Origin, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kinds import Object, ObjectKey
    from ruleop.planning.history import History
    from ruleop.planning.work import Work
    from ruleop.rules import Child, Rule


class Children:
    def __init__(
        self,
        rule: Rule,
        observed: Observed,
        history: History,
        scope: Scope,
        owner: Owner,
        work: Work | None,
        *,
        paused: bool = False,
    ) -> None:
        self.rule, self.observed, self.history, self.scope, self.owner = rule, observed, history, scope, owner
        self.work = work  # of an earlier plan of the same custom resource
        self.paused = paused
        self.existing = existing_of(rule, owner, observed)
        self.planned: dict[str, Planned] = {}
        self.mistaken = False  # something could not be rendered
        self.said = Said()
        self._by_id: dict[str, list[Existing]] = {}
        self._taken: dict[ObjectKey, tuple[Planned, Piece]] = {}
        for each in self.existing:
            self._by_id.setdefault(each.child, []).append(each)
        for child in rule.every_child():
            if child.many or child.id in self._by_id:
                scope.live[child.id] = as_it_exists(child, self._of(child), Origin.LIVE)

    def _of(self, child: Child) -> list[Existing]:
        return self._by_id.get(child.id, [])

    def show(self, children: Iterable[Child]) -> None:
        """Children that are not planned in this pass: they are what exists of them."""
        for child in children:
            self.scope.names[child.id] = as_it_exists(child, self._of(child), Origin.LATER)
            self.scope.ready[child.id] = self._is_ready(child)

    def _is_ready(self, child: Child) -> bool:
        if child.ready_when is None or child.for_each is not None:  # what `item` was is not known any more
            return ready_as_it_exists(self._of(child))
        try:
            found = [_holds_for(child, self.scope.names, each.live).ready for each in self._of(child)]
        except RenderError:
            return False
        return bool(found) and all(found)

    # -- one child -----------------------------------------------------------------------------------------------------

    def plan_all(self, children: Iterable[Child]) -> None:
        for child in children:
            self._plan(child)
        self._hold_back_for_namespaces()

    def _plan(self, child: Child) -> None:
        planned = self.planned[child.id] = Planned(child)
        try:
            wanted = self._wanted(planned)
            if wanted is None:
                planned.state = State.UNWANTED
            for each in wanted or ():
                self._place(planned, each)
        except ChildWaits as wait:
            planned.incomplete = True
            self._waits(planned, wait)
        except ChildFails as error:
            planned.incomplete = True
            self._fails(planned, error)
        for piece in planned.pieces:
            if piece.applied is not None:
                piece.state, piece.message = self._state(planned, piece, piece.applied)
        planned.settle()
        unwanted = planned.state is State.UNWANTED
        self.scope.names[child.id] = (
            Disabled(child.id) if unwanted else as_it_will_stand(planned, self._of(child), self.observed, self.owner)
        )
        self.scope.ready[child.id] = planned.ready or unwanted  # nothing to wait for, as in dependsOn

    def _wanted(self, planned: Planned) -> list[Wanted] | None:
        """What the child wants; None if it is not wanted at all. An item that waits or fails does not hold up the
        others."""
        child, names = planned.child, self.scope.names
        if child.optional and any(self.observed.kinds.info(kind).state is Served.UNSERVED for kind in child.kinds):
            planned.message = "the cluster does not serve its kind"
            return None
        if child.for_each is None:
            if not is_wanted(child, names):
                return None
            wait_for(child, names)
            known = self.work.wanted(child, names, self.observed.kinds) if self.work is not None else None
            wanted = render(child, self.scope, names, 0) if known is None else known
            return wanted if wanted or child.many else None
        found: list[Wanted] = []
        bad: list[tuple[int, ChildFails]] = []
        for index, item_names in items_of(child, self.scope):
            try:
                if is_wanted(child, item_names):
                    wait_for(child, item_names)
                    found.extend(render(child, self.scope, item_names, index))
            except ChildWaits as wait:
                planned.incomplete = True
                self._waits(planned, wait)
            except ChildFails as error:
                if error.limit:
                    raise
                bad.append((index, error))
        if bad:
            planned.incomplete = True
            self._fails(planned, _bad_items(bad), alone=True)
        return found

    def _place(self, planned: Planned, wanted: Wanted) -> None:
        """Plans one desired object. If it waits or fails, the others of its child are planned all the same."""
        if len(self._taken) >= MAX_OBJECTS:
            raise ChildFails(f"the CR has more than {MAX_OBJECTS:,} objects", planned.child.body.site)
        piece = Piece(wanted)
        planned.pieces.append(piece)
        if (holder := self._taken.get(wanted.key)) is not None:
            self._contested(planned, piece, *holder)
            return
        self._taken[wanted.key] = planned, piece
        try:
            refer = self.refers(wanted, final=planned.child.final)
            applied = apply(planned.child, wanted, self.owner, self.observed, self.history, self.work, refer=refer)
            if applied.action is not None:
                self._may_write(planned.child, applied.action)
            piece.applied = applied
        except ChildWaits as wait:
            piece.stop(State.WAITING, wait.for_what)
            self._waits(planned, wait)
        except Unlisted:
            planned.unreadable = unlisted(self.rule, wanted.info, wanted.key.namespace)
            error = ChildFails(planned.unreadable, planned.child.body.site, reason="Forbidden")
            piece.stop(State.FAILED, self._fails(planned, error))
        except ChildFails as error:
            piece.stop(State.FAILED, self._fails(planned, error, alone=planned.child.for_each is not None))

    def _contested(self, planned: Planned, piece: Piece, holder: Planned, other: Piece) -> None:
        """Two that render one identity: neither is written, for what would stand there would depend on their order.
        Where items of `forEach` bring it about, it is the data's mistake as much as the rule's, and the other children
        are not affected."""
        key, child = piece.wanted.key, planned.child
        by = "by this child" if holder is planned else f"by the children {holder.child.id} and {child.id}"
        by_items = child.for_each is not None or holder.child.for_each is not None
        message = self._fails(planned, ChildFails(f"{key} is rendered twice, {by}", child.body.site), alone=by_items)
        piece.stop(State.FAILED, message)
        other.stop(State.FAILED, message)
        holder.spares = True
        holder.message = holder.message or message
        holder.settle()
        self.scope.ready[holder.child.id] = False

    def refers(self, wanted: Wanted, *, final: bool) -> bool:
        """Whether an ownerReference is legal: the garbage collector deletes what refers to an owner that it cannot see,
        and what belongs to a CR that is being deleted."""
        here = not self.owner.namespace or wanted.key.namespace == self.owner.namespace
        return here and not wanted.orphan and not final

    def _may_write(self, child: Child, action: Action) -> None:
        for id_, other in self.planned.items():
            if id_ in child.mentions and id_ != child.id and other.state in {State.FAILED, State.REFUSED}:
                raise ChildWaits(f"{id_} to be written", why="child")
            if (
                id_ in child.depends_on
                and isinstance(action, Create)
                and not (other.ready or other.state is State.UNWANTED)
            ):
                raise ChildWaits(f"{id_} to be ready", why="child")

    # -- its state -----------------------------------------------------------------------------------------------------

    def _waits(self, planned: Planned, wait: ChildWaits) -> None:
        planned.spares = True
        if planned.state is not State.FAILED:
            planned.state = State.WAITING
        planned.message = planned.message or f"waits for {wait.for_what}"
        self.said.wait(planned.child.id, wait.for_what, wait.site, why=wait.why)
        if isinstance(wait, Unread):
            self.said.reads.append(wait.read)

    def _fails(self, planned: Planned, error: ChildFails, *, alone: bool = False) -> str:
        """`alone`: a mistake in rendering stops no other child."""
        message = error.message
        if isinstance(error, HeldBack):
            self.said.conflicts.append(error.conflict)
        if isinstance(error, Immutable):
            message = (
                public_message(planned.child, error.failed) + changes_in_words(error.changes, planned.child) + error.way
            )
        planned.spares = True
        self.mistaken = self.mistaken or (error.reason == "RenderFailed" and not alone)
        planned.state, planned.message = State.FAILED, message
        self.said.problem(planned.child.id, error.reason, message, error.site)
        return message

    def _state(self, planned: Planned, piece: Piece, applied: Applied) -> tuple[State, str]:
        child, key = planned.child, piece.wanted.key
        if applied.refused:
            self.said.problem(child.id, "ErrResourceExists", applied.refused)
            return State.REFUSED, applied.refused
        if applied.terminating:
            planned.spares = True
            self.said.wait(child.id, f"{key} to be gone", why="deletion")
            return State.TERMINATING, "is being deleted; will be recreated afterwards"
        if applied.contested:
            self.said.problem(child.id, "FieldConflict", applied.contested)
        if applied.conflict is not None:
            self.said.conflicts.append(applied.conflict)
        if applied.action is not None:
            return self._written(child, piece, applied, applied.action)
        assert applied.stands is not None
        found = self._readiness(piece, child, applied.stands)
        if found.failed:
            self.said.problem(child.id, "ChildFailed", f"{key.kind}/{key.name} {found.message}")
        return (State.READY, "") if found.ready else (State.PROGRESSING, found.message)

    def _written(self, child: Child, piece: Piece, applied: Applied, action: Action) -> tuple[State, str]:
        key = piece.wanted.key
        if self.paused:
            return (
                State.PROGRESSING,
                f"is not {'created' if isinstance(action, Create) else 'changed'} while the CR is paused",
            )
        failed = self.history.failure(key) if self.history.writes is not None else None
        if failed is not None and not (isinstance(action, Delete) and failed.failure is Failure.IMMUTABLE):
            return self._write_failed(child, piece, applied, failed)
        if (
            self.history.writes is not None
        ):  # the writes of this pass made it possible, or necessary: the next pass does it
            self.said.wait(child.id, f"{key} to be written", why="write")
        if isinstance(action, Delete):
            return State.PROGRESSING, "will be recreated"
        if isinstance(action, Create):
            return State.PROGRESSING, "is about to be created"
        conflict = self._conflict(child, piece, applied)
        expected = f", and the API server is expected to reject that: {conflict}" if conflict else ""
        return State.PROGRESSING, f"is about to be changed{expected}"

    def _conflict(self, child: Child, piece: Piece, applied: Applied, managed: Iterable[Mapping[str, Any]] = ()) -> str:
        """Which live item cannot stand beside a desired one. A replaced object has none but desired ones. Empty for a
        child that knows Secrets: the key of an item may come from one."""
        if child.secret or applied.stands is None or not isinstance(applied.action, (Patch, ServerSideApply)):
            return ""
        return conflict_in_words(applied.stands, piece.wanted.rendered, piece.wanted.info.shape, managed)

    def _write_failed(self, child: Child, piece: Piece, applied: Applied, failed: Failed) -> tuple[State, str]:
        key = piece.wanted.key
        message = (
            refused(self.rule, piece.wanted.info, key.namespace, failed.verb)
            if failed.verb
            else public_message(child, failed)
        )
        reason = reason_of(failed.failure)
        if reason is None:
            self.said.wait(
                child.id,
                f"{key} to be written" + (f": {message}" if failed.failure is Failure.OTHER else ""),
                why="write",
            )
            return State.PROGRESSING, message
        if failed.failure is Failure.EXISTS:
            message = refusal(key.name, self.owner.kind.kind, Claim(ours=False))
            self.said.problem(child.id, reason, message)
            return State.REFUSED, message
        if failed.failure is Failure.INVALID and (conflict := self._conflict(child, piece, applied, failed.managed)):
            message += f"; {conflict}"
        self.said.problem(child.id, reason, message, child.body.site)
        return State.FAILED, message

    def _readiness(self, piece: Piece, child: Child, live: Object) -> Readiness:
        if child.ready_when is None:
            return readiness(live, piece.wanted.info.shape)
        try:
            return _holds_for(child, piece.wanted.names, live)
        except RenderError as error:
            forbidden = isinstance(error, Waiting) and error.forbidden
            self.said.problem(child.id, "Forbidden" if forbidden else "RenderFailed", error.message, error.site)
            return Readiness(False, f"is not ready: {error.message}")

    # -- all of them ---------------------------------------------------------------------------------------------------

    def _hold_back_for_namespaces(self) -> None:
        """An object in a Namespace that is a child too is created when that Namespace is ready."""
        homes = {key.name: held for key, held in self._taken.items() if key.group_kind == ("", "Namespace")}
        if not homes:
            return
        for planned in self.planned.values():
            for piece in planned.pieces:
                home = homes.get(piece.wanted.key.namespace)
                if home is None or home[1].state is State.READY or not isinstance(piece.action, Create):
                    continue
                wait = ChildWaits(f"{home[0].child.id} to be ready", why="child")
                piece.stop(State.WAITING, wait.for_what)
                planned.message = ""
                self._waits(planned, wait)

    def actions(self) -> list[Action]:
        """In the order of the rule; each with the children whose writes it needs."""
        written = self.written()
        found: list[Action] = []
        for planned in self.planned.values() if written else ():
            needs = (planned.child.mentions & written) - {planned.child.id}
            actions = (piece.action for piece in planned.pieces if piece.action is not None)
            found.extend(replace(action, needs=needs) if needs else action for action in actions)
        return found

    @property
    def complete(self) -> bool:
        """Whether it is known of each child which objects it wants."""
        return not any(planned.incomplete for planned in self.planned.values())

    def written(self) -> frozenset[str]:
        return frozenset(id_ for id_, planned in self.planned.items() if planned.writes)

    def unreadable(self, ids: Iterable[str]) -> str:
        """Which permission is missing to know how these children and observed resources are; empty where none is."""
        rule, kinds = self.rule, self.observed.kinds
        for id_ in ids:
            if (observe := rule.observe.get(id_)) is not None:
                if kinds.state_of(observe) is Served.FORBIDDEN:
                    return self.scope.unlisted(observe)
                continue
            planned = self.planned.get(id_)
            if planned is not None and planned.unreadable:
                return planned.unreadable
            if planned is not None and planned.state is State.UNWANTED:
                continue
            child = rule.children.get(id_) or rule.finalize[id_]
            if forbidden := [kind for kind in child.kinds if kinds.info(kind).state is Served.FORBIDDEN]:
                return unlisted(rule, kinds.info(min(forbidden)), self.owner.namespace)
        return ""

    def reports(self) -> tuple[ChildReport, ...]:
        return tuple(planned.report() for planned in self.planned.values())

    def in_step(self) -> tuple[tuple[ObjectKey, Object], ...]:
        """The objects that exist as they should be; not those that are left as they are because a change failed, or is
        held back."""
        found = [
            (piece.wanted.key, piece.wanted.rendered)
            for planned in self.planned.values()
            for piece in planned.pieces
            if piece.applied is not None and piece.applied.in_step
        ]
        return tuple(found)

    def rendered(self) -> tuple[tuple[str, str, Object], ...]:
        return tuple(
            (planned.child.id, source_of(planned.child), piece.wanted.rendered)
            for planned in self.planned.values()
            for piece in planned.pieces
        )


def _bad_items(bad: list[tuple[int, ChildFails]]) -> ChildFails:
    """Items of one `forEach` that fail, as one failure: there may be thousands, and mostly it is one mistake. A missing
    permission is not the fault of an item."""
    index, first = bad[0]
    if first.reason != "RenderFailed":
        return first
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return ChildFails(f"item {index} of forEach{more}: {first.message}", first.site, reason=first.reason)


def _holds_for(child: Child, names: Mapping[str, Any], live: Object) -> Readiness:
    """What `readyWhen` says of one object."""
    assert child.ready_when is not None
    try:
        holds = child.ready_when.truth({**names, "this": MapView(without_server_noise(live), "this", Origin.LATER)})
    except Waiting as wait:
        if wait.forbidden:
            raise
        return Readiness(False, f"is not ready: {wait.message}")
    return READY if holds else Readiness(False, "is not ready: readyWhen is false")
