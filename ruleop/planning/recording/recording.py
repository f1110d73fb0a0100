"""Recorded passes: the rule's digest, the custom resource, the observed objects and the history, without Secrets.

`ruleop run --record` writes such documents, and `ruleop plan --replay` plans from one. Each request of planning is
recorded with its answer, so a document has just the objects that the pass has read. The seed of random values is
replaced too, because passwords are derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import Cause, RuleopError
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.crd import crd_shape
from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kubernetes.merge import Answers, Learned
from ruleop.kubernetes.schema import UNKNOWN
from ruleop.language.secrets.placeholders import Placeholders
from ruleop.language.secrets.secret_values import SECRET
from ruleop.planning import FixedObjects, Observed, Query
from ruleop.planning.changes import Reverted
from ruleop.planning.child.existing import read_record
from ruleop.planning.history import ConflictingObject, History, Refusal, RefusedStatus, Writes
from ruleop.planning.late_plans import Late
from ruleop.planning.model.conditions import Condition
from ruleop.planning.model.observed import KindInfo, Served
from ruleop.planning.model.outcome import Failed, Failure
from ruleop.planning.rendering.synced import Synced
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.language.rules import Observe, Rule
    from ruleop.planning import Kinds, Objects, Plan
    from ruleop.planning.model.proofs import Proofs


# -- typed json --------------------------------------------------------------------------------------------------------
#
# Encodes values of planning as JSON and decodes them: frozen dataclasses, named tuples, enums, tuples, sets and
# mappings with any keys. Plain JSON stays as it is.


_TYPE: Final = "$type"
_CLASSES: Final[Mapping[str, Any]] = {
    each.__name__: each
    for each in (
        Answers,
        Cause,
        Condition,
        ConflictingObject,
        Failed,
        Failure,
        GroupKind,
        History,
        Kind,
        KindInfo,
        Late,
        Learned,
        ObjectKey,
        Refusal,
        RefusedStatus,
        Reverted,
        Served,
        Synced,
        Writes,
    )
}


def encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return {_TYPE: type(value).__name__, "value": value.value}
    if is_dataclass(value):
        changed = {each.name: getattr(value, each.name) for each in fields(value) if not _is_default(value, each)}
        return {_TYPE: type(value).__name__, **{name: encode(member) for name, member in changed.items()}}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {_TYPE: type(value).__name__, "value": list(value)}
    if isinstance(value, tuple | frozenset | set):
        items = sorted(value, key=str) if isinstance(value, frozenset | set) else value
        return {_TYPE: "tuple" if isinstance(value, tuple) else "set", "value": [encode(each) for each in items]}
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value) and _TYPE not in value:
            return {name: encode(member) for name, member in value.items()}
        return {_TYPE: "mapping", "value": [[encode(name), encode(member)] for name, member in value.items()]}
    return [encode(each) for each in value] if isinstance(value, list) else value


def _is_default(value: Any, each: Any) -> bool:
    default = each.default
    if default is MISSING and each.default_factory is not MISSING:
        default = each.default_factory()
    found = getattr(value, each.name)
    return found is default or (type(found) is type(default) and found == default)


def decode(value: Any) -> Any:
    """The value that `encode` was given. Raises KeyError, TypeError or ValueError for other input."""
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    name = value.get(_TYPE)
    if name is None:
        return {key: decode(member) for key, member in value.items()}
    if name == "tuple":
        return tuple(decode(each) for each in value["value"])
    if name == "set":
        return frozenset(decode(each) for each in value["value"])
    if name == "mapping":
        return {decode(key): decode(member) for key, member in value["value"]}
    class_ = _CLASSES[name]
    if issubclass(class_, Enum):
        return class_(value["value"])
    if issubclass(class_, tuple):
        return class_(*value["value"])
    return class_(**{key: decode(member) for key, member in value.items() if key != _TYPE})


# -- recording ---------------------------------------------------------------------------------------------------------


FORMAT: Final = 4
_PLAIN: Final = ("now", "clock", "finalizer", "held_until", "namespace_terminating")
_HIDDEN_SEED: Final = b"replayed"


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded pass that can be planned again."""

    rule_digest: str
    rule: str  # its title
    resource: Object
    observed: Observed
    history: History
    predict_status: bool


class Recorder:
    """The objects and kinds that planning reads in one pass."""

    def __init__(self, observed: Observed) -> None:
        self.objects = _RecordedObjects(observed.objects)
        self.kinds = _RecordedKinds(observed.kinds)
        self.proofs = _RecordedProofs(observed.proofs) if observed.proofs is not None else None
        self.resources: dict[str, ObjectKey | None] = {}
        self.observed = replace(
            observed, objects=self.objects, kinds=self.kinds, proofs=self.proofs, resource_of=self._resource_of
        )
        self._source = observed

    def _resource_of(self, part_of: str) -> ObjectKey | None:
        found = self.resources[part_of] = self._source.resource_of(part_of)
        return found

    def document(
        self, rule: Rule, resource: Object, history: History, plan: Plan, *, predict_status: bool
    ) -> dict[str, Any]:
        conflicting = (each.obj for each in history.conflicting.values())
        objects = [*self.objects.answers.objects(), *conflicting, resource]
        found = {
            "format": FORMAT,
            "rule": {"title": rule.title, "digest": rule.digest},
            "resource": resource,
            "observed": {
                **{name: getattr(self.observed, name) for name in _PLAIN},
                "expects_refusals": self.observed.expects_refusals,
                "sharded": self.observed.sharded,
                "retired": sorted(self.observed.retired),
                "rollout": encode(self.observed.rollout),
                "objects": {
                    each.name: encode(getattr(self.objects.answers, each.name)) for each in fields(RecordedAnswers)
                },
                "kinds": encode({kind: _without_shape(info) for kind, info in self.kinds.infos.items()}),
                "observes": encode(self.kinds.states),
                "own": encode(sorted(self.observed.own)),
                "patched": encode(sorted(self.observed.patched)) if self.observed.patched is not None else None,
                "resources": encode(self.resources),
                "proofs": self.proofs.answers() if self.proofs is not None else None,
            },
            "history": encode(self._without_secrets(rule, history)),
            "predict_status": predict_status,
            "summary": {"actions": [f"{type(each).__name__} {each.key}" for each in plan.actions], "quiet": plan.quiet},
        }
        redacted: dict[str, Any] = Placeholders(objects, plan.masks.values).of(found)
        return redacted

    def _without_secrets(self, rule: Rule, history: History) -> History:
        """The history without fields for the log, without what is settled, and, of objects that hold data of a Secret
        or may hold some, without fingerprints of values and without messages of the API server."""
        closed = self._with_secret_data(rule, history)
        learned = {key: each for key, each in history.learned.items() if key not in closed}
        applied = {key: each for key, each in history.applied.items() if key not in closed}
        refusals = {
            key: replace(each, failed=_redacted(each.failed)) if key in closed else each
            for key, each in history.refusals.items()
        }
        unreleased = {key: _redacted(each) if key in closed else each for key, each in history.unreleased.items()}
        writes = history.writes
        if writes is not None:
            failed = {key: _redacted(each) if key in closed else each for key, each in writes.failed.items()}
            done = {key: "" if key in closed else digest for key, digest in writes.done.items()}
            writes = replace(writes, failed=failed, done=done)
        return replace(
            history,
            learned=learned,
            applied=applied,
            refusals=refusals,
            unreleased=unreleased,
            writes=writes,
            synced=Synced(),
            settled=None,
        )

    def _with_secret_data(self, rule: Rule, history: History) -> frozenset[ObjectKey]:
        """The objects of the history that may hold data of a Secret: those of a kind that a child which reads Secrets
        can render, unless the record in the object names another child."""
        readers = [child for child in rule.every_child if child.secrecy.reads]
        kinds = {SECRET, *(kind.versionless for child in readers for kind in child.kinds)}
        ids = {child.id for child in readers}
        children = {ObjectKey.of(obj): read_record(obj) for obj in self.objects.answers.objects()}
        written = (*history.writes.failed, *history.writes.done) if history.writes is not None else ()
        keys = {*history.learned, *history.applied, *history.refusals, *history.unreleased, *written}
        return frozenset(
            key
            for key in keys
            if key.group_kind in kinds
            and (key.group_kind == SECRET or (record := children.get(key)) is None or record.id in ids)
        )


def read_document(document: Mapping[str, Any]) -> Replay:
    """Raises RuleopError."""
    if document.get("format") != FORMAT:
        raise RuleopError("not a recorded pass of this version of ruleop: record it again with `ruleop run --record`")
    try:
        seen = document["observed"]
        kinds = {kind: _with_shape(info) for kind, info in decode(seen["kinds"]).items()}
        observed = Observed(
            objects=_ReplayedObjects(RecordedAnswers(**decode(seen["objects"]))),
            kinds=_ReplayedKinds(kinds, decode(seen["observes"])),
            seed=_HIDDEN_SEED,
            retired=frozenset(seen["retired"]),
            rollout=decode(seen.get("rollout")),
            expects_refusals=bool(seen.get("expects_refusals")),
            sharded=bool(seen.get("sharded")),
            own=frozenset(decode(seen.get("own", []))),
            patched=frozenset(decode(seen["patched"])) if seen.get("patched") is not None else None,
            resource_of=decode(seen["resources"]).get,
            proofs=_ReplayedProofs(seen["proofs"]) if seen.get("proofs") is not None else None,
            **{name: seen[name] for name in _PLAIN},
        )
        rule, history = document["rule"], decode(document["history"])
        return Replay(
            rule["digest"], rule["title"], document["resource"], observed, history, bool(document["predict_status"])
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RuleopError(f"not a recorded pass: {type(error).__name__} at {error}") from None


def _redacted(failed: Failed) -> Failed:
    causes = tuple(replace(cause, message="") for cause in failed.causes)
    return replace(failed, message=failed.redacted, causes=causes)


def _without_shape(info: KindInfo) -> KindInfo:
    return replace(info, shape=UNKNOWN)


def _with_shape(info: KindInfo) -> KindInfo:
    """The shape of a kind, from the table of built-in kinds or the recorded schema."""
    shape = builtin_shape(info.kind) or (crd_shape(info.status_schema) if info.status_schema is not None else UNKNOWN)
    return replace(info, shape=shape)


# -- what planning asks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """Recorded answers by request: an object, the children of a custom resource, the objects whose fields it sets, the
    objects of a kind."""

    get: dict[tuple[ObjectKey, str, bool], Object | None] = field(default_factory=dict)
    children: dict[str, list[Object]] = field(default_factory=dict)
    patched: dict[str, list[Object]] = field(default_factory=dict)
    select: dict[tuple[GroupKind, str | None, str, bool], list[Object]] = field(default_factory=dict)

    def objects(self) -> Iterator[Object]:
        yield from (obj for obj in self.get.values() if obj is not None)
        for found in (*self.children.values(), *self.patched.values(), *self.select.values()):
            yield from found


class _RecordedObjects:
    def __init__(self, objects: Objects) -> None:
        self.source = objects
        self.answers = RecordedAnswers()

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        found = self.answers.get[key, version, partial] = self.source.get(key, version=version, partial=partial)
        return found

    def children(self, part_of: str) -> Iterable[Object]:
        found = self.answers.children[part_of] = list(self.source.children(part_of))
        return found

    def patched(self, part_of: str) -> Iterable[Object]:
        found = self.answers.patched[part_of] = list(self.source.patched(part_of))
        return found

    def select(self, query: Query) -> Sequence[Object]:
        found, asked = list(self.source.select(query)), query[:4]
        known = {ObjectKey.of(obj): obj for obj in (*self.answers.select.get(asked, ()), *found)}
        self.answers.select[asked] = [obj for _, obj in sorted(known.items())]
        return found


class _ReplayedObjects:
    """Requests that the recorded rules did not make are answered from all recorded objects."""

    def __init__(self, answers: RecordedAnswers) -> None:
        self.answers = answers
        self.seen = FixedObjects(answers.objects())

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        asked = (key, version, partial)
        return self.answers.get[asked] if asked in self.answers.get else self.seen.get(key)

    def children(self, part_of: str) -> Iterable[Object]:
        return self.answers.children[part_of] if part_of in self.answers.children else self.seen.children(part_of)

    def patched(self, part_of: str) -> Iterable[Object]:
        return self.answers.patched[part_of] if part_of in self.answers.patched else self.seen.patched(part_of)

    def select(self, query: Query) -> Sequence[Object]:
        known = self.answers.select.get(query[:4])
        return self.seen.select(query) if known is None else FixedObjects(known).select(query)


class _RecordedKinds:
    def __init__(self, kinds: Kinds) -> None:
        self.source = kinds
        self.infos: dict[Kind, KindInfo] = {}
        self.states: dict[str, Served] = {}  # by the observe's id

    def info(self, kind: Kind) -> KindInfo:
        found = self.infos[kind] = self.source.info(kind)
        return found

    def state_of(self, observe: Observe) -> Served:
        found = self.states[observe.id] = self.source.state_of(observe)
        return found


class _ReplayedKinds:
    def __init__(self, infos: Mapping[Kind, KindInfo], states: Mapping[str, Served]) -> None:
        self.infos, self.states = infos, states

    def info(self, kind: Kind) -> KindInfo:
        """The state of a kind. One that was not recorded is assumed to be served."""
        return self.infos.get(kind) or _with_shape(KindInfo(kind, known=False))

    def state_of(self, observe: Observe) -> Served:
        return self.states.get(observe.id) or self.info(observe.kind).state


class _RecordedProofs:
    """The proofs that planning asked for. A document has no key."""

    def __init__(self, proofs: Proofs) -> None:
        self.source = proofs
        self.made: dict[str, str] = {}
        self.valid: set[tuple[str, str]] = set()

    @property
    def accept_unproven(self) -> bool:
        return self.source.accept_unproven

    @property
    def accept_unproven_managers(self) -> bool:
        return self.source.accept_unproven_managers

    def of(self, text: str) -> str:
        found = self.made[text] = self.source.of(text)
        return found

    def hold(self, text: str, proof: str) -> bool:
        holds = self.source.hold(text, proof)
        if holds:
            self.valid.add((text, proof))
        return holds

    def answers(self) -> dict[str, Any]:
        return {
            "made": sorted(map(list, self.made.items())),
            "valid": sorted(map(list, self.valid)),
            "acceptUnproven": self.accept_unproven,
            "acceptUnprovenManagers": self.accept_unproven_managers,
        }


class _ReplayedProofs:
    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.made = dict(answers["made"])
        self.valid = {(text, proof) for text, proof in answers["valid"]}
        self.accept_unproven = bool(answers["acceptUnproven"])
        self.accept_unproven_managers = bool(answers["acceptUnprovenManagers"])

    def of(self, text: str) -> str:
        found: str = self.made.get(text, "")
        return found

    def hold(self, text: str, proof: str) -> bool:
        return (text, proof) in self.valid
