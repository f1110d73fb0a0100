"""Two operators of different names that reconcile one custom resource notice each other, and nothing is read for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.names import operator_of_manager, status_manager
from ruleop.operator.passes.other_operators import OtherOperators
from ruleop.operator.telemetry.metrics import Metrics

MESSAGE = (
    "the operators shop and pv both reconcile it: let only one of them select it, by namespaces or selector; if pv is a "
    "former name of shop, run `ruleop rename pv`"
)


def resource(name: str = "a", *finalizers: str, **written: str) -> dict[str, Any]:
    """`written`: when the field managers wrote its status last."""
    entries = [{"manager": each, "subresource": "status", "time": time} for each, time in written.items()]
    metadata = {"name": name, "namespace": "ns", "finalizers": [*finalizers], "managedFields": entries}
    return {"apiVersion": "example.com/v1", "kind": "App", "metadata": metadata}


class Shop:
    """The operator `shop`."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.metrics = Metrics()
        events: Any = SimpleNamespace(record=lambda _, found: self.events.extend(found))
        self.others = OtherOperators(events, self.metrics, "shop")

    def writes(self, *seconds: str) -> None:
        """Two writes of the status; `seconds`: those in which `pv` had written it last, as the responses say."""
        for second in seconds:
            times = {"ruleop-shop": "2026-01-01T00:00:59Z", "ruleop-pv": f"2026-01-01T00:00:{second}Z", "kubectl": "x"}
            found = resource(**times)
            self.others.status_written(ObjectKey.of(found), found)
        self.others.notice(resource())

    @property
    def shared(self) -> float:
        found = self.metrics.registry.get_sample_value("ruleop_shared_resources")
        assert found is not None
        return found


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_the_finalizer_of_another_operator_is_reported_with_both_names(shop: Shop) -> None:
    with capture_logs() as logs:
        for _ in range(2):
            shop.others.notice(resource("a", "ruleop.dev/shop", "ruleop.dev/pv", "other.dev/x"))
        shop.others.notice(resource("b", "ruleop.dev/pv"))
    assert [(each.reason, each.message) for each in shop.events] == [("OtherOperator", MESSAGE)] * 2, "one for each"
    (line,) = logs
    assert (line["operator"], line["other"], line["resource"]) == ("shop", "pv", "ns/a")
    assert shop.shared == 2
    shop.others.notice(resource("a", "ruleop.dev/shop"))
    shop.others.remove(ObjectKey.of(resource("b")))
    assert shop.shared == 0


def test_other_finalizers_are_not_reported(shop: Shop) -> None:
    shop.others.notice(resource("a", "ruleop.dev/shop", "foregroundDeletion"))
    assert (shop.events, shop.shared) == ([], 0)


def test_another_operator_that_writes_the_status_in_between_is_reported(shop: Shop) -> None:
    shop.writes("01", "02")
    assert [each.message for each in shop.events] == [MESSAGE]
    shop.writes("03")
    assert (len(shop.events), shop.shared) == (1, 1)
    shop.writes("03")
    assert shop.shared == 0, "the other has stopped"


def test_a_status_that_was_written_under_a_former_name_is_not_reported(shop: Shop) -> None:
    shop.writes("01", "01", "01")
    assert (shop.events, shop.shared) == ([], 0)


@pytest.mark.parametrize("name", ["ruleop", "shop", "ruleop-2"])
def test_an_operator_is_known_by_its_field_manager_of_the_status(name: str) -> None:
    assert operator_of_manager(status_manager(name)) == name


@pytest.mark.parametrize("manager", ["kubectl", "ruleop:5bdf:mark", "ruleopx", ""])
def test_other_field_managers_are_no_operators(manager: str) -> None:
    assert operator_of_manager(manager) == ""
