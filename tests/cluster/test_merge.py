"""ruleop's merge is held to server-side apply on a real API server.

A triple comes about as in a cluster: ruleop applies something, somebody else applies fields of his own, and then ruleop
wants something else. What the server makes of that by server-side apply (as a dry run) must be what it ends with when
it is sent the result of our merge in one merge patch. Where the two differ, the difference is one of those in
docs/merge.md, "Where ruleop differs from server-side apply"; each of them is a function here, which has to recognise it
from the triple alone.

    RULEOP_MERGE_EXAMPLES=2000 pytest ... tests/cluster/test_merge.py     other triples each time, and that many for
    each kind
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, note, reject, settings
from hypothesis import strategies as st

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import FieldSet, Learned, create_fields, merge_patch, normalise_desired, same, three_way
from ruleop.kubernetes.merge.equality import fingerprint
from ruleop.kubernetes.merge.fields import Fields, KeyedFields, Leaf, MapFields, SetFields
from ruleop.kubernetes.merge.lists import item_key, item_keys
from ruleop.kubernetes.quantity import quantity_equal
from ruleop.kubernetes.schema.shape import DERIVED, UNKNOWN, Shape
from tests.cluster import everything, objects
from tests.cluster.objects import Subject
from tests.cluster.server import Client, RefusedError

pytestmark = pytest.mark.real_server(
    "it says what a merge should be; the server in memory has the same functions as ruleop"
)

JSON = Any
Step = str | tuple[str, Any]
"""A name, ("item", keys) or ("member", fingerprint)."""
Path = tuple[Step, ...]

US, OTHER, EARLIER = "ruleop", "other", "earlier"
EXAMPLES = int(os.environ.get("RULEOP_MERGE_EXAMPLES", "0"))
TRIPLES = settings(
    max_examples=EXAMPLES or 150,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
SUBJECTS = [
    objects.DEPLOYMENT,
    objects.SERVICE,
    objects.CONFIG_MAP,
    objects.INGRESS,
    objects.STATEFUL_SET,
    objects.EVERYTHING,
]


@dataclass(frozen=True)
class Triple:
    """What is written to one object, in this order: `earlier` is somebody else's object that ruleop adopts, `others` is
    applied by somebody else, and `edited` written by a patch that replaces lists, as `kubectl edit` would."""

    subject: Subject
    earlier: JSON
    applied: JSON
    others: JSON
    edited: JSON
    wanted: JSON

    def __str__(self) -> str:
        steps = {
            name: getattr(self, name)
            for name in ("earlier", "applied", "others", "edited", "wanted")
            if getattr(self, name) is not None
        }
        return in_yaml({"kind": self.subject.kind, **json.loads(json.dumps(steps))})

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("\n" + str(self))


def in_yaml(value: JSON) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
    return text


@st.composite
def triples(draw: Any, subject: Subject) -> Triple:
    seldom = st.one_of(st.none(), st.none(), subject.whole)
    earlier, applied, edited, wanted = draw(seldom), draw(subject.whole), draw(seldom), draw(subject.whole)
    return Triple(subject, earlier, applied, draw(subject.share) if edited is None else None, edited, wanted)


# Paths


def member(shape: Shape, name: str) -> Shape:
    return shape.fields.get(name) or shape.values or UNKNOWN


def owned(fields_v1: dict[str, JSON], shape: Shape, path: Path = ()) -> Iterator[Path]:
    """The paths in one entry of the server's managedFields."""
    for name, inner in fields_v1.items():
        what, _, text = name.partition(":")
        if what == ".":
            yield path
            continue
        step: Step
        if what == "f":
            step, below = text, member(shape, text)
        elif what == "k":
            step, below = ("item", item_key(json.loads(text), shape)), shape.items or UNKNOWN
        else:
            step, below = ("member", fingerprint(json.loads(text))), UNKNOWN
        if inner:
            yield from owned(inner, below, (*path, step))
        else:
            yield (*path, step)


def recorded(fields: Fields, path: Path = ()) -> Iterator[tuple[Path, Fields]]:
    """The paths in ruleop's record, containers included."""
    yield path, fields
    if isinstance(fields, MapFields):
        for name, inner in fields.members.items():
            yield from recorded(inner, (*path, name))
    elif isinstance(fields, KeyedFields):
        for key, inner in fields.items.items():
            yield from recorded(inner, (*path, ("item", key)))
    elif isinstance(fields, SetFields):
        for text in fields.fingerprints:
            yield (*path, ("member", text)), Leaf.SCALAR


def as_owned(fields: Fields, shape: Shape, path: Path = (), *, itself: bool = False) -> Iterator[Path]:
    """The paths that the server's managedFields have for ruleop's record: containers have none of their own, but for
    items, members of open maps, and empty maps."""
    if isinstance(fields, Leaf) or itself or (isinstance(fields, MapFields) and not fields.members):
        yield path
    if isinstance(fields, MapFields):
        for name, inner in fields.members.items():
            yield from as_owned(inner, member(shape, name), (*path, name), itself=name not in shape.fields)
    elif isinstance(fields, KeyedFields):
        for key, inner in fields.items.items():
            yield from as_owned(inner, shape.items or UNKNOWN, (*path, ("item", key)), itself=True)
    elif isinstance(fields, SetFields):
        yield from ((*path, ("member", text)) for text in fields.fingerprints)


def entries(obj: JSON, shape: Shape, *managers: str) -> set[Path]:
    return {
        path
        for entry in obj["metadata"].get("managedFields", ())
        if entry["manager"] in managers
        for path in owned(entry["fieldsV1"], shape)
    }


def prefixes(path: Path) -> Iterator[Path]:
    return (path[:length] for length in range(len(path) + 1))


def shown(path: Path) -> str:
    return ".".join(step if isinstance(step, str) else f"[{step[1]}]" for step in path)


def shape_at(shape: Shape, path: Path) -> Shape:
    for step in path:
        shape = member(shape, step) if isinstance(step, str) else shape.items or UNKNOWN
    return shape


# Differences

ABSENT = "(absent)"


@dataclass(frozen=True, eq=False)
class Difference:
    path: Path
    ours: JSON
    theirs: JSON
    of_order: bool = False

    def __str__(self) -> str:
        return f"{shown(self.path)}: {'order ' if self.of_order else ''}{self.ours!r} by ruleop, {self.theirs!r} by server-side apply"


def differences(ours: JSON, theirs: JSON, shape: Shape, path: Path = ()) -> Iterator[Difference]:
    """The smallest places at which two objects differ."""
    if type(ours) is dict and type(theirs) is dict and not shape.atomic:
        for name in sorted({*ours, *theirs}):
            yield from differences(ours.get(name, ABSENT), theirs.get(name, ABSENT), member(shape, name), (*path, name))
    elif type(ours) is list and type(theirs) is list and shape.list_type in ("map", "set"):
        one, other = (dict(zip(steps_of(items, shape), items, strict=True)) for items in (ours, theirs))
        for step in [*one, *(step for step in other if step not in one)]:
            yield from differences(
                one.get(step, ABSENT), other.get(step, ABSENT), shape.items or UNKNOWN, (*path, step)
            )
        common = [step for step in one if step in other], [step for step in other if step in one]
        if common[0] != common[1]:
            yield Difference(path, *common, of_order=True)
    elif not same(ours, theirs):
        yield Difference(path, ours, theirs)


def steps_of(items: list[JSON], shape: Shape) -> list[Step]:
    if shape.list_type == "set":
        return [("member", fingerprint(item)) for item in items]
    return [("item", key) for key in item_keys(items, shape)]


# What is documented


@dataclass(frozen=True)
class Situation:
    """A triple as far as it tells which differences are to be expected."""

    shape: Shape
    live: JSON
    wanted: JSON
    record: dict[Path, Fields]
    wants: dict[Path, Fields]
    others: set[Path]
    still_ours: set[Path]

    @classmethod
    def of(cls, live: JSON, wanted: JSON, record: FieldSet | None, shape: Shape) -> Situation:
        before = dict(recorded(record.root)) if record is not None else {}
        wants = dict(recorded(create_fields(wanted, shape).root))
        return cls(shape, live, wanted, before, wants, entries(live, shape, OTHER, EARLIER), entries(live, shape, US))

    def given_up(self) -> Iterator[Path]:
        return (path for path in self.record if path not in self.wants)

    def of_others(self, path: Path) -> bool:
        """Whether somebody else applied this, or something in it."""
        return any(other[: len(path)] == path for other in self.others)


def shared_field(situation: Situation) -> Iterator[Path]:
    """1. A field that somebody else applied too goes when we give it up."""
    return (path for path in situation.given_up() if path in situation.others)


def whole(situation: Situation) -> Iterator[Path]:
    """2. A struct or item that we created goes with what others put into it."""
    for path in situation.given_up():
        fields = situation.record[path]
        created = (
            isinstance(fields, MapFields)
            and fields.created
            and (is_item(path) or shape_at(situation.shape, path).fields)
        )
        # Where somebody removed our fields in it, managedFields no longer have our entry.
        if created and (
            situation.of_others(path) or not any(within(owned_path, path) for owned_path in situation.still_ours)
        ):
            yield path


def filled_anew(situation: Situation) -> Iterator[Path]:
    """2. ... and where the server has defaults for the struct, it fills them in again, and not the values of others."""
    return (path for path in whole(situation) if not is_item(path))


def there_before(situation: Situation) -> Iterator[Path]:
    """3. What we did not create stays when we have emptied it, and items keep their keys."""
    return (path for path in situation.given_up() if getattr(situation.record[path], "created", True) is False)


def exclusive(situation: Situation) -> Iterator[Path]:
    """4. Members that exclude each other are cleared, and server-side apply keeps them."""
    for path, fields in situation.wants.items():
        if isinstance(fields, MapFields) and shape_at(situation.shape, path).retain_keys:
            yield from (other for other in situation.others if len(other) > len(path) and other[: len(path)] == path)
            yield path


def empty_list(situation: Situation) -> Iterator[Path]:
    """11. An empty list known by keys, and an empty set, have no owner under server-side apply, and stay when they are
    given up."""
    for path in situation.given_up():
        fields = situation.record[path]
        if isinstance(fields, KeyedFields | SetFields) and is_empty(fields):
            yield path


def emptied(situation: Situation) -> Iterator[Path]:
    """10. A map or list that is desired, even if empty, by us or by others, stays when we release its contents.
    Server-side apply makes it null, which is absent, or is refused where the schema does not allow it."""
    for path in {path[:-1] for path in situation.given_up()}:
        fields = situation.wants.get(path)
        by_others = (
            path in situation.others and not is_item(path) and not any(inner[:-1] == path for inner in situation.others)
        )
        if by_others or (fields is not None and is_empty(fields)):
            yield path


def edited_key(situation: Situation) -> Iterator[Path]:
    """12. An item whose key was changed by hand gets it back. Server-side apply adds the item again, beside one of the
    same name."""
    for path in situation.record:
        if path in situation.wants and is_item(path) and shape_at(situation.shape, path[:-1]).unique:
            listed = value_at(situation.live, path[:-1], situation.shape)
            if listed is not None and path[-1] not in steps_of(listed, shape_at(situation.shape, path[:-1])):
                yield path[:-1]


def value_at(value: JSON, path: Path, shape: Shape) -> JSON:
    """The value at a path of names and items, or None."""
    for step in path:
        if value is None:
            return None
        if isinstance(step, str):
            value, shape = value.get(step), member(shape, step)
        else:
            value, shape = dict(zip(steps_of(value, shape), value, strict=True)).get(step), shape.items or UNKNOWN
    return value


def derived_field(situation: Situation) -> Iterator[Path]:
    """13. What the server derived from a field follows it, and under server-side apply stays, or restores it."""
    for path in {**situation.record, **situation.wants}:
        for length in range(len(path)):
            for row in DERIVED.get(shape_at(situation.shape, path[:length]).derived, ()):
                if row.within == names(path[length:-1]):
                    yield (*path[:-1], row.field)


def equal_value(difference: Difference, shape: Shape) -> bool:
    """7. A quantity that amounts to the same stays as it is spelled."""
    return shape_at(shape, difference.path).format == "quantity" and quantity_equal(difference.ours, difference.theirs)


def is_empty(fields: Fields) -> bool:
    return not isinstance(fields, Leaf) and len(list(recorded(fields))) == 1


def is_item(path: Path) -> bool:
    return bool(path) and not isinstance(path[-1], str)


def related(one: Path, other: Path) -> bool:
    """Whether one of the paths leads to, or through, the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def within(inner: Path, outer: Path) -> bool:
    return inner[: len(outer)] == outer


# What may be there on one side only: after ruleop's merge, and after server-side apply.
ONLY_OURS = [there_before, emptied, filled_anew]
ONLY_THEIRS = [whole, emptied, shared_field, exclusive, empty_list, derived_field]
# Whose result may be refused for what is there, or is missing.
REFUSED_OURS = [shared_field, there_before]
REFUSED_THEIRS = [edited_key, whole, emptied, shared_field, exclusive, derived_field]


# What the server makes of one field by another: where the one differs for a reason, so does the other.
FOLLOWS = {
    ("spec", "strategy", "type"): [("spec", "strategy", "rollingUpdate")],
    ("spec", "updateStrategy", "type"): [("spec", "updateStrategy", "rollingUpdate")],
    ("spec", "sessionAffinity"): [("spec", "sessionAffinityConfig")],
    ("spec", "type"): [
        ("spec", "ports", "nodePort"),
        ("spec", "externalTrafficPolicy"),
        ("spec", "healthCheckNodePort"),
        ("spec", "allocateLoadBalancerNodePorts"),
        ("spec", "loadBalancerSourceRanges"),
    ],
    ("spec", "externalIPs"): [("spec", "externalTrafficPolicy")],
    ("spec", "externalTrafficPolicy"): [("spec", "healthCheckNodePort")],
    ("spec", "template", "spec", "volumes"): [("spec", "template", "spec", "containers", "volumeMounts", "name")],
}


def reasons_for(situation: Situation, differing: list[Difference]) -> dict[Difference, str]:
    """The documented reasons of differences, as far as there is one."""
    found = {difference: reason for difference in differing if (reason := why(situation, difference))}
    led = {follower for difference in found for follower in FOLLOWS.get(names(difference.path), ())}
    return {**{difference: "follows" for difference in differing if names(difference.path) in led}, **found}


def why(situation: Situation, difference: Difference) -> str | None:
    if equal_value(difference, situation.shape):
        return equal_value.__name__
    for reason in ONLY_OURS if difference.theirs == ABSENT else ONLY_THEIRS:
        reach = within if reason in (emptied, empty_list) else related
        if any(reach(path, difference.path) for path in reason(situation)):
            return reason.__name__
    return None


def why_refused(
    situation: Situation, cause: tuple[str, ...], reasons: Iterable[Callable[[Situation], Iterator[Path]]]
) -> str | None:
    """The documented reason for which only one of the two is refused."""
    for reason in reasons:
        reach = within if reason is emptied else related
        paths = {names(path) for path in reason(situation)}
        if any(reach(path, cause) or at_odds(path, cause) or cause in FOLLOWS.get(path, ()) for path in paths):
            return reason.__name__
    return None


# Members of which an object has only one, without the API's declaring it: who keeps one is refused the other.
AT_ODDS = [{"httpGet", "tcpSocket", "exec"}, {"value", "valueFrom"}]


def at_odds(path: tuple[str, ...], cause: tuple[str, ...]) -> bool:
    return any(
        path[:index] == cause[:index] and any({one, other} <= group for group in AT_ODDS)
        for index, (one, other) in enumerate(zip(path, cause, strict=False))
    )


def names(path: Path) -> tuple[str, ...]:
    """A path without the items of lists."""
    return tuple(step for step in path if isinstance(step, str))


def causes_of(answer: JSON | RefusedError) -> frozenset[tuple[str, ...]]:
    """What a refusal names. The positions in lists are those in an object that we never saw."""
    if not isinstance(answer, RefusedError):
        return frozenset()
    assert answer.code == 422, answer
    assert answer.causes, answer
    # The server writes some names as Go does: spec.LoadBalancerSourceRanges.
    parts = ([part.partition("[")[0] for part in cause.split(".")] for cause in answer.causes)
    return frozenset(tuple(part[:1].lower() + part[1:] for part in cause) for cause in parts)


# What is learned


def kind_of_answer(sent: JSON, answered: JSON) -> str:
    """How the server changed a value, for the figures."""
    if answered == ABSENT:
        return (
            "empty list or map dropped" if sent in ([], {}) else "zero value dropped" if not sent else "value dropped"
        )
    return "inside of an atomic list or map changed" if isinstance(sent, dict | list) else "value rewritten"


# The test


@dataclass
class Figures:
    """The results of the triples of one kind, printed at the end."""

    triples: int = 0
    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    differing: collections.Counter[str] = field(default_factory=collections.Counter)
    writes: int = 0
    to_learn: int = 0
    learned: collections.Counter[str] = field(default_factory=collections.Counter)

    def __str__(self) -> str:
        return (
            f"{self.triples} triples; refused on one side or both: {dict(self.refused)}; documented differences: {dict(self.differing)}; "
            f"{self.to_learn} of {self.writes} writes taught something: {dict(self.learned)}"
        )


NUMBERS = itertools.count()
OMITTED = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "name")
# What the server strips from every entry of managedFields.
NEVER_OWNED = {("apiVersion",), ("kind",), ("metadata", "name")}


def comparable(obj: JSON) -> JSON:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in OMITTED}
    obj = {**obj, "metadata": metadata}
    if obj["kind"] == "Service":  # which number the server picks is chance
        ports = [{**port, "nodePort": "some"} if "nodePort" in port else port for port in obj["spec"]["ports"]]
        obj["spec"] = {**obj["spec"], "ports": ports}
        if "healthCheckNodePort" in obj["spec"]:
            obj["spec"]["healthCheckNodePort"] = "some"
    return obj


def attempt(action: Callable[[], JSON]) -> JSON | RefusedError:
    try:
        return action()
    except RefusedError as refusal:
        return refusal


class UnusableTripleError(Exception):
    """The server rejects the three objects before ruleop merges them: the fields of others contradict ruleop's."""


def nobody(text: str) -> None:
    """Reports nothing."""


@dataclass
class Comparison:
    """One triple on the server."""

    server: Client
    shape: Shape
    triple: Triple
    figures: Figures = field(default_factory=Figures)
    tell: Callable[[str], object] = nobody  # gets what is worth knowing of a failure
    name: str = field(default_factory=lambda: f"t{next(NUMBERS)}")

    @property
    def path(self) -> str:
        return f"{self.triple.subject.path}/{self.name}"

    def run(self) -> list[str]:
        """The reasons for which the two results differ, or only one of them was refused. Raises AssertionError where
        there is none."""
        try:
            return self._run()
        finally:
            if self.triple.subject is objects.SERVICE:  # there are not that many addresses
                attempt(lambda: self.server.merge(self.path, {"metadata": {"finalizers": None}}, US))
                attempt(lambda: self.server.delete(self.path))

    def _run(self) -> list[str]:
        triple, record = self.triple, create_fields(self._body(self.triple.applied), self.shape)
        reasons: list[str] = []
        if triple.earlier is not None:
            live = self._prepared(lambda: self.server.apply(self.path, self._body(triple.earlier), EARLIER))
            record = self._compare(live, triple.applied, None, reasons, dry_run=True)
        live = self._prepared(lambda: self.server.apply(self.path, self._body(triple.applied), US))
        if triple.others is not None:
            live = self._prepared(lambda: self.server.apply(self.path, self._body(triple.others), OTHER))
        if triple.edited is not None:
            live = self._prepared(lambda: self.server.merge(self.path, self._body(triple.edited), OTHER))
        self.figures.triples += 1
        self._compare(live, triple.wanted, record, reasons)
        return reasons

    def _body(self, part: JSON) -> JSON:
        return self.triple.subject.named(part, self.name)

    @staticmethod
    def _prepared(action: Callable[[], JSON]) -> JSON:
        try:
            return action()
        except RefusedError as refusal:
            raise UnusableTripleError(str(refusal)) from None

    def _compare(
        self, live: JSON, part: JSON, record: FieldSet | None, reasons: list[str], *, dry_run: bool = False
    ) -> FieldSet:
        wanted, shape = self._body(part), self.shape
        theirs = attempt(lambda: self.server.apply(self.path, wanted, US, dry_run=True))
        wanted = normalise_desired(wanted, Kind.of(wanted))
        merged = three_way(live, wanted, record, shape)
        patch = merge_patch(live, merged.object)
        ours = (
            live
            if patch is None
            else attempt(lambda: self.server.merge(self.path, guarded(patch, live), US, dry_run=dry_run))
        )

        self.tell(in_yaml({"live": comparable(live), "patch": patch}))
        for who, answer in ("ruleop", ours), ("server-side apply", theirs):
            self.tell(
                f"by {who}: {answer}"
                if isinstance(answer, RefusedError)
                else in_yaml({f"by {who}": comparable(answer)})
            )
        situation = Situation.of(live, wanted, record, shape)
        if isinstance(theirs, RefusedError) or isinstance(ours, RefusedError):
            reasons += self._check_refusals(situation, ours, theirs)
        else:
            reasons += self._check_objects(situation, ours, theirs)
            assert set(as_owned(merged.fields.root, shape)) - NEVER_OWNED == entries(theirs, shape, US)
        if patch is not None and not isinstance(ours, RefusedError):
            self._check_second_pass(ours, wanted, merged.fields)
        return merged.fields

    def _check_objects(self, situation: Situation, ours: JSON, theirs: JSON) -> list[str]:
        found = list(differences(comparable(ours), comparable(theirs), self.shape))
        reasons = reasons_for(situation, found)
        unexplained = [str(difference) for difference in found if difference not in reasons]
        assert not unexplained, "\n".join(unexplained)
        self.figures.differing.update(reasons.values())
        return list(reasons.values())

    def _check_refusals(
        self, situation: Situation, ours: JSON | RefusedError, theirs: JSON | RefusedError
    ) -> list[str]:
        all_reasons: list[str] = []
        ours_only, theirs_only = causes_of(ours) - causes_of(theirs), causes_of(theirs) - causes_of(ours)
        for causes, allowed, answer in (ours_only, REFUSED_OURS, ours), (theirs_only, REFUSED_THEIRS, theirs):
            reasons = {cause: reason for cause in causes if (reason := why_refused(situation, cause, allowed))}
            led = {
                follower
                for cause in reasons
                for leader, all_of in FOLLOWS.items()
                if related(leader, cause)
                for follower in all_of
            }
            assert causes <= {*reasons, *led}, f"refused on one side only: {answer}"
            all_reasons += reasons.values()
        self.figures.refused.update(all_reasons or ["for the same cause"])
        return all_reasons

    def _check_second_pass(self, answer: JSON, wanted: JSON, fields: FieldSet) -> None:
        """With the values learned from the answer, nothing differs, and the record is the same."""
        unlearned = three_way(answer, wanted, fields, self.shape).object
        learned = Learned.NOTHING.learn(wanted, answer, self.shape)
        again = three_way(answer, wanted, fields, self.shape, learned=learned)
        assert again.object is answer, f"written again: {merge_patch(answer, again.object)}"
        assert again.fields == fields, "the record changes by itself"
        self.figures.writes += 1
        self.figures.to_learn += unlearned is not answer
        self.figures.learned.update(
            kind_of_answer(each.ours, each.theirs) for each in differences(unlearned, answer, self.shape)
        )


def guarded(patch: JSON, live: JSON) -> JSON:
    """The patch for the very object that was merged."""
    same_object = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **same_object}}


@pytest.fixture(scope="module")
def custom_shape(server: Client) -> Shape:
    server.define(everything.CRD)
    shape = parse_crd(everything.CRD).shape(everything.VERSION)
    assert shape is not None
    return shape


def shape_of(subject: Subject, custom_shape: Shape) -> Shape:
    return builtin_shape(Kind.parse(subject.api_version, subject.kind)) or custom_shape


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.kind)
@pytest.mark.timeout(0)  # shrinking a failure takes minutes, and RULEOP_MERGE_EXAMPLES as long as it likes
def test_merge_agrees_with_server_side_apply(
    server: Client, custom_shape: Shape, subject: Subject, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, shape = Figures(), shape_of(subject, custom_shape)

    @TRIPLES
    @given(triples(subject))
    def holds(triple: Triple) -> None:
        try:
            Comparison(server, shape, triple, figures, note).run()
        except UnusableTripleError:
            reject()

    holds()
    with capsys.disabled():
        sys.stdout.write(f"\n{subject.kind}: {figures}\n")


APP, SIDE = {"name": "app", "image": "app:1"}, {"name": "side", "image": "side:1"}


def deployment(*containers: JSON, **spec: JSON) -> JSON:
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    return {"spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


def stateful_set(**spec: JSON) -> JSON:
    return deployment(APP, serviceName="db", **spec)


def with_account(part: JSON) -> JSON:
    part["spec"]["template"]["spec"]["serviceAccountName"] = "one"
    return part


def share(*containers: JSON) -> JSON:
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


def custom(**spec: JSON) -> JSON:
    return {"spec": spec}


def service(port: int) -> JSON:
    return {"spec": {"ports": [{"name": "postgres", "port": port}]}}


PROBE = {"httpGet": {"port": 80}}

# One example of each difference, to be read beside docs/merge.md: the kind, the steps, and what tells the two results
# apart.
EXAMPLES_OF_DIFFERENCES: dict[str, tuple[Subject, dict[str, JSON], str]] = {
    "a field that somebody else applied too": (
        objects.CONFIG_MAP,
        {"applied": {"data": {"a": "1"}}, "others": {"data": {"a": "1"}}, "wanted": {}},
        "shared_field",
    ),
    "a field that somebody changed and that we give up": (
        objects.CONFIG_MAP,
        {"applied": {"data": {"a": "1"}}, "edited": {"data": {"a": "2"}}, "wanted": {}},
        "shared_field",
    ),
    "a container to which somebody added: without its image, server-side apply is refused": (
        objects.DEPLOYMENT,
        {
            "applied": deployment(APP, SIDE),
            "others": share({"name": "side", "workingDir": "/"}),
            "wanted": deployment(APP),
        },
        "whole",
    ),
    "a probe to which somebody added: server-side apply is refused": (
        objects.DEPLOYMENT,
        {
            "applied": deployment({**APP, "livenessProbe": PROBE}),
            "others": share({"name": "app", "livenessProbe": {"periodSeconds": 5}}),
            "wanted": deployment(APP),
        },
        "whole",
    ),
    "an item to which somebody added: server-side apply leaves the torso": (
        objects.EVERYTHING,
        {
            "applied": custom(byName=[{"name": "one", "value": "x"}]),
            "others": custom(byName=[{"name": "one", "struct": {"a": "x"}}]),
            "wanted": custom(),
        },
        "whole",
    ),
    "a Deployment's strategy, where the server has filled in rollingUpdate": (
        objects.DEPLOYMENT,
        {"applied": deployment(APP), "wanted": deployment(APP, strategy={"type": "Recreate"})},
        "exclusive",
    ),
    "a struct that somebody has emptied": (
        objects.DEPLOYMENT,
        {
            "applied": deployment({**APP, "securityContext": {"runAsUser": 2}}),
            "edited": share({**APP, "securityContext": {}}),
            "wanted": deployment(APP),
        },
        "whole",
    ),
    "a struct in which somebody changed something: the server fills it anew": (
        objects.STATEFUL_SET,
        {
            "applied": stateful_set(updateStrategy={"type": "OnDelete"}),
            "edited": {"spec": {"updateStrategy": {"type": "RollingUpdate"}}},
            "wanted": stateful_set(),
        },
        "filled_anew",
    ),
    "a quantity that amounts to the same": (
        objects.DEPLOYMENT,
        {
            "applied": deployment({**APP, "resources": {"requests": {"memory": "536870912"}}}),
            "wanted": deployment({**APP, "resources": {"requests": {"memory": "512Mi"}}}),
        },
        "equal_value",
    ),
    "a map that we want to be empty: a null is refused": (
        objects.EVERYTHING,
        {"applied": custom(open={"a": "x"}), "wanted": custom(open={})},
        "emptied",
    ),
    "a set that we want to be empty: a null is refused": (
        objects.EVERYTHING,
        {"applied": custom(set=["x"]), "wanted": custom(set=[])},
        "emptied",
    ),
    "a map that only somebody else wants to be there when it is empty": (
        objects.EVERYTHING,
        {"applied": custom(open={"a": "x"}), "others": custom(open={}), "wanted": custom()},
        "emptied",
    ),
    "an env variable whose value somebody else applied too: server-side apply is refused": (
        objects.DEPLOYMENT,
        {
            "applied": deployment({**APP, "env": [{"name": "A", "value": "x"}]}),
            "others": share({"name": "app", "env": [{"name": "A", "value": "x"}]}),
            "wanted": deployment(
                {**APP, "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
            ),
        },
        "shared_field",
    ),
    "a container that was there before us: its name is left, and refused": (
        objects.DEPLOYMENT,
        {"earlier": deployment(APP, SIDE), "applied": deployment(APP, SIDE), "wanted": deployment(APP)},
        "shared_field",
    ),
    "a port whose number was changed by hand: server-side apply adds it again, and is refused": (
        objects.SERVICE,
        {"applied": service(5432), "edited": service(6000), "wanted": service(5432)},
        "edited_key",
    ),
    "the name of a service account that the server restores": (
        objects.DEPLOYMENT,
        {"applied": with_account(deployment(APP)), "wanted": deployment(APP)},
        "derived_field",
    ),
    "a StatefulSet without rolling updates, which the server refuses beside their settings": (
        objects.STATEFUL_SET,
        {"applied": stateful_set(), "wanted": stateful_set(updateStrategy={"type": "OnDelete"})},
        "derived_field",
    ),
    "a set that we wanted to be empty": (
        objects.EVERYTHING,
        {"applied": custom(set=[]), "wanted": custom()},
        "empty_list",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES_OF_DIFFERENCES)
def test_each_documented_difference_to_server_side_apply_exists(server: Client, custom_shape: Shape, name: str) -> None:
    subject, steps, reason = EXAMPLES_OF_DIFFERENCES[name]
    triple = Triple(subject, **{"earlier": None, "others": None, "edited": None, **steps})
    assert set(Comparison(server, shape_of(subject, custom_shape), triple).run()) == {reason}


def test_a_volume_that_changes_its_source_is_merged_as_by_server_side_apply(
    server: Client, custom_shape: Shape
) -> None:
    """While nobody else has a share in the old source, server-side apply takes it back by itself."""
    sources: list[JSON] = [{"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "c"}}]
    applied, wanted = (deployment(APP) for _ in sources)
    for part, source in zip((applied, wanted), sources, strict=True):
        part["spec"]["template"]["spec"]["volumes"] = [{"name": "data", **source}]
    triple = Triple(objects.DEPLOYMENT, None, applied, None, None, wanted)
    assert Comparison(server, shape_of(objects.DEPLOYMENT, custom_shape), triple).run() == []


def test_duplicate_live_items_get_the_desired_value(server: Client, custom_shape: Shape) -> None:
    """5. Somebody wrote a variable twice. Each copy gets our value; under server-side apply one is left."""
    subject, path = objects.DEPLOYMENT, f"{objects.DEPLOYMENT.path}/duplicates"

    def env(*values: str) -> JSON:
        return subject.named(
            deployment({**APP, "env": [{"name": "A", "value": value} for value in values]}), "duplicates"
        )

    def values(answer: JSON) -> list[str]:
        return [variable["value"] for variable in answer["spec"]["template"]["spec"]["containers"][0]["env"]]

    shape = shape_of(subject, custom_shape)
    server.apply(path, env("1"), US)
    live = server.merge(path, env("2", "3"), OTHER)
    merged = three_way(live, env("4"), create_fields(env("1"), shape), shape)
    theirs = server.apply(path, env("4"), US, dry_run=True)
    ours = server.merge(path, guarded(merge_patch(live, merged.object), live), US)
    assert (values(ours), values(theirs)) == (["4", "4"], ["4"])
