"""Merges that remove items which server-side apply would keep: those that are not recorded."""

from __future__ import annotations

import pytest
from hypothesis import given

from ruleop.kubernetes.merge import create_fields, parse_path, three_way
from ruleop.kubernetes.merge.removals import removes_items_of_others
from tests.kubernetes.merge.shapes import DEPLOYMENT, SERVICE, SET, struct
from tests.kubernetes.merge.test_edited_properties import MANY, edits, ports, states
from tests.kubernetes.merge.test_properties import triples

POSTGRES, METRICS = {"name": "postgres", "port": 5432}, {"name": "metrics", "port": 9187}


def removes(live, desired, before, shape=SERVICE, own=()):
    applied = create_fields(before, shape)
    return removes_items_of_others(live, three_way(live, desired, applied, shape, own=own).object, applied.root, shape)


def test_correcting_an_edited_key_removes_an_item_of_others():
    assert removes(ports([{**POSTGRES, "port": 6000}]), ports([POSTGRES]), ports([POSTGRES]))


def test_an_owned_list_removes_items_of_others():
    live, own = ports([POSTGRES, METRICS]), [parse_path("spec.ports")]
    assert removes(live, ports([POSTGRES]), ports([POSTGRES]), own=own)
    assert not removes(live, ports([POSTGRES]), ports([POSTGRES, METRICS]), own=own), "which we gave up"
    assert not removes(live, ports([POSTGRES]), ports([POSTGRES]))
    assert removes(live, {"spec": {"clusterIP": "None"}}, {"spec": {}}, own=own)


def test_a_nested_owned_list_removes_items_of_others():
    def app(*env):
        return {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": list(env)}]}}}}

    a, b = {"name": "A"}, {"name": "B"}
    own = [parse_path("spec.template.spec.containers[name=app].env")]
    assert removes(app(a, b), app(a), app(a), DEPLOYMENT, own)


def test_an_owned_set_removes_members_of_others():
    shape, own = struct(hosts=SET), [parse_path("hosts")]
    assert removes({"hosts": ["a", "b"]}, {"hosts": ["a"]}, {"hosts": ["a"]}, shape, own)
    assert not removes({"hosts": ["a", "b"]}, {"hosts": ["a"]}, {"hosts": ["a", "b"]}, shape, own)


@pytest.mark.slow
@MANY
@given(edits().filter(lambda edit: edit.live != edit.before))
def test_every_corrected_edit_counts_as_a_removal_from_others(edit):
    merged = three_way(edit.live, ports(edit.desired), edit.applied, SERVICE)
    assert removes_items_of_others(edit.live, merged.object, edit.applied.root, SERVICE)


@pytest.mark.slow
@MANY
@given(triples())
def test_a_merge_without_edits_and_owned_lists_removes_nothing_of_others(t):
    merged = three_way(t.live, t.wanted, t.applied, t.shape)
    assert not removes_items_of_others(t.live, merged.object, t.applied.root, t.shape)


@MANY
@given(states())
def test_a_merge_without_changes_removes_nothing(t):
    first = three_way(t.live, ports(t.desired), t.applied, t.shape)
    assert not removes_items_of_others(first.object, first.object, first.fields.root, t.shape)
