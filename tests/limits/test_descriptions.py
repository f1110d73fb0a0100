"""Which fields the writes of a pass change is found out up to an allowance. Beyond it, outer fields are named: the cost
does not grow with what others have written into the children."""

from __future__ import annotations

import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ruleop.kubernetes.schema.shape import Shape
from ruleop.language.templates.values import cost
from ruleop.language.templates.values.cost import Allowance
from ruleop.planning.changes.differences import FOUND, differences
from ruleop.planning.changes.writes import is_mark
from tests.limits.shapes import EACH, SHAPES, of_each, texts
from tests.operator.passes.reconciler_harness import ReconcilerHarness

module = importlib.import_module("ruleop.planning.changes.differences")  # the face lends a function of that name

CHILDREN, FIELDS = 20, 30
UNITS = 2_000


@pytest.fixture
def compared(monkeypatch):
    """The paths of all values that were compared."""
    found = []
    original = module._values

    def counted(before, after, shape, path, **more):
        found.append(path)
        return original(before, after, shape, path, **more)

    monkeypatch.setattr(module, "_values", counted)
    monkeypatch.setattr(cost, "DESCRIPTIONS", UNITS)
    return found


def edited(harness: ReconcilerHarness) -> None:
    for number in range(CHILDREN):
        live = harness.live(f"a-{number}")
        harness.edit(f"a-{number}", data=dict.fromkeys(live["data"], "other") | dict.fromkeys(texts(FIELDS), "more"))


@pytest.mark.slow
async def test_the_log_of_many_writes_names_outer_fields_beyond_the_allowance(compared):
    fields = "".join(f"  f{number}: x\n" for number in range(FIELDS))
    harness = ReconcilerHarness(EACH, {"items": texts(CHILDREN)}, **of_each(fields))
    await harness.until_settled()
    edited(harness)
    compared.clear()
    with capture_logs() as lines:
        await harness.until_settled()
    reverted = [each["fields"] for each in lines if each["event"] == "drift reverted"]
    assert len(reverted) == CHILDREN
    assert reverted[0][:2] == ["data.f0", "data.f1"]
    assert reverted[-1] == ["data"]
    assert 0 < len(compared) <= UNITS // FOUND


@pytest.mark.slow
def test_messages_of_field_conflicts_name_outer_fields_beyond_the_allowance(compared):
    shape = next(each for each in SHAPES if each.name == "who else writes 4,000 environment variables")
    planned = shape.prepared().run()
    (conflict,) = planned.field_conflicts
    assert conflict.message.startswith("Deployment/a: spec.template.spec.containers[name=c].env is repeatedly")
    assert len(compared) <= UNITS // FOUND


VALUES = st.recursive(
    st.none() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "metadata"]), VALUES, max_size=3)


@given(before=OBJECTS, after=OBJECTS, units=st.integers(0, 60))
def test_an_allowance_shortens_paths_and_hides_no_difference(before, after, units):
    exact = [each.path for each in differences(before, after, Shape())]
    found = [each.path for each in differences(before, after, Shape(), allowance=Allowance(units))]
    assert all(any(path.startswith(outer) for outer in found) for path in exact)
    assert all(any(path.startswith(outer) for path in exact) for outer in found)


def test_an_object_with_thousands_of_fields_has_few_differences_beyond_the_allowance():
    found = differences({}, dict.fromkeys(texts(5000), 1), Shape(), allowance=Allowance(0))
    assert len(found) == module.MAX_OUTER + 1
    assert found[-1].path == "…"


MARKS = {"app.kubernetes.io/managed-by": "ruleop", "ruleop.dev/part-of": "x"}
OTHERS = {"labels": {"a": "b"}, "annotations": {"a": "b"}, "ownerReferences": [{"uid": "other"}]}


@pytest.mark.parametrize("before", [{}, OTHERS], ids=["no metadata", "metadata of others"])
def test_metadata_of_ruleop_is_distinguished_from_that_of_others_beyond_the_allowance(before):
    marked = {
        "labels": {**before.get("labels", {}), **MARKS},
        "annotations": {**before.get("annotations", {}), "ruleop.dev/applied": "x"},
        "ownerReferences": [*before.get("ownerReferences", []), {"uid": "uid"}],
    }
    found = differences({"metadata": before}, {"metadata": marked}, Shape(), allowance=Allowance(0))
    assert [each.path for each in found] == ["metadata.annotations", "metadata.labels", "metadata.ownerReferences"]
    assert all(is_mark(each, "uid") for each in found)
    for name, value in (("labels", {"a": "c"}), ("annotations", {}), ("ownerReferences", [])):
        found = differences(
            {"metadata": OTHERS}, {"metadata": {**OTHERS, name: value}}, Shape(), allowance=Allowance(0)
        )
        assert [is_mark(each, "uid") for each in found] == [False]
