"""Each expensive pass of the corpus fits into the account of a plan, or ends with the name of the limit that it
exceeds. Bytes are counted; `make bench` prints seconds."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.merge import Record, create_fields, encode
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.language.templates.values.cost import MEMORY, RESERVED_MEMORY
from ruleop.messages import MAX_MESSAGE
from ruleop.planning.child import existing
from ruleop.planning.model.marks import APPLIED
from ruleop.planning.model.observed import DEFAULT_FINALIZER
from tests.limits.guarded import in_thread
from tests.limits.shapes import FROM_FILE, SHAPES, SIZE, TIME, Shape, created, template
from tests.planning.harness import Harness

# Python discards an interruption where it deletes an object, and in a callback of the garbage collector, which
# Hypothesis has: it is raised again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

LIMITS = ("for one resource (at most", SIZE, "the printed values have more than", TIME)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [pytest.param(each, id=each.name, marks=[pytest.mark.slow] if each.slow else []) for each in SHAPES],
)
def test_an_expensive_pass_fits_or_names_its_limit(shape: Shape):
    found = shape.prepared()
    planned = in_thread(found.run, 0.05) if shape.limit == TIME else found.run()
    exceeded = [each for each in planned.problems if any(words in each.message for words in LIMITS)]
    if shape.limit:
        assert exceeded
        assert all(each.reason == "RenderFailed" and shape.limit in each.message for each in exceeded)
        assert shape.reported_only or not planned.actions
    else:
        assert not exceeded
        assert found.account.bytes <= MEMORY - RESERVED_MEMORY
    assert found.account.bytes <= MEMORY
    assert all(len(each.message) <= MAX_MESSAGE for each in planned.problems)
    assert len(planned.problems) < 40


OTHERS = 150  # to read all their records takes several times as long as the plan has


@pytest.mark.slow
@pytest.mark.parametrize("deleted", [False, True])
def test_long_records_that_others_write_on_children_are_read_within_the_time_of_a_plan(deleted, monkeypatch):
    """A tenant may edit the annotation, and copy it to objects that look like children."""
    harness = Harness.of(FROM_FILE, **template("  a: b\n"))
    created(harness)
    (child,) = harness.objects.values()
    record = encode(Record("a", create_fields({f"a{number}": {"b": {}} for number in range(3000)}, UNKNOWN)))
    for number in range(OTHERS):
        metadata = {**child["metadata"], "name": f"x{number}", "uid": f"u{number}"}
        metadata["annotations"] = {**metadata["annotations"], APPLIED: record}
        harness.put({**child, "metadata": metadata})
    if deleted:
        assert harness.resource is not None
        harness.resource["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [DEFAULT_FINALIZER]}
    read = []
    original = existing.decode
    monkeypatch.setattr(existing, "decode", lambda text: read.append(text) or original(text))
    planned = in_thread(harness.plan, 0.05)
    assert not planned.actions
    assert [each.reason for each in planned.problems] == ["RenderFailed"]
    assert TIME in planned.problems[0].message
    assert len(read) < OTHERS


def test_names_of_shapes_are_unique():
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
