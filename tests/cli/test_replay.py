"""`ruleop plan --replay`: a recorded pass, planned again."""

from __future__ import annotations

import json

import orjson
import pytest

from ruleop.authoring.offline import OfflineKinds, identified, prepare
from ruleop.language.rules.checking import load_project
from ruleop.planning import FixedObjects, History, Observed
from tests.planning.recording.replays import document_of


@pytest.fixture
def recorded(project):
    """The file of a pass over the Site of the project."""
    loaded = load_project(project.root, environ={})
    kinds = OfflineKinds(loaded)
    site = {
        "apiVersion": "example.com/v1",
        "kind": "Site",
        "metadata": {"name": "blog"},
        "spec": {"page": "hello", "replicas": 2},
    }
    resource, findings = prepare(loaded, identified(site, (), kinds))
    assert findings == []
    document = document_of(loaded.rules[0], resource, Observed(FixedObjects(), kinds), History.NONE)
    return project.write("pass.json", orjson.dumps(document).decode())


def test_a_replayed_pass_has_the_recorded_plan(project, ruleop, recorded):
    ran = ruleop("plan", "--replay", "pass.json")
    assert (ran.status, ran.err) == (0, "")
    assert "+ create ConfigMap/blog-config" in ran.out
    assert ran.out.endswith("2 to create.\n")
    document = json.loads(ruleop("plan", "--replay", "pass.json", "-o", "json").out)
    assert [action["object"]["metadata"]["name"] for action in document["plans"][0]["actions"]] == [
        "blog-config",
        "blog",
    ]


def test_changed_rules_are_used_for_a_replay_with_a_warning(project, ruleop, recorded):
    project.edit("templates/config.yaml.j2", "-config", "-settings")
    ran = ruleop("plan", "--replay", "pass.json")
    assert "warning: the rule Site.example.com has changed since it was recorded: the current one is used" in ran.err
    assert "+ create ConfigMap/blog-settings" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name either custom resources with -f, or a recorded pass with --replay"),
        (
            ("--replay", "pass.json", "-f", "site.yaml"),
            "name either custom resources with -f, or a recorded pass with --replay",
        ),
        (("--replay", "none.json"), "none.json: cannot be read: No such file or directory"),
        (("--replay", "site.yaml"), "site.yaml: not valid JSON"),
        (("--replay", "list.json"), "list.json: not a recorded pass"),
        (("--replay", "other.json"), "other.json: not a recorded pass of this version of ruleop: record it again"),
    ],
)
def test_a_recording_that_cannot_be_replayed_is_reported(project, ruleop, recorded, arguments, message):
    project.write("list.json", "[]")
    project.write("other.json", "{}")
    ran = ruleop("plan", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("resource", []),
        ("resource", 7),
        ("resource.metadata", 7),
        ("resource.metadata.labels", 7),
        ("resource.spec", 7),
        ("resource.spec", nested(900)),
        ("history", 7),
        ("history", nested(900)),
        ("history.drift", 7),
        ("history.refusals", [7]),
        ("history.writes", "x"),
        ("rule", "x"),
        ("rule.digest", {}),
        ("observed.objects", 7),
        ("observed.objects.get", 7),
        ("observed.objects.children", {"x": 7}),
        ("observed.kinds", 7),
        ("observed.now", 7),
        ("observed.retired", 7),
        ("observed.clock", "x"),
        ("observed.proofs", 7),
    ],
    ids=lambda each: each if isinstance(each, str) else str(each)[:20],
)
def test_a_recording_with_a_value_of_another_form_is_not_an_internal_error(project, ruleop, recorded, path, value):
    document = orjson.loads(recorded.read_bytes())
    *outer, last = path.split(".")
    holder = document
    for name in outer:
        holder = holder[name]
    holder[last] = value
    recorded.write_text(json.dumps(document))
    ran = ruleop("plan", "--replay", "pass.json")
    assert "internal error" not in ran.err
    assert ran.status in {0, 1} or "pass.json: not a recorded pass" in ran.err or "not valid JSON" in ran.err


def test_debugging_shows_where_a_value_of_a_recording_was_read(project, ruleop, recorded):
    document = orjson.loads(recorded.read_bytes())
    document["resource"]["metadata"] = 7
    recorded.write_text(json.dumps(document))
    ran = ruleop("plan", "--replay", "pass.json", "--debug")
    assert "AttributeError" in ran.err.splitlines()[0]
    assert "ruleop/kubernetes/kinds.py" in ran.err
    assert "pass.json: not a recorded pass" in ran.err
