"""The wall clock is wrong, or jumps. No decision depends on it, so nothing is written because of it."""

from __future__ import annotations

import base64
import datetime as dt
import time
from typing import Any

import pytest

from tests.cluster.faults.lab import Lab, is_quiet

DAY = 86_400.0


def times(lab: Lab) -> dict[str, str]:
    conditions: list[dict[str, Any]] = lab.get("ledgers", "all")["status"]["conditions"]
    return {each["type"]: each["lastTransitionTime"] for each in conditions}


def tells(lab: Lab, text: str) -> bool:
    ledger = lab.is_observed("ledgers", "all", "Ready")
    return ledger is not None and ledger["status"]["text"] == text


@pytest.mark.parametrize("jump", [-2 * DAY, 730 * DAY], ids=["two days back", "two years ahead"])
def test_a_clock_jump_causes_no_write(lab: Lab, jump: float) -> None:
    """Neither by the running operator nor by the next one. A condition that does not change keeps its time."""
    lab.make("configmaps", "all-settings", "ConfigMap", data={"currency": "EUR"})
    lab.make("ledgers", "all", "Ledger", spec={"text": "one", "pages": ["a"]})
    lab.eventually("the ledger", lambda: lab.is_observed("ledgers", "all", "Ready"))
    while not is_quiet(lab.proxy):
        pass
    before, mark = times(lab), lab.proxy.mark()
    lab.shift_clock(jump)
    lab.edit("ledgers", "all", {"metadata": {"annotations": {"example.com/touched": "yes"}}})
    lab.edit("configmaps", "all-book", {"metadata": {"annotations": {"example.com/touched": "yes"}}})
    lab.edit("configmaps", "all-settings", {"metadata": {"annotations": {"example.com/touched": "yes"}}})
    while not is_quiet(lab.proxy):
        pass
    lab.kill()
    lab.start_and_wait()
    while not is_quiet(lab.proxy):
        pass
    assert [str(call) for call in lab.proxy.calls[mark:] if call.is_write] == []
    lab.edit("configmaps", "all-settings", {"data": {"currency": "CHF"}})
    # Nor the status: a pass that the next edit interrupts reports that it waits.
    lab.eventually("work to go on", lambda: lab.is_observed("ledgers", "all", "Ready")["status"]["currency"] == "CHF")
    lab.edit("ledgers", "all", {"spec": {"text": "two"}})
    lab.eventually("the status", lambda: tells(lab, "two"))
    assert times(lab) == before


def test_the_lease_is_kept_over_clock_jumps(lab: Lab) -> None:
    """Each candidate measures by itself how long a Lease was not renewed."""
    lab.kill()
    lab.arguments = ["--leader-elect"]
    lab.start_and_wait()
    lab.make("ledgers", "all", "Ledger", spec={"text": "one"})
    lab.eventually("the ledger", lambda: lab.is_observed("ledgers", "all", "Ready"))
    path = f"/apis/coordination.k8s.io/v1/namespaces/{lab.namespace}/leases/ruleop"
    before = lab.admin.get(path)["spec"]
    for jump in (-2 * DAY, 730 * DAY):
        lab.shift_clock(jump)
        renewed = lab.admin.get(path)["spec"]["renewTime"]
        lab.eventually("two renewals", lambda renewed=renewed: lab.admin.get(path)["spec"]["renewTime"] != renewed)
    now = lab.admin.get(path)["spec"]
    assert (now["holderIdentity"], now.get("leaseTransitions")) == (
        before["holderIdentity"],
        before.get("leaseTransitions"),
    )
    lab.edit("ledgers", "all", {"spec": {"text": "two"}})
    lab.eventually("work to go on", lambda: tells(lab, "two"))


def runs(lab: Lab) -> list[str]:
    """The record of the schedule, without the entry of the schedule itself."""
    stack = lab.get("stacks", "flat")
    entries = stack.get("status", {}).get("ruleop", {}).get("once", {}).get("timed", [])
    return [f"{each['id']} {each['result']}" for each in entries if each["result"] != "Scheduled"]


def restart_at(lab: Lab, moment: str) -> None:
    """The next operator sees this time in the responses of the API server."""
    lab.kill()
    lab.proxy.ahead = dt.datetime.fromisoformat(moment).timestamp() - time.time()
    lab.start_and_wait()


def finish(lab: Lab) -> None:
    for each in lab.snapshot():
        if "/flat-timed-" in each:
            lab.edit("configmaps", each.partition("/")[2], {"metadata": {"annotations": {"example.com/done": "yes"}}})


def test_a_run_of_a_schedule_is_made_once_and_one_that_an_outage_delayed_is_skipped(lab: Lab) -> None:
    """By the clock of the API server, which is years ahead of the operator's. The second run begins by itself."""
    lab.kill()
    lab.make("stacks", "flat", "Stack", spec={"schedule": "0 3 * * *"})
    restart_at(lab, "2031-05-01T03:10:00Z")
    made_up_for = ["2031-05-01T03:00:00Z Running", "2031-04-30T03:00:00Z Skipped"]
    lab.eventually("the late run", lambda: runs(lab) == made_up_for)
    lab.kill()
    lab.start_and_wait()
    finish(lab)
    lab.eventually("its end", lambda: runs(lab)[:1] == ["2031-05-01T03:00:00Z Succeeded"])
    restart_at(lab, "2031-05-02T02:59:50Z")
    lab.eventually("the second run", lambda: runs(lab)[:1] == ["2031-05-02T03:00:00Z Running"])
    finish(lab)
    lab.eventually("its end", lambda: runs(lab)[:1] == ["2031-05-02T03:00:00Z Succeeded"])
    restart_at(lab, "2031-05-03T05:00:00Z")
    ended = ["2031-05-02T03:00:00Z Succeeded", "2031-05-01T03:00:00Z Succeeded"]
    lab.eventually("the record of the third run", lambda: runs(lab) == ["2031-05-03T03:00:00Z Skipped", *ended])
    lab.eventually("its Event", lambda: any("2031-05-03T03:00:00Z" in each["note"] for each in skips(lab)))
    made = {call: number for call, number in lab.proxy.creates_and_deletes().items() if "flat-timed-" in call}
    assert list(made.values()) == [1, 1], made


def skips(lab: Lab) -> list[dict[str, Any]]:
    events = lab.admin.get(f"/apis/events.k8s.io/v1/namespaces/{lab.namespace}/events")["items"]
    return [each for each in events if each["reason"] == "RunSkipped"]


def test_a_secret_is_rotated_once_and_what_reads_it_follows(lab: Lab) -> None:
    """The next operators see the API server's clock 91 days later, and then a day later still."""
    path = f"/api/v1/namespaces/{lab.namespace}/secrets/flat-secret"
    lab.make("stacks", "flat", "Stack", spec={"keyed": True})
    lab.eventually("the stack", lambda: lab.is_observed("stacks", "flat", "Ready"))
    first, digest = lab.admin.get(path)["data"], lab.get("configmaps", "flat-reader")["data"]
    mark = lab.proxy.mark()
    for days in (91, 92):
        lab.kill()
        lab.proxy.ahead = days * DAY
        lab.start_and_wait()
        lab.eventually("the reader", lambda: lab.get("configmaps", "flat-reader")["data"] != digest)
        while not is_quiet(lab.proxy):
            pass
    second = lab.admin.get(path)["data"]
    assert second == {"user": first["user"], "password": second["password"], "previous-password": first["password"]}
    assert [call for call in lab.proxy.written(mark) if "secrets" in call] == ["patch secrets flat-secret"]
    log = lab.log_file.read_text()
    for value in (first["password"], second["password"]):
        assert value not in log
        assert base64.b64decode(value).decode() not in log
