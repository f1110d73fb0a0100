"""With `writeAs`, every write of a child is the account's; everything else is the operator's own."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from ruleop.kubernetes.permissions import IMPERSONATE, ServiceAccount
from ruleop.operator.wire.client.server_errors import ApiError, Problem, response_error
from ruleop.planning import Expire
from tests.operator.passes.executor_harness import OWNER, ExecutorHarness, harness_with_action
from tests.operator.passes.reconciler_harness import ReconcilerHarness
from tests.operator.passes.test_executor import CHILDREN
from tests.operator.server import Answer, asked

DEPLOYER = ServiceAccount("shop", "deployer")
USER = "system:serviceaccount:shop:deployer"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
RULES = """
writeAs: "{{ metadata.namespace }}/deployer"
children: {a: {template: a.yaml, apply: {strategy: STRATEGY}, deletion: delete}}
status: {v: "{{ a.data.v }}"}
"""


class Requests:
    """Notes as whom each request is sent."""

    def __init__(self, server: Any) -> None:
        self.server, self.sent = server, list[tuple[str, str, str]]()

    async def send(self, request: Any) -> Any:
        self.sent.append((*asked(request), request.as_user))
        return await self.server.send(request)

    def users(self, *, of: str) -> set[str]:
        """Of the writes of this object."""
        return {user for verb, name, user in self.sent if name == of and verb not in {"get", "metadata"}}


def noted(harness: Any) -> Requests:
    requests = Requests(harness.server)
    harness.server.api.client = requests
    return requests


@pytest.mark.parametrize("kind", [*CHILDREN, "add", "remove"])
def test_writes_of_children_are_the_accounts_and_those_of_the_resource_the_operators(run, kind):
    harness, action, (_, name) = harness_with_action(kind)
    requests = noted(harness)
    outcome = run(harness.executor.execute([action], harness.app, account=DEPLOYER))
    assert outcome.clean
    assert requests.users(of=name) == ({USER} if kind in CHILDREN else {""})
    assert all(not user for verb, _, user in requests.sent if verb in {"get", "metadata"}), "reads are the operator's"


def test_the_deletion_of_an_expired_resource_is_the_operators(run):
    harness = ExecutorHarness()
    requests = noted(harness)
    outcome = run(harness.executor.execute([Expire(OWNER, "2h")], harness.app, account=DEPLOYER))
    assert outcome.clean
    assert harness.live("web", "App")["metadata"]["deletionTimestamp"], "somebody else's finalizer holds it"
    assert outcome.resource == harness.live("web", "App")
    assert requests.sent == [("delete", "web", "")]


def test_accounts_of_resources_that_are_written_at_once_are_not_mixed_up(run):
    harness = ExecutorHarness()
    requests = noted(harness)
    accounts = [None, DEPLOYER, ServiceAccount("shop", "other")]

    async def write() -> None:
        await asyncio.gather(
            *(
                harness.executor.execute([harness.create(f"{number}-{turn}")], harness.app, account=account)
                for turn in range(5)
                for number, account in enumerate(accounts)
            )
        )

    run(write())
    for number, account in enumerate(accounts):
        for turn in range(5):
            assert requests.users(of=f"{number}-{turn}") == {account.user if account is not None else ""}


def test_an_account_has_no_writes_after_the_lease_has_run_out(run):
    harness = ExecutorHarness()
    harness.server.api.holds_lease = lambda: False
    outcome = run(harness.executor.execute([harness.create()], harness.app, account=DEPLOYER))
    assert "the Lease has run out" in outcome.failed[harness.key("a")].message


@pytest.mark.parametrize(
    ("denied", "verb"),
    [
        ('configmaps is forbidden: User "u" cannot create resource "configmaps" in API group ""', "create"),
        ('"d" is forbidden: User "u" cannot impersonate resource "serviceaccounts" in API group ""', IMPERSONATE),
        (
            'configmaps is forbidden: User "u" cannot impersonate-on:serviceaccount:create resource "configmaps"',
            IMPERSONATE,
        ),
    ],
)
def test_a_refusal_has_the_account(run, denied, verb):
    harness = ExecutorHarness()
    body = orjson.dumps({"kind": "Status", "reason": "Forbidden", "message": denied})

    class Refusing:
        async def send(self, request: Any) -> Any:
            raise response_error(403, body, verb=request.verb, resource=request.resource)

    harness.server.api.client = Refusing()
    outcome = run(harness.executor.execute([harness.create()], harness.app, account=DEPLOYER))
    failed = outcome.failed[harness.key("a")]
    assert (failed.verb, failed.account) == (verb, "shop/deployer")


@pytest.mark.parametrize("strategy", ["merge", "server-side"])
def test_a_life_of_a_resource(run, strategy):
    harness = ReconcilerHarness(RULES.replace("STRATEGY", strategy), {"v": "1"}, a=CONFIG)
    requests = noted(harness)

    async def live() -> None:
        await harness.until_settled()
        harness.edit_app(spec={"v": "2"})
        await harness.until_settled()
        harness.edit("a", data={"v": "drifted"})
        await harness.until_settled()
        assert harness.live("a")["data"] == {"v": "2"}
        harness.delete_app()
        await harness.until_settled()

    run(live())
    assert harness.app is None
    assert requests.users(of="a") == {USER}
    assert requests.users(of="web") == {""}, "the status and the finalizer"


def test_the_reconciler_reports_what_the_account_may_not_do(run):
    harness = ReconcilerHarness(RULES.replace("STRATEGY", "merge"), {"v": "1"}, a=CONFIG)
    harness.server.answer_with("create", "a", Answer.NO_ROLE)
    run(harness.reconcile())
    ready = harness.condition()
    assert (ready["status"], ready["reason"]) == ("False", "Forbidden")
    assert "the ServiceAccount shop/deployer cannot create configmaps in namespace shop: grant it" in ready["message"]


def test_an_impersonation_that_is_not_granted_is_recognised() -> None:
    text = 'serviceaccounts "d" is forbidden: User "u" cannot impersonate resource "serviceaccounts" in API group ""'
    error = ApiError(Problem.FORBIDDEN, verb="create", resource="configmaps a", text=text, status=403)
    assert error.cannot_impersonate
    assert error.not_permitted
