"""One object on a real API server, changed step by step by ruleop's own merge, and compared each time with the same
object newly created."""

from __future__ import annotations

import collections
import copy
import http.client
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import (
    FieldSet,
    Learned,
    Record,
    create_fields,
    decode,
    encode,
    merge_patch,
    normalise_desired,
    three_way,
)
from ruleop.kubernetes.schema.shape import Shape
from tests.cluster.random_objects import Drawing
from tests.cluster.server import Client, RefusedError
from tests.cluster.test_at_rest import path_of

JSON = Any
Object = dict[str, Any]

LABELS = {"app.kubernetes.io/managed-by": "ruleop", "ruleop.dev/part-of": "walks"}


@dataclass(frozen=True)
class Kept:
    """A difference that stays, by the name that it has in docs/merge.md."""

    name: str
    kind: str  # regular expressions
    path: str
    live: Sequence[JSON]
    afresh: Sequence[JSON]


UNUSED = "Settings of a rolling update"
KEPT = [
    Kept(
        UNUSED,
        "StatefulSet",
        r"spec\.updateStrategy\.rollingUpdate",
        [{"partition": 0}, None],
        [None, {"partition": 0}],
    ),
    Kept(UNUSED, "DaemonSet", r"spec\.updateStrategy\.rollingUpdate", [{"maxSurge": 0, "maxUnavailable": 0}], [None]),
    Kept("Node ports of a load balancer", "Service", r"spec\.ports\[\d+\]\.nodePort", ["allocated"], [None]),
    Kept("The pull policy of a Pod", "Pod", r"spec\.containers\[\d+\]\.imagePullPolicy", ["Always"], ["IfNotPresent"]),
    Kept("The completions of a Job", "Job", r"spec\.completions", [1], [None]),
    Kept("A traffic policy beside ExternalName", "Service", r"spec\.internalTrafficPolicy", ["Local"], ["Cluster"]),
    Kept("Fields of features that are off", ".*", r".*\.lifecycle", [{}], [None]),
    Kept("The address of a Service", "Service", r"spec\.clusterIPs?(\[0\])?", ["None"], ["allocated"]),
]


@dataclass
class Walk:
    """One object, from its creation through all its changes. `name` tells a failure how to repeat it."""

    server: Client
    obj: Object
    name: str = ""
    made: int = 0
    kept: collections.Counter[str] = field(default_factory=collections.Counter)
    live: Object = field(default_factory=dict)
    wanted: Object = field(default_factory=dict)
    record: Record = field(default_factory=lambda: Record("walk", FieldSet()))
    learned: Learned = Learned.NOTHING

    @property
    def kind(self) -> Kind:
        return Kind.of(self.obj)

    @property
    def shape(self) -> Shape:
        shape = builtin_shape(self.kind)
        assert shape is not None
        return shape

    @property
    def path(self) -> str:
        return path_of(self.kind)

    def at_random(self, drawing: Drawing, steps: int, fixed: Sequence[str]) -> None:
        """Takes that many random steps; what is at the paths in `fixed` stays as it is."""
        self.begin(self.obj)
        for _ in range(steps):
            drawn = drawing.valid(self.wanted, fixed, self._refusal)
            if drawn is not None:
                self.step(drawn)

    def begin(self, wanted: Object) -> None:
        self.wanted = {**copy.deepcopy(wanted), "metadata": {"name": "walked"}}
        normal = self._normal(self.wanted)
        self.live = self.server.post(self.path, normal)
        self.record = Record("walk", create_fields(normal, self.shape))
        self.learned = Learned.NOTHING.learn(normal, self.live, self.shape)

    def end(self) -> None:
        if self.live:
            if self.live["metadata"].get("finalizers"):  # a server's plugin protects volumes and claims in use
                self.server.merge(f"{self.path}/walked", {"metadata": {"finalizers": None}}, "test")
            self.server.delete(f"{self.path}/walked?gracePeriodSeconds=0&propagationPolicy=Background")

    def _normal(self, wanted: Object) -> Object:
        labels = {**(wanted["metadata"].get("labels") or {}), **LABELS}
        return dict(normalise_desired({**wanted, "metadata": {**wanted["metadata"], "labels": labels}}, self.kind))

    def _newly_created(self, wanted: Object) -> Object:
        named = self._normal(wanted)
        new: Object = self.server.post(
            f"{self.path}?dryRun=All&fieldValidation=Strict",
            {**named, "metadata": {**named["metadata"], "name": "afresh"}},
        )
        return new

    def _refusal(self, wanted: Object) -> RefusedError | None:
        try:
            self._newly_created(wanted)
        except RefusedError as refused:
            return refused
        except http.client.RemoteDisconnected:  # the server panics at some, such as a successPolicy without completions
            return RefusedError({"message": "the server panicked"})
        return None

    def step(self, wanted: Object) -> None:
        """Applies the desired object; raises AssertionError if the result is not that of an object newly created."""
        normal = self._normal(wanted)
        merged = three_way(self.live, normal, self.record.fields, self.shape, learned=self.learned)
        patch = merge_patch(self.live, merged.object)
        record = decode(encode(Record("walk", merged.fields)))
        assert record is not None
        try:
            after = self.live if patch is None else self.server.merge(f"{self.path}/walked", patch, "ruleop")
        except RefusedError as refused:
            raise AssertionError(self._failure(f"refused: {refused}", wanted, patch)) from refused
        found = differences(comparable(after), comparable(self._newly_created(wanted)))
        unexplained = [str(each) for each in found if not self._is_kept(each)]
        assert not unexplained, self._failure("\n".join(unexplained), wanted, patch)
        learned = Learned.NOTHING.learn(normal, after, self.shape)
        again = three_way(after, normal, record.fields, self.shape, learned=learned)
        assert again.object is after, self._failure(f"written again: {merge_patch(after, again.object)}", wanted, patch)
        self.live, self.wanted, self.record, self.learned = after, wanted, record, learned
        self.made += 1

    def _is_kept(self, difference: Difference) -> bool:
        for each in KEPT:
            known = re.fullmatch(each.kind, self.kind.kind) and re.fullmatch(each.path, difference.path)
            if known and difference.live in each.live and difference.afresh in each.afresh:
                self.kept[each.name] += 1
                return True
        return False

    def _failure(self, what: str, wanted: Object, patch: JSON) -> str:
        parts = yaml.safe_dump({"before": self.wanted, "wanted": wanted, "patch": patch}, sort_keys=False, width=1000)
        return f"{self.kind}, {self.name}step {self.made + 1}:\n{what}\n\n{parts}"


SERVER_SET = (
    "uid",
    "name",
    "namespace",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "selfLink",
)


def comparable(obj: Object) -> Object:
    """An object without what the server sets, and without what it allocates."""
    metadata = obj["metadata"]
    text = json.dumps({name: value for name, value in obj.items() if name != "status"})
    for name in ("uid", "name"):
        text = text.replace(json.dumps(metadata[name])[1:-1], f"its {name}")
    plain: Object = json.loads(text)
    plain["metadata"] = {name: value for name, value in plain["metadata"].items() if name not in SERVER_SET}
    if obj["kind"] == "DaemonSet":  # another generation
        plain["metadata"]["annotations"].pop("deprecated.daemonset.template.generation")
    if obj["kind"] == "Service":
        spec = plain["spec"]
        if spec.get("clusterIP", "None") != "None":
            spec |= {"clusterIP": "allocated", "clusterIPs": ["allocated"] * len(spec["clusterIPs"])}
        spec |= {"healthCheckNodePort": "allocated"} if "healthCheckNodePort" in spec else {}
        for port in spec.get("ports") or ():
            port.update({"nodePort": "allocated"} if "nodePort" in port else {})
    return plain


@dataclass(frozen=True)
class Difference:
    path: str
    live: JSON
    afresh: JSON

    def __str__(self) -> str:
        return f"{self.path}: {self.live!r}, newly created {self.afresh!r}"


def differences(live: JSON, afresh: JSON, path: str = "") -> Iterator[Difference]:
    """The smallest places at which the two differ."""
    if type(live) is dict and type(afresh) is dict:
        for name in sorted({*live, *afresh}):
            yield from differences(live.get(name), afresh.get(name), f"{path}.{name}" if path else name)
    elif type(live) is list and type(afresh) is list and len(live) == len(afresh):
        for index, (one, other) in enumerate(zip(live, afresh, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif live != afresh:
        yield Difference(path, live, afresh)
