"""What a pass knows of a child: the objects that exist of it, those that it wants, and what becomes of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.planning.actions import Action, ChildReport, FieldConflict, ObjectReport, Problem, Read, State, Wait
from ruleop.planning.apply import Applied, record_of
from ruleop.planning.marks import Claim, Owner, claim_on
from ruleop.planning.readiness import readiness
from ruleop.planning.scope import without_server_noise
from ruleop.planning.wanted import Wanted, source_of, strategy_of
from ruleop.templating import Announced, Later, MapView, ObjectsView, Origin

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.planning.observed import Observed
    from ruleop.rules import Child, Rule


@dataclass(frozen=True, slots=True)
class Existing:
    """An object that is ours."""

    key: ObjectKey
    live: Object
    claim: Claim
    child: str  # the id recorded on it; "" if there is none

    @property
    def terminating(self) -> bool:
        return bool(self.live["metadata"].get("deletionTimestamp"))


def existing_of(rule: Rule, owner: Owner, observed: Observed) -> list[Existing]:
    """All that carries the CR's label and is ours, by identity; each in the version that its child is written in."""
    written = {id_: child.kinds for id_, child in (*rule.children.items(), *rule.finalize.items())}
    found: dict[ObjectKey, Existing] = {}
    for live in observed.objects.children(owner.part_of):
        key = ObjectKey.of(live)
        claim = claim_on(live, key, owner)
        if claim.ours:
            record = record_of(live)
            child = record.id if record is not None else ""
            if key not in found or Kind.of(live) in written.get(child, ()):
                found[key] = Existing(key, live, claim, child)
    return [found[key] for key in sorted(found)]


@dataclass(slots=True)
class Piece:
    """One wanted object, and what becomes of it in this pass."""

    wanted: Wanted
    applied: Applied | None = None  # None: nothing is done about it
    state: State = State.READY
    message: str = ""

    @property
    def action(self) -> Action | None:
        return self.applied.action if self.applied is not None else None

    def stop(self, state: State, message: str) -> None:
        self.applied, self.state, self.message = None, state, message


_WORST = [State.READY, State.UNWANTED, State.PROGRESSING, State.TERMINATING, State.WAITING, State.REFUSED, State.FAILED]


@dataclass(slots=True)
class Planned:
    """One child, planned."""

    child: Child
    state: State = State.READY
    message: str = ""
    pieces: list[Piece] = field(default_factory=list)
    spares: bool = False  # some of its objects are not known in this pass, so none recorded for it may be pruned
    incomplete: bool = False  # some of what it wants could not be rendered
    unreadable: str = ""  # the permission that is missing to read its objects

    @property
    def ready(self) -> bool:
        return self.state is State.READY

    @property
    def writes(self) -> bool:
        return any(piece.action is not None for piece in self.pieces)

    def settle(self) -> None:
        """The child is as well as the worst of its objects."""
        for piece in self.pieces:
            if piece.message and not self.message:
                self.message = (
                    f"{_short(piece.wanted.key)} {piece.message}" if piece.state is State.PROGRESSING else piece.message
                )
            if _WORST.index(piece.state) > _WORST.index(self.state):
                self.state = piece.state

    def report(self) -> ChildReport:
        objects = tuple(ObjectReport(piece.wanted.key, piece.state, piece.message) for piece in self.pieces)
        return ChildReport(self.child.id, self.state, source_of(self.child), self.message, objects)


def _short(key: ObjectKey) -> str:
    return f"{key.kind}/{key.name}"


@dataclass(slots=True)
class Said:
    """What a pass has to tell, each thing once."""

    problems: list[Problem] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    conflicts: list[FieldConflict] = field(default_factory=list)

    def problem(self, child: str, reason: str, message: str, site: Site | None = None) -> None:
        found = Problem(child, reason, message, site)
        if found not in self.problems:
            self.problems.append(found)

    def wait(self, child: str, for_what: str, site: Site | None = None, *, why: str) -> None:
        found = Wait(child, for_what, site, why)
        if found not in self.waits:
            self.waits.append(found)


# -- what others see of a child ----------------------------------------------------------------------------------------


def as_it_exists(child: Child, existing: list[Existing], origin: Origin) -> Any:
    """Its objects as they are now."""
    found = [without_server_noise(each.live) for each in existing]
    name = f"live.{child.id}" if origin is Origin.LIVE else child.id
    if child.many:
        return ObjectsView(found, name, origin)
    return MapView(found[0], name, origin) if found else Later(name)


def as_it_will_stand(planned: Planned, existing: list[Existing], observed: Observed, owner: Owner) -> Any:
    """Its objects after this pass. A create-only child shows what exists, and before that what it is called: the rest
    of what it would be made of is drawn anew each time."""
    child = planned.child
    stands = [_stands(child, piece, observed, owner) for piece in planned.pieces]
    if not stands and planned.spares:
        return as_it_exists(child, existing, Origin.LATER) if existing else Later(child.id)
    if not child.many:
        if stands and stands[0] is not None:
            return MapView(stands[0], child.id, Origin.LATER)
        return _announced(child, planned.pieces[0]) if stands else Later(child.id)
    if planned.incomplete:
        return Later(child.id)  # whoever goes through the list would take it for all there is
    return ObjectsView([each for each in stands if each is not None], child.id, Origin.LATER)


def _announced(child: Child, piece: Piece) -> Later:
    """An object that is not there yet, by its name; not by that of somebody else's object, which is in its place."""
    if piece.applied is not None and piece.applied.refused:
        return Later(child.id)
    rendered, key = piece.wanted.rendered, piece.wanted.key
    metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    return Announced(child.id, {"apiVersion": rendered["apiVersion"], "kind": rendered["kind"], "metadata": metadata})


def _stands(child: Child, piece: Piece, observed: Observed, owner: Owner) -> dict[str, Any] | None:
    applied, wanted = piece.applied, piece.wanted
    if applied is not None and applied.stands is None:
        return None  # somebody else's
    live = applied.stands if applied is not None else None
    if applied is None or applied.action is not None:
        live = observed.objects.get(wanted.key, version=wanted.kind.version)
    ours = live is not None and (applied is not None or claim_on(live, wanted.key, owner).ours)
    if strategy_of(child, wanted.kind) == "create-only" or (applied is None and ours):
        return without_server_noise(live) if live is not None and ours else None
    stands = applied.stands if applied is not None else wanted.rendered
    assert stands is not None
    return without_server_noise(stands)


def ready_as_it_exists(existing: list[Existing]) -> bool:
    return bool(existing) and all(readiness(each.live).ready for each in existing)
