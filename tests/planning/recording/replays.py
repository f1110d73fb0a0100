"""A pass that is recorded, written as JSON, read again and planned again."""

from __future__ import annotations

from typing import Any

import orjson

from ruleop.authoring.report.view_json import plan_document
from ruleop.authoring.report.views import ResourceView
from ruleop.kubernetes.kinds import Object
from ruleop.language.rules import Rule
from ruleop.planning import History, Observed, Plan, plan
from ruleop.planning.recording.recording import Recorder, read_document


def document_of(rule: Rule, resource: Object, observed: Observed, history: History) -> dict[str, Any]:
    recorder = Recorder(observed)
    planned = plan(rule, resource, recorder.observed, history)
    recorded = recorder.document(rule, resource, history, planned, predict_status=True)
    document: dict[str, Any] = orjson.loads(orjson.dumps(recorded))
    return document


def replayed(rule: Rule, resource: Object, observed: Observed, history: History, planned: Plan) -> Plan:
    """The plan of the recording, which is that of the pass; with Secrets, all of it that is not computed from their
    values."""
    document = document_of(rule, resource, observed, history)
    replay = read_document(document)
    assert replay.rule_digest == rule.digest
    found = plan(rule, replay.resource, replay.observed, replay.history)
    if "Secret" not in orjson.dumps(document).decode():
        assert plan_document(ResourceView(replay.resource, found)) == plan_document(ResourceView(resource, planned))
        return found
    assert outline(found) == outline(planned), f"{outline(found)} instead of {outline(planned)}"
    return found


def outline(planned: Plan) -> Any:
    """What is done, waited for and reported, without values that a Secret may hold."""
    return (
        [(type(action).__name__, action.key, action.child) for action in planned.actions],
        [(wait.child, wait.why) for wait in planned.waits],
        [(each.child, each.reason) for each in planned.problems],
        [(each.id, each.state) for each in planned.children],
        [(each.type, each.status, each.reason) for each in planned.conditions or ()],
        [(event.type, event.reason) for event in planned.events],
        planned.requeue_after,
        planned.quiet,
    )
