"""Label and field selectors. `tests/cluster/test_local_objects.py` compares their errors with the real API server's."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.api.requests import field_selector, label_selector
from ruleop.localcluster.status_errors import Rejected

POD = Kind("", "v1", "Pod")


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "x", "labels": labels}}


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=web,tier=back", False),
        ("app!=web", False),
        ("missing!=web", True),
        ("app", True),
        ("!app", False),
        ("! missing", True),
        ("app in (web, api)", True),
        ("app notin (web,api)", False),
        ("missing notin (a)", True),
        ("missing in ()", False),
        ("count>4", True),
        ("count<5", False),
        ("app>4", False),
        ("empty=", True),
        ("missing=", False),
        ("in in (in)", False),
    ],
)
def test_label_selectors_select_by_labels(selector: str, chosen: bool) -> None:
    selects = label_selector(selector)
    assert selects is not None
    assert selects(labelled(app="web", tier="front", count="5", empty="")) is chosen


def test_an_empty_selector_selects_everything() -> None:
    assert label_selector("") is None
    assert label_selector(" ") is None
    assert field_selector("", POD) is None


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("metadata.name=x", True),
        ("metadata.name!=x", False),
        ("spec.nodeName=", True),
        ("spec.nodeName=n,status.phase=Running", False),
        ("spec.hostNetwork=false", True),
        ("status.phase==Running", True),
    ],
)
def test_field_selectors_select_by_fields(selector: str, chosen: bool) -> None:
    selects = field_selector(selector, POD)
    assert selects is not None
    assert selects({"metadata": {"name": "x"}, "status": {"phase": "Running"}}) is chosen


def test_field_selectors_with_special_names_are_resolved() -> None:
    selects = field_selector("source=kubelet,involvedObject.name=x", Kind("", "v1", "Event"))
    assert selects is not None
    assert selects({"source": {"component": "kubelet"}, "involvedObject": {"name": "x"}})
    succeeded = field_selector("status.successful=0", Kind("batch", "v1", "Job"))
    assert succeeded is not None
    assert succeeded({})


def test_custom_kinds_select_by_their_selectable_fields() -> None:
    kind = Kind("example.com", "v1", "App")
    selects = field_selector("spec.size=3,spec.on=true", kind, selectable=["spec.size", "spec.on"])
    assert selects is not None
    assert selects({"spec": {"size": 3, "on": True}})
    with pytest.raises(Rejected, match=r"field label not supported: spec\.other"):
        field_selector("spec.other=3", kind, selectable=["spec.size"])
