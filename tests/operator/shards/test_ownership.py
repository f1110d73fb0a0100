"""A custom resource that another process reconciles, or none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.labels import label_requirements, labels_of, matched_by_none, meets
from ruleop.operator.shards import ownership
from ruleop.operator.shards.claims import Claims, ProcessLease, Roster
from ruleop.operator.shards.ownership import BySelector, UnownedResources
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.operator.wire.client.requests import MANY_PARTIAL
from tests.operator.controllers.controller_set_harness import project_of, watch
from tests.operator.server import APP, NAMESPACE, Answer, Server

FIRST = ProcessLease("ruleop-a", -1, "pod-a", None, "7", 15.0, since=5, selector="team=a")
SECOND = ProcessLease("ruleop-b", -1, "pod-b", None, "9", 15.0, since=9, selector="team=b")


def by_selector(lease="ruleop-b", selector="tier=x", resources=None, recorded=None):
    events = SimpleNamespace(record=lambda _resource, found: recorded.extend(found))
    leases = SimpleNamespace(namespace="ops")
    return BySelector(lease, selector, leases, events, resources, duration=15.0)


def test_only_a_reconcile_records_the_event() -> None:
    """Rollouts look at all custom resources several times a second."""
    recorded: list[object] = []
    mine = by_selector(recorded=recorded)
    mine.claims = Claims("ruleop-b", 9)
    mine.claims.listed([FIRST], 0.0)
    shared, other = ({"metadata": {"name": "web", "labels": labels}} for labels in ({"team": "a"}, {}))
    assert (mine.other_owner(labels_of(shared)), mine.other_owner(labels_of(other))) == (FIRST, None)
    assert not recorded
    assert (mine.owns(shared), mine.owns(other)) == (False, True)
    (event,) = recorded
    assert event.reason == "ReconciledElsewhere"
    assert 'with the selector "team=a"' in event.message


# -- those that no selector matches ------------------------------------------------------------------------------------

REQUIREMENTS = st.one_of(
    st.builds("{}={}".format, st.sampled_from("kl"), st.sampled_from(["", "a", "b"])),
    st.builds("{}!={}".format, st.sampled_from("kl"), st.sampled_from(["", "a", "1"])),
    st.builds(
        "{} {} ({})".format, st.sampled_from("kl"), st.sampled_from(["in", "notin"]), st.sampled_from(["a,b", ",1"])
    ),
    st.sampled_from(["k", "!k", "l", "!l", "k>1", "l<5"]),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=3).map(",".join).map(label_requirements)
LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from(["", "a", "b", "1", "3"]))


@given(st.lists(SELECTORS, max_size=4), LABELS)
def test_the_selector_for_the_server_leaves_out_nothing_that_no_process_matches(selectors, labels):
    asked = label_requirements(matched_by_none(selectors))
    unmatched = not any(meets(labels, each) for each in selectors)
    assert meets(labels, asked) or not unmatched
    if all(len(each) == 1 and each[0][1] not in {"Gt", "Lt"} for each in selectors):
        assert meets(labels, asked) == unmatched, "nothing else is sent"


def test_the_selector_for_the_server_is_short_whatever_is_in_the_leases():
    many = [
        label_requirements(f"team in ({','.join(f'{number}-{each}' for each in range(40))})") for number in range(99)
    ]
    assert 1000 < len(matched_by_none(many)) <= 2000


def test_one_process_lists_when_all_have_been_the_same_for_a_lease_and_then_seldom():
    """One that is replaced, with a new holder of its Lease, is not missing."""
    rosters = [Roster(each.name, duration=15.0, period=600.0) for each in (FIRST, SECOND)]
    looked = []

    def passes(begin, end, *leases):
        for now in range(begin, end, 5):
            renewed = [replace(each, version=f"{each.version}-{now}") for each in leases]
            for roster in rosters:
                roster.listed(renewed, float(now))
                if roster.is_due(float(now)):
                    looked.append((roster.name, now))
                    roster.looked(roster.selectors, float(now))

    passes(0, 700, FIRST, SECOND)
    assert looked == [("ruleop-a", 15), ("ruleop-a", 615)]
    looked.clear()
    passes(700, 705, replace(FIRST, holder=""), SECOND)  # released
    passes(705, 1000, replace(FIRST, holder="pod-c"), SECOND)
    assert looked == [("ruleop-a", 720)], "the same again, after what was not counted"
    looked.clear()
    passes(1000, 1100, replace(FIRST, holder=""), SECOND)
    assert looked == [("ruleop-b", 1015)]
    assert rosters[1].selectors == {"team=b"}


class Finding:
    """The process of the first Lease of two, which finds what no selector matches, on a server with these objects."""

    def __init__(self, *objects, rules="", other="team=b"):
        self.server, self.metrics, self.asked = Server(*objects), Metrics(), []
        self.mine = by_selector("ruleop-a", "team=a", UnownedResources(self, self.metrics))
        self.mine.roster = Roster("ruleop-a", duration=0.0, period=0.0)
        self.other = other
        self.controller_set = SimpleNamespace(
            controllers=[SimpleNamespace(kind=APP, rules=project_of(rules or watch()).rules)],
            discovery=SimpleNamespace(resource=self.server.api.lookup),
            informers=SimpleNamespace(namespaces=("",)),
        )

    async def send(self, request):
        assert request.accept == MANY_PARTIAL
        self.asked.append(dict(parse_qsl(request.query)))
        page = await self.server.send(request)
        return {**page, "items": page["items"] or None}  # as an API server answers for custom resources

    def count(self):
        self.mine.roster.listed([FIRST, replace(SECOND, selector=self.other)], 0.0)
        asyncio.run(self.mine._find(self.controller_set, self.mine.roster.selectors, 0.0))
        return self.metrics.registry.get_sample_value("ruleop_unowned_resources")


def app(name, **labels):
    metadata = {"namespace": NAMESPACE, "name": name, "labels": labels}
    return {"apiVersion": "example.com/v1", "kind": "App", "metadata": metadata, "spec": {}}


def test_resources_that_no_selector_matches_are_counted_and_three_are_named():
    lost = [app(f"lost-{number}", team="c") for number in range(4)]
    finding = Finding(app("one", team="a"), app("two", team="b"), app("none"), *lost)
    with capture_logs() as logs:
        assert finding.count() == 5
        assert finding.count() == 5
    assert finding.asked == [{"labelSelector": "team notin (a),team notin (b)", "limit": "500"}] * 2
    assert [each.message for each in finding.mine.checks()] == ["5 without a process"]
    (line,) = logs
    assert line["event"] == "no process reconciles some custom resources"
    assert line["examples"] == ["App/shop/lost-0", "App/shop/lost-1", "App/shop/lost-2"]
    for each in (*lost, app("none")):
        finding.server.edit(ObjectKey.of(each), metadata={**each["metadata"], "labels": {"team": "a"}})
    assert finding.count() == 0
    assert not list(finding.mine.checks())


def test_selectors_that_cannot_be_negated_are_tried_on_all_page_by_page(monkeypatch):
    monkeypatch.setattr(ownership, "PAGE", 2)
    apps = [app(f"app-{number}", team="b", tier=tier) for number, tier in enumerate("xyxyy")]
    finding = Finding(*apps, other="team=b,tier=x")
    assert finding.count() == 3
    assert [each["labelSelector"] for each in finding.asked] == ["team notin (a)"] * 3


def test_resources_that_no_rule_matches_need_no_process():
    rules = watch(more="selector: {matchLabels: {kind: web}}")
    assert Finding(app("one", kind="web"), app("two"), rules=rules).count() == 1


def test_beside_a_process_without_a_selector_nothing_is_listed():
    finding = Finding(app("one"), other="")
    assert finding.count() == 0
    assert not finding.asked


def test_a_list_that_fails_leaves_the_count_as_it_was():
    finding = Finding(app("one"))
    assert finding.count() == 1
    finding.server.make(app("two"))
    finding.server.answer_with("list", "apps", Answer.BROKEN, Answer.BROKEN)
    with capture_logs() as logs:
        assert (finding.count(), finding.count(), finding.count()) == (1, 1, 2)
    assert [each["event"] for each in logs] == [
        "custom resources without a process cannot be counted; will retry",
        "no process reconciles some custom resources",
    ]
