"""Random values of a Secret are regenerated in time, in one write, and the old ones are kept."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Failed, Failure, Patch
from ruleop.planning.events import write_events
from ruleop.planning.rendering.certificates import validity
from ruleop.planning.rendering.randomness import ROTATED
from ruleop.planning.rendering.time_functions import parse_time
from tests.planning.harness import Harness
from tests.planning.settled import settled
from tests.planning.test_time import due, stamp

BORN = "2026-01-01T00:00:00Z"
KEY = ObjectKey("", "Secret", "shop", "s")
RANDOM = "stringData: {user: app, password: '{{ random_password(24) }}'}"
WEB = (
    "  web: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, "
    "data: {digest: '{{ secret.data.password | sha256 }}'}}}\n"
)
CERTIFICATE = """
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData:
  {% set ca = genCA('ca', 3650) %}
  {% set cert = genSignedCert('web', days=90, ca=ca) %}
  ca.crt: {{ ca.Cert }}
  tls.crt: {{ cert.Cert }}
  tls.key: {{ cert.Key }}
  name: web
"""


def harness(keys: str = "rotateEvery: 90d", data: str = RANDOM, more: str = "", **files: str) -> Harness:
    body = "template: s.yaml" if files else f"object: {{apiVersion: v1, kind: Secret, metadata: {{name: s}}, {data}}}"
    found = settled(
        f"reconcilePeriod: 0s\nchildren:\n  secret: {{apply: {{strategy: create-only}}, {keys}, {body}}}\n{more}",
        **files,
    )
    found.objects[KEY]["metadata"]["creationTimestamp"] = BORN
    return found


def data(found: Harness) -> dict[str, str]:
    values: dict[str, str] = found.objects[KEY]["data"]
    return {key: base64.b64decode(value).decode() for key, value in values.items()}


def at(found: Harness, now: str) -> Harness:
    found.now, found.seed = now, now.encode()
    found.settle()
    return found


def test_values_are_regenerated_in_time_and_the_old_ones_are_kept_until_the_next_rotation() -> None:
    found = harness()
    first = data(found)
    assert first.keys() == {"user", "password"}
    assert due(found) == "2026-04-01T00:00:01Z"
    assert data(at(found, "2026-03-31T23:59:59Z")) == first
    second = data(at(found, "2026-04-01T00:00:01Z"))
    assert second == {"user": "app", "password": second["password"], "previous-password": first["password"]}
    assert second["password"] != first["password"]
    assert found.objects[KEY]["metadata"]["annotations"][ROTATED] == "2026-04-01T00:00:01Z"
    assert due(found) == "2026-06-30T00:00:02Z"
    assert data(at(found, "2026-06-01T00:00:00Z")) == second
    third = data(at(found, "2026-07-01T00:00:00Z"))
    assert third["previous-password"] == second["password"]


def test_a_rotation_is_one_write_and_an_event() -> None:
    found = harness()
    found.writes.clear()
    found.now, found.seed = "2026-05-01T00:00:00Z", b"other"
    (event,) = write_events(found.plan().actions, "shop")
    assert (event.reason, event.message) == ("Rotated", "Rotated Secret/s: its random values are regenerated")
    found.settle()
    assert found.writes == ["Patch Secret/s"]
    assert found.plan().quiet


def test_a_child_that_reads_the_value_follows() -> None:
    found = harness(more=WEB)
    web = ObjectKey("", "ConfigMap", "shop", "web")
    before = found.objects[web]["data"]["digest"]
    at(found, "2026-05-01T00:00:00Z")
    assert found.objects[web]["data"]["digest"] != before


def test_the_pass_that_rotates_comes_again_at_once_for_what_reads_the_value() -> None:
    found = harness(more=WEB)
    found.now, found.seed = "2026-05-01T00:00:00Z", b"other"
    planned = found.plan()
    found.history = found.history.after(planned, found.execute(planned.actions), 0.0)
    assert found.plan().again


@pytest.mark.parametrize("crash_after", [0, 1])
def test_a_crash_leaves_either_all_of_the_old_or_all_of_the_new(crash_after: int) -> None:
    found = harness(data="stringData: {a: '{{ random_password(9) }}', b: '{{ random_password(9) }}'}")
    first = data(found)
    found.now, found.seed = "2026-05-01T00:00:00Z", b"other"
    found.step(crash_after=crash_after)
    if not crash_after:
        assert data(found) == first
    second = data(at(found, "2026-05-01T00:00:05Z"))
    assert {second["previous-a"], second["previous-b"]} == {*first.values()}
    assert found.plan().quiet


def test_a_rejected_rotation_is_reported_and_changes_nothing() -> None:
    found = harness()
    first = data(found)
    found.refuse[KEY] = Failed(Failure.INVALID, "Secret is immutable")
    found.now = "2026-05-01T00:00:00Z"
    found.step()
    assert data(found) == first
    assert found.ready()[1] == "ApplyFailed"


def test_a_paused_resource_rotates_nothing() -> None:
    found = harness()
    first = data(found)
    found.patch_resource({"annotations": {"ruleop.dev/paused": "true"}})
    assert data(at(found, "2026-05-01T00:00:00Z")) == first


def test_no_value_is_in_a_shown_plan() -> None:
    found = harness(more=WEB)
    first = data(found)
    found.now, found.seed = "2026-05-01T00:00:00Z", b"other"
    planned = found.plan()
    (action,) = [each for each in planned.actions if isinstance(each, Patch) and each.key == KEY]
    new = base64.b64decode(action.patch["data"]["password"]).decode()
    shown = str([planned.masks.pair(action.live, action.object), planned.events, planned.conditions])
    for value in (first["password"], new):
        assert value not in shown
        assert base64.b64encode(value.encode()).decode() not in shown


def test_certificates_are_renewed_before_they_end() -> None:
    found = harness("renewBefore: 720h", s=CERTIFICATE)
    first = data(found)
    assert due(found) == "2026-03-02T00:00:01Z"
    assert data(at(found, "2026-02-28T00:00:00Z")) == first
    second = data(at(found, "2026-03-05T00:00:00Z"))
    assert second["previous-tls.crt"] == first["tls.crt"]
    assert second.keys() == {
        "name",
        *(f"{each}{key}" for key in ("ca.crt", "tls.crt", "tls.key") for each in ("", "previous-")),
    }
    found_validity = validity(second["tls.crt"])
    assert found_validity is not None
    assert found_validity[1] > parse_time("2026-06-01T00:00:00Z")


def test_a_certificate_that_is_always_too_old_is_a_problem_and_not_renewed_in_each_pass() -> None:
    computed = CERTIFICATE.replace("days=90", "days=spec.days | default(90)")
    found = harness("renewBefore: 91d", s=computed)
    (problem,) = found.plan().problems
    assert problem.message == "the certificate in tls.crt is valid for a shorter time than renewBefore: renew it later"
    assert problem.reason == "ApplyFailed"
    assert found.plan().actions == ()


@pytest.mark.parametrize("value", ["", "?", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==", "A" * 100_000, 7])
def test_a_certificate_that_somebody_replaced_by_nonsense_stays(value: Any) -> None:
    found = harness("renewBefore: 720h", s=CERTIFICATE)
    for key in ("ca.crt", "tls.crt"):
        found.objects[KEY]["data"][key] = value
    at(found, "2030-01-01T00:00:00Z")
    assert found.objects[KEY]["data"]["tls.crt"] == value


def test_a_key_for_a_previous_value_is_refused_in_a_template() -> None:
    found = harness(data="stringData: {password: '{{ random_password(9) }}', previous-password: x}")
    assert found.plan().problems[0].message == (
        "the key previous-password is for the value before the last rotation: choose another"
    )


@pytest.mark.slow
@given(st.lists(st.integers(0, 200), max_size=8))
def test_a_rotation_keeps_exactly_the_value_before_it(days: list[int]) -> None:
    found = harness("rotateEvery: 30d")
    age, now = parse_time(BORN), parse_time(BORN)
    for number in days:
        now += 86_400 * number
        before = data(found)
        after = data(at(found, stamp(now)))
        if now - age >= 30 * 86_400:
            assert after["previous-password"] == before["password"] != after["password"]
            age = now
        else:
            assert after == before
