"""The output of commands contains no value of a Secret, not even computed ones, except for rendered objects."""

from __future__ import annotations

import json

import orjson
import pytest

from ruleop.authoring.offline import OfflineKinds, as_live, identified, prepare
from ruleop.language.rules.checking import load_project
from ruleop.planning import FixedObjects, History, Observed
from tests.planning.recording.replays import document_of

VALUE = "Pl4nt3dV4lu3"
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "source", "namespace": "default"},
    "data": {"v": "UGw0bnQzZFY0bHUz"},
}
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-config"}
data:
  page: "{{ spec.page }}"
  whole: "{{ source.data.v | b64decode }}"
  part: "{{ (source.data.v | b64decode)[:6] }}"
  text: "user:{{ source.data.v | b64decode | upper }}@host"
  "{{ source.data.v | b64decode }}": key
"""
SITE = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "blog"}, "spec": {"page": "hello"}}


@pytest.fixture
def reading(project):
    """The project, with a ConfigMap that is computed from a Secret."""
    project.write("templates/config.yaml.j2", CONFIG)
    project.edit(
        "watches.yaml", "  children:\n", "  observe: {source: {version: v1, kind: Secret, name: source}}\n  children:\n"
    )
    project.write("live.yaml", json.dumps(SECRET))
    project.write("cr.yaml", json.dumps(SITE))
    return project


def searched(text):
    for part in (VALUE, VALUE[:6], VALUE.upper(), VALUE.lower(), SECRET["data"]["v"]):
        assert part not in text
    return text


def test_plan_prints_no_value_of_a_secret(reading, ruleop):
    ran = ruleop("plan", "-f", "cr.yaml", "--with", "live.yaml")
    assert (ran.status, ran.err) == (0, "")
    searched(ran.out)
    (planned,) = json.loads(searched(ruleop("plan", "-f", "cr.yaml", "--with", "live.yaml", "-o", "json").out))["plans"]
    data = planned["actions"][0]["object"]["data"]
    assert data == {
        "page": "hello",
        "part": "(hidden)",
        "text": "(hidden)",
        "whole": "(hidden)",
        "(hidden) (1)": "(hidden)",
    }


def test_a_recording_and_its_replay_contain_no_value_of_a_secret(reading, ruleop):
    loaded = load_project(reading.root, environ={})
    kinds = OfflineKinds(loaded)
    live = as_live([SECRET], kinds)
    resource, _ = prepare(loaded, identified(SITE, live, kinds))
    document = document_of(loaded.rules[0], resource, Observed(FixedObjects(live), kinds), History.NONE)
    searched(reading.write("pass.json", orjson.dumps(document).decode()).read_text())
    ran = ruleop("plan", "--replay", "pass.json", "-o", "json")
    assert ran.status == 0
    searched(ran.out + ran.err)


def test_messages_of_render_contain_no_value_of_a_secret(reading, ruleop):
    reading.edit("templates/config.yaml.j2", "data:\n", "data:\n  '{{ source.data.v | b64decode }}': again\n")
    for command in ("render", "plan"):
        ran = ruleop(command, "-f", "cr.yaml", "--with", "live.yaml")
        assert ran.status == 1
        searched(ran.out + ran.err)


def test_a_traceback_contains_no_value_of_a_secret(reading, ruleop, monkeypatch):
    def broken(*_args, **_more):
        raise KeyError(VALUE)

    monkeypatch.setattr("ruleop.planning.child.kinds.ordinary.OrdinaryPlan.decide", broken)
    for arguments in ((), ("--debug",)):
        ran = ruleop("plan", "-f", "cr.yaml", "--with", "live.yaml", *arguments)
        assert ran.status == 2
        assert "KeyError" in searched(ran.out + ran.err)
