"""Each expensive pass of the corpus fits into the account of a pass, or ends with the name of the limit that it exceeds.
Units and bytes are counted; `make bench` prints seconds."""

from __future__ import annotations

import pytest

from ruleop.messages import MAX_MESSAGE
from ruleop.templating.values.budget import FUEL, MEMORY, RESERVE
from tests.limits.shapes import SHAPES, Shape

LIMITS = ("for one resource (at most", "are allowed", "the printed values have more than")


@pytest.mark.parametrize(
    "shape",
    [pytest.param(each, id=each.name, marks=[pytest.mark.slow] if each.slow else []) for each in SHAPES],
)
def test_an_expensive_pass_fits_or_names_its_limit(shape: Shape):
    found = shape.prepared()
    planned = found.run()
    exceeded = [each for each in planned.problems if any(words in each.message for words in LIMITS)]
    if shape.limit:
        assert exceeded
        assert all(each.reason == "RenderFailed" and shape.limit in each.message for each in exceeded)
        assert shape.reported_only or not planned.actions
    else:
        assert not exceeded
        assert found.account.units <= FUEL - RESERVE
    assert found.account.units <= FUEL
    assert found.account.bytes <= MEMORY
    assert all(len(each.message) <= MAX_MESSAGE for each in planned.problems)
    assert len(planned.problems) < 40


def test_names_of_shapes_are_unique():
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
