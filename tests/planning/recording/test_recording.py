"""A recorded pass: its contents, the secrets it must not contain, and its replay."""

from __future__ import annotations

import base64
import json

import orjson
import pytest

from ruleop.errors import Cause, RuleopError
from ruleop.kubernetes.merge import Learned
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.planning import Failed, Failure, FixedObjects, History, Observed, plan
from ruleop.planning.changes.drift import Reverted
from ruleop.planning.history import ConflictingObject, Refusal, RefusedStatus, Writes
from ruleop.planning.model.marks import OWNER, KeyedProofs
from ruleop.planning.recording.recording import FORMAT, read_document
from tests.language.secrets.test_placeholders import secret
from tests.planning.harness import Harness, config, key
from tests.planning.recording.replays import document_of, replayed
from tests.planning.settled import settled

CANARY = "correct-horse-battery"
CREDENTIALS = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: '{{ spec.password }}'}\n"
WEB = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web, annotations: {checksum: "{{ s.data | sha256 }}"}}
data: {url: "postgres://admin:{{ spec.password }}@db"}
"""
BODY = "children: {s: {template: s.yaml}, web: {template: web.yaml}}\nstatus: {url: '{{ web.data.url }}'}\n"


def secretive():
    return settled(BODY, {"password": CANARY}, s=CREDENTIALS, web=WEB)


def recorded(harness):
    return document_of(harness.rule, harness.resource, harness.observed(), harness.history)


def test_no_value_of_a_secret_is_recorded():
    harness = secretive()
    harness.change(
        key("s", "Secret"), {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": CANARY}}}
    )
    text = json.dumps(recorded(harness))
    assert CANARY not in text
    assert base64.b64encode(CANARY.encode()).decode() not in text
    assert "redacted-" in text, "the CR and the ConfigMap have held it, too"
    checksum = harness.objects[key("web")]["metadata"]["annotations"]["checksum"]
    assert checksum not in text, "a weak password could be guessed from it"


def test_no_value_of_a_conflicting_secret_is_recorded():
    """It belongs to another owner, so no cache has it; the history has it, and an error may quote it."""
    theirs = secret("s", p=CANARY)
    history = History(
        conflicting={key("s", "Secret"): ConflictingObject(theirs, 3.0)},
        refused_status=RefusedStatus("print", f"a webhook rejected {CANARY}", 60.0),
    )
    harness = Harness.of("children: {}")
    document = document_of(harness.rule, harness.resource, harness.observed(), history)
    assert CANARY not in json.dumps(document)
    assert base64.b64encode(CANARY.encode()).decode() not in json.dumps(document)


def test_the_seed_is_not_recorded():
    assert "seed" not in recorded(Harness.of(BODY, {"password": CANARY}, s=CREDENTIALS, web=WEB))["observed"]


def test_a_recorded_pass_contains_its_proofs_and_no_key():
    body = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}"
    harness = Harness.of(body, a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    proofs = KeyedProofs((CANARY.encode(),))
    actions = harness.plan(proofs=proofs).actions
    harness.execute(actions)
    observed = harness.observed(proofs=proofs, own=frozenset({key("inventory", namespace="far")}))
    planned = plan(harness.rule, harness.resource, observed)
    assert planned.actions == ()
    assert CANARY not in json.dumps(document_of(harness.rule, harness.resource, observed, History.NONE))
    assert replayed(harness.rule, harness.resource, observed, History.NONE, planned).actions == ()
    note = harness.objects[key("a", namespace="far")]["metadata"]["annotations"]
    note[OWNER] = note[OWNER].replace('"proof":"', '"proof":"0')
    observed = harness.observed(proofs=proofs)
    planned = plan(harness.rule, harness.resource, observed)
    assert planned.problems[0].reason == "ErrResourceExists"
    assert replayed(harness.rule, harness.resource, observed, History.NONE, planned).problems == planned.problems


def test_a_recorded_pass_has_the_same_plan_when_replayed():
    harness = secretive()
    assert replayed(harness.rule, harness.resource, harness.observed(), harness.history, harness.plan()).quiet
    harness.change(key("web"), {"data": {"url": "theirs"}})
    (action,) = replayed(harness.rule, harness.resource, harness.observed(), harness.history, harness.plan()).actions
    assert action.key == key("web")


@pytest.mark.parametrize(
    "history",
    [
        History(refusals={key("web"): Refusal(Failed(Failure.IMMUTABLE, "no", "digest", "patch web"), "7", 5.0)}),
        History(recreated={key("web"): "digest"}, reason="Finalized", written=2),
        History(conflicting={key("web"): ConflictingObject(config("web"), 3.0, 2.0, partial=True, error="no answer")}),
        History(
            drift={key("web"): Reverted("digest", frozenset({"data.v"}), (1.0, 2.0), message="in conflict", due=9.0)}
        ),
        History(refused_status=RefusedStatus("print", "refused", 60.0)),
        History(writes=Writes({key("web"): Failed(Failure.FORBIDDEN, "no")}, {key("web"): "digest"})),
    ],
)
def test_a_recorded_history_is_read_back_unchanged(history):
    harness = Harness.of("children: {}")
    document = document_of(harness.rule, harness.resource, Observed(FixedObjects(), harness), history)
    found = read_document(orjson.loads(orjson.dumps(document))).history
    assert found == history


def test_learned_answers_are_recorded_except_those_about_secrets():
    harness = Harness.of(
        "children: {a: {template: a.yaml}}", {"v": "1000m"}, a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    )
    learned = Learned.NOTHING.learn({"data": {"v": "1000m"}}, {"data": {"v": "1"}}, UNKNOWN)
    history = History(learned={key("a"): learned, key("s", "Secret"): learned})
    found = read_document(document_of(harness.rule, harness.resource, harness.observed(), history)).history
    assert set(found.learned) == {key("a")}
    assert len(found.learned[key("a")]) == 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "not a recorded pass of this version"),
        ({"format": 1}, "not a recorded pass of this version"),
        ({"format": FORMAT}, "not a recorded pass: KeyError at 'observed'"),
        ({"format": FORMAT, "observed": []}, "not a recorded pass: TypeError"),
    ],
)
def test_an_invalid_recording_is_refused(document, message):
    with pytest.raises(RuleopError, match=message):
        read_document(document)


def test_the_summary_names_the_actions_of_the_pass():
    harness = Harness.of(BODY, {"password": CANARY}, s=CREDENTIALS, web=WEB)
    assert recorded(harness)["summary"] == {
        "actions": ["Create Secret/shop/s", "Create ConfigMap/shop/web"],
        "quiet": False,
    }


READER = """
observe: {source: {version: v1, kind: Secret, name: source}}
children:
  a: {template: a.yaml}
  b: {template: b.yaml}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {v: '{{ VALUE }}'}\n"


def reading() -> Harness:
    """A ConfigMap that is computed from a Secret, and another."""
    harness = Harness.of(
        READER,
        {"v": "1"},
        a=CONFIG.replace("NAME", "a").replace("VALUE", "source.data.v | b64decode | upper"),
        b=CONFIG.replace("NAME", "b").replace("VALUE", "spec.v"),
    )
    harness.add(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "source", "namespace": "shop"},
            "data": {"v": "cGw0bnQzZHY0bHUz"},
        }
    )
    harness.settle()
    return harness


def test_details_of_objects_computed_from_a_secret_are_not_recorded():
    harness = reading()
    learned = Learned.NOTHING.learn({"data": {"v": "1000m"}}, {"data": {"v": "1"}}, UNKNOWN)
    failed = Failed(Failure.IMMUTABLE, "PL4NT3D is invalid", redacted="invalid", causes=(Cause("a", "b", "PL4NT3D"),))
    keys = (key("a"), key("b"), key("source", "Secret"))
    history = History(
        learned=dict.fromkeys(keys, learned),
        refusals={each: Refusal(failed, "", 0.0) for each in keys},
    )
    document = document_of(harness.rule, harness.resource, harness.observed(), history)
    found = read_document(document).history
    assert set(found.learned) == {key("b")}
    messages = {each.name: refusal.failed.message for each, refusal in found.refusals.items()}
    assert messages == {"a": "invalid", "b": "PL4NT3D is invalid", "source": "invalid"}
    assert found.refusals[key("a")].failed.causes == (Cause("a", "b"),)


def test_a_value_computed_from_a_secret_is_not_recorded():
    harness = reading()
    assert harness.objects[key("a")]["data"]["v"] == "PL4NT3DV4LU3"
    document = document_of(harness.rule, harness.resource, harness.observed(), History.NONE)
    assert b"PL4NT3DV4LU3" not in orjson.dumps(document)
