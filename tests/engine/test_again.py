"""When a CR is looked at again although nothing happens."""

from __future__ import annotations

import pytest

from ruleop.planning.marks import RECONCILE_PERIOD
from tests.engine.looking import Looking

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '1'}\n"
ONE = "children: {a: {template: a.yaml}}\n"


def annotated(body, **annotations):
    looking = Looking(body, {}, a=A)
    looking.edit_app(metadata={**looking.app["metadata"], "generation": 2, "annotations": annotations})
    return looking


# -- the period --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "own", "again"),
    [
        ("10h", None, 36000.0),
        ("10h", "30s", 30.0),
        ("0s", "30s", 30.0),
        ("10s", "0s", None),
        ("10s", "1ms", 1.0),
        ("10h", "often", 36000.0),
        ("0s", None, None),
    ],
)
def test_the_period_is_the_rules_or_the_crs_own(run, rule, own, again):
    async def story():
        looking = annotated(f"reconcilePeriod: {rule}\n{ONE}", **({} if own is None else {RECONCILE_PERIOD: own}))
        assert (await looking.rest()).again == again
        assert ("has no effect" in looking.condition()["message"]) == (own == "often")

    run(story())
