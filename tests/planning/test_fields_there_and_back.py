"""Fields of objects of others after any edits, there and back: the object has exactly what the custom resource sets now
and what others set, whatever happened in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import History
from ruleop.planning.child.field_patches import patched_key
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import KEY_LENGTH, KeyedProofs
from tests.planning.harness import Harness, config, key

RULES = """
children:
  mark:
    when: spec.on
    patch:
      version: v1
      kind: ConfigMap
      name: "{{ spec.target }}"
      fields: {data: {ours: "{{ spec.value }}"}}
"""
TARGETS = ("a", "b")
EDITS = st.one_of(
    st.tuples(st.just("on"), st.booleans()),
    st.tuples(st.just("value"), st.sampled_from(["1", "2"])),
    st.tuples(st.just("target"), st.sampled_from(TARGETS)),
    st.tuples(st.just("delete"), st.sampled_from(TARGETS)),
    st.tuples(st.just("make"), st.sampled_from(TARGETS)),
    st.tuples(st.just("others"), st.sampled_from(["x", "y"])),
    st.tuples(st.just("strip"), st.sampled_from(TARGETS)),
    st.tuples(st.just("rotate"), st.none()),
)
PASSES = st.sampled_from(["none", "pass", "late status", "crash", "restart", "settle"])


class Model:
    """The custom resource and the objects, as they should be, beside the harness."""

    def __init__(self) -> None:
        self.spec: dict[str, Any] = {"on": True, "value": "1", "target": "a"}
        self.theirs: dict[str, str] = {}  # the field of others, by object
        self.keys = 1
        self.harness = Harness.of(RULES, self.spec)
        self.harness.proofs = KeyedProofs((self.key(),))
        self.harness.patched = frozenset({patched_key(self.harness.rule.patches[0].target)})
        self.make("a")
        self.run("settle")

    def key(self) -> bytes:
        return str(self.keys).encode() * KEY_LENGTH

    def make(self, name: str) -> None:
        if name not in self.theirs:
            self.theirs[name] = "x"
            self.harness.add_as("kubectl-create", config(name, {"theirs": "x"}))

    def edit(self, what: str, value: Any) -> None:
        harness = self.harness
        if what in self.spec:
            self.spec[what] = value
            harness.edit(self.spec)
        elif what == "make":
            self.make(value)
        elif what == "delete" and self.theirs.pop(value, None) is not None:
            harness.delete(key(value))
        elif what == "others":
            for name in self.theirs:
                self.theirs[name] = value
                harness.change_as("kubectl-edit", key(name), {"data": {"theirs": value}})
        elif what == "strip" and value in self.theirs:
            harness.change_as("kubectl-edit", key(value), {"data": {"ours": None}})
        elif what == "rotate":
            assert isinstance(harness.proofs, KeyedProofs)
            self.keys += 1
            harness.proofs = KeyedProofs((self.key(), *harness.proofs.keys))

    def run(self, passes: str) -> None:
        if passes == "settle":
            self.harness.settle()
            self.check()
        elif passes == "pass":
            self.harness.step()
        elif passes == "late status":
            self.harness.step(delays_status=True)
        elif passes == "crash":
            self.harness.step(crash_after=1)
        elif passes == "restart":
            self.harness.history = History.NONE

    def check(self) -> None:
        found = {at.name: obj["data"] for at, obj in self.harness.objects.items()}
        expected = {name: {"theirs": value} for name, value in self.theirs.items()}
        if self.spec["on"] and self.spec["target"] in expected:
            expected[self.spec["target"]]["ours"] = self.spec["value"]
        assert found == expected
        assert self.harness.plan(History.NONE).quiet
        assert self.harness.plan().quiet
        for at, obj in self.harness.objects.items():
            assert len(list(managers_on(obj))) == ("ours" in obj["data"]), at

    def end(self) -> dict[ObjectKey, dict[str, str]]:
        self.harness.end()
        if self.harness.resource is not None:
            self.harness.settle()
        assert self.harness.resource is None
        return {at: obj["data"] for at, obj in self.harness.objects.items()}


@pytest.mark.slow
@given(st.lists(st.tuples(EDITS, PASSES), max_size=12))
@example([(("on", False), "late status"), (("on", True), "settle")])
@example([(("target", "b"), "late status"), (("make", "b"), "late status"), (("target", "a"), "settle")])
@example([(("delete", "a"), "late status"), (("make", "a"), "settle"), (("value", "2"), "settle")])
@example([(("rotate", None), "restart"), (("on", False), "crash"), (("on", True), "settle")])
def test_after_any_edits_there_and_back_the_fields_are_those_of_the_last_ones(edits: list[tuple[Any, str]]):
    model = Model()
    for (what, value), passes in edits:
        model.edit(what, value)
        model.run(passes)
    model.run("settle")
    assert model.end() == {key(name): {"theirs": value} for name, value in model.theirs.items()}
