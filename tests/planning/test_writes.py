"""The verbs and reasons of writes, and the fields that a log line names."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.secrets.masks import NO_MASKS
from ruleop.planning import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Expire,
    Patch,
    RemoveFinalizer,
    ServerSideApply,
)
from ruleop.planning.changes.differences import NOTHING, Difference
from ruleop.planning.changes.writes import (
    MAX_FIELDS,
    MAX_PATH,
    Verb,
    changes,
    field_paths,
    is_mark,
    reason_for,
    verb_of,
)
from tests.planning.test_plan_text import BuiltIn

KEY = ObjectKey("", "Secret", "shop", "s")
OLD = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "b2xk"}}
NEW = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "bmV3"}}
ACTIONS = {
    "create": Create(KEY, "s", NEW, ""),
    "patch": Patch(KEY, "s", {}, OLD, NEW, ""),
    "adopt": Patch(KEY, "s", {}, OLD, NEW, "", "adopted"),
    "release": Patch(KEY, "s", {}, OLD, NEW, "", "released"),
    "apply": ServerSideApply(KEY, "s", NEW, OLD, ""),
    "delete": Delete(KEY, "s", OLD, "pruned"),
    "add the finalizer": AddFinalizer(KEY, "ruleop.dev/x"),
    "remove the finalizer": RemoveFinalizer(KEY, "ruleop.dev/x"),
}


@pytest.mark.parametrize("word", ACTIONS)
def test_each_action_has_its_verb(word):
    assert verb_of(ACTIONS[word]).do == word


def test_the_deletion_of_an_expired_resource_has_its_verb_and_its_reason():
    expire = Expire(ObjectKey("example.com", "App", "shop", "web"), "2h")
    assert (verb_of(expire), reason_for(expire)) == (Verb.DELETE, "expired 2h after its creation")


def test_every_action_class_has_a_verb():
    assert {Expire, *(type(action) for action in ACTIONS.values())} == set(get_args(Action))


def test_verbs_are_unique():
    assert len({verb.do for verb in Verb}) == len({verb.done for verb in Verb}) == len(Verb)


def test_adoption_has_the_same_verb_in_every_strategy():
    action = replace(ACTIONS["apply"], why="adopted")
    assert verb_of(action) is Verb.ADOPT
    assert reason_for(action) == reason_for(ACTIONS["adopt"]) == "had no owner"


def test_an_apply_without_a_live_object_creates_it():
    assert verb_of(replace(ACTIONS["apply"], live=None)) is Verb.CREATE
    assert changes(replace(ACTIONS["apply"], live=None), BuiltIn(), None) == []


@pytest.mark.parametrize("why", ["pruned", "recreate", "finalized", "elsewhere"])
def test_every_deletion_has_a_reason(why):
    assert reason_for(Delete(KEY, "s", OLD, why))
    assert verb_of(Delete(KEY, "s", OLD, why)) is Verb.DELETE


@pytest.mark.parametrize("word", ["patch", "adopt", "apply"])
def test_changes_of_a_secret_have_field_names_and_no_values(word):
    before = copy.deepcopy(ACTIONS[word])
    (found,) = changes(ACTIONS[word], BuiltIn(), NO_MASKS)
    assert found.path == "data.password"
    assert not {found.before, found.after} & {"b2xk", "bmV3"}
    assert ACTIONS[word].object == NEW
    assert ACTIONS[word] == before


PATHS = st.lists(st.text(min_size=1, max_size=300), max_size=40)
MARK = Difference("metadata.annotations['ruleop.dev/applied']", "a", "b")


@given(paths=PATHS, marked=st.booleans())
def test_a_list_of_fields_is_bounded_and_has_no_duplicates(paths, marked):
    found = [Difference(path, NOTHING, 1) for path in paths] + [MARK] * marked
    line = field_paths(found, "uid")
    assert len(line) <= MAX_FIELDS + 1
    assert all(len(path) <= MAX_PATH for path in line)
    assert len(set(line)) == len(line) or line[-1].startswith("and ")
    assert bool(line) == bool(found)
    assert (MARK.path in line) == (marked and not paths)
    assert is_mark(MARK, "uid")
