"""Plans in several threads at once: each is what it is alone, and each charges its own account."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from ruleop.kubernetes.merge import Record, create_fields, decode, encode, record
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.language.templates.values.cost import METER, Account
from tests.limits.shapes import EACH, FROM_FILE, of_each, template, texts
from tests.planning.harness import Harness, as_bytes


@pytest.fixture(autouse=True)
def _switching() -> Iterator[None]:
    """Threads take turns after a few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*works) -> None:
    """Does the works in threads of their own. An error in one fails the test."""
    start, errors = threading.Barrier(len(works)), []

    def run(work) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.slow
def test_plans_at_once_are_the_same_plans_and_charge_the_same():
    """They share a rule, and so all that is made of its templates."""
    harness = Harness.of(
        EACH, {"items": texts(20)}, **of_each("  a: '{{ item }}{{ spec['items'] | map('upper') | join }}'\n")
    )
    alone, found = as_bytes(harness.plan()), []

    def work() -> None:
        for _ in range(5):
            account = Account()
            before = METER.switch(account)
            try:
                for child in harness.rule.children.values():
                    child.body.render(
                        {"metadata": {"name": "a"}, "index": 0, "item": "x", "spec": {"items": texts(200)}}
                    )
            finally:
                METER.switch(before)
            found.append((as_bytes(harness.plan()), account.bytes))

    at_once(work, work, work)
    assert len(found) == 15
    assert len(set(found)) == 1
    assert found[0][0] == alone


@pytest.mark.slow
def test_templates_that_several_threads_use_first_are_made_whole():
    for _ in range(20):
        harness = Harness.of(
            FROM_FILE,
            {"a": "b"},
            a=template("  {% include 'part.yaml' %}\n")["a"],
            part="{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}\n  k: {{ twice(spec.a) }}\n",
        )
        found: list[bytes] = []
        at_once(*[lambda harness=harness, found=found: found.append(as_bytes(harness.plan()))] * 3)
        assert len(set(found)) == 1
        assert b"bb" in found[0]


def test_records_are_decoded_by_several_threads(monkeypatch):
    monkeypatch.setattr(record, "_RECORDS", record._Records())
    monkeypatch.setattr(record, "_MAX_CACHED", 500)
    records = [
        Record("a", create_fields({"metadata": {"name": "a"}, "data": {f"k{number}": ""}}, UNKNOWN))
        for number in range(30)
    ]

    def work() -> None:
        for _ in range(20):
            for each in records:
                assert decode(encode(each)) == each

    at_once(work, work, work)
