"""Asks the API server what it would answer to the writes of a plan: `plan --live --server-dry-run`.

The operator's own executor sends the operator's own requests, each as a dry run. The server decides with everything
that it has, such as defaults, webhooks, quotas and immutable fields, and stores nothing. Since nothing is stored, a
write that needs an earlier one cannot be asked about: one into a Namespace that the same plan creates, for example.
"""

from __future__ import annotations

import asyncio
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.reader import DryRunClient
from ruleop.authoring.report import Answer, ResourceView, StoredField, Verdict
from ruleop.kubernetes.kinds import SERVER_METADATA, Kind, Object, ObjectKey
from ruleop.kubernetes.permissions import IMPERSONATE, place
from ruleop.operator.cache import OwnWrites
from ruleop.operator.passes.executor import Executor
from ruleop.operator.server_api import ServerApi
from ruleop.planning import Create, Delete, Plan, Problem, ResourceAction, State
from ruleop.planning.changes import NOTHING, condition_reason, differences
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from ruleop.authoring.live.live_planner import LivePlanner
    from ruleop.authoring.live.open_cluster import LiveCluster
    from ruleop.language.rules import Rule
    from ruleop.planning import Action, Failed, Outcome
    from ruleop.planning.changes import Change
    from ruleop.planning.model.observed import KindInfo

CONCURRENCY: Final = 8
NAMESPACE: Final = ("", "Namespace")
DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
NO_DRY_RUN: Final = "does not support dry run"
"""The server refuses a dry run that would call a webhook with side effects. It might well accept the write."""

_NOT_SHOWN: Final = "(not shown, because it may quote a Secret)"


@dataclass(frozen=True, slots=True)
class _NoStores:
    """The answers to a dry run are in no store: they are not what the cluster has."""

    info: Callable[[Kind], KindInfo]

    def put(self, obj: Object) -> bool:  # noqa: ARG002
        return False

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        pass


@dataclass(slots=True)
class ServerDryRun:
    cluster: LiveCluster
    planner: LivePlanner
    created: set[ObjectKey] = field(default_factory=set)  # Namespaces and CRDs that plans of this run would create

    async def ask(self, each: ResourceView) -> ResourceView:
        """The pass with the answers to its writes, and with the problems that the operator would report. The planner
        must not have planned another batch since. Raises ApiError."""
        plan, rule = each.plan, each.chosen
        if plan is None or rule is None or not (plan.actions or plan.waits):
            return each
        created = (action.key for action in plan.actions if isinstance(action, Create))
        self.created |= {key for key in created if key.group_kind in (NAMESPACE, DEFINITION)}
        unasked = await self._unasked(plan, rule)
        answered = await self._asked([one for one in plan.actions if not _is_in(one, unasked)], each.obj, rule, plan)
        refused = {key: failed for answer, key, failed in answered if failed is not None and _is_refusal(failed)}
        if refused:
            after = _after(plan, self.planner.plan_after(each, refused), refused)
            new = [action for action in after.actions if not any(action is one for one in plan.actions)]
            answered += await self._asked(new, each.obj, rule, after)
            plan = after
        problems = [
            Problem(answer.child, "Unanswered", f"{key} cannot be asked about: {answer.message}")
            for answer, key, _ in answered
            if answer.verdict is Verdict.UNASKED
        ]
        plan = replace(plan, problems=(*plan.problems, *problems))
        answers = [answer for answer, _, _ in answered]
        return replace(each, plan=plan, answers=(*unasked, *answers, *self._waiting(plan)))

    # -- asking --------------------------------------------------------------------------------------------------------

    async def _asked(
        self, actions: Sequence[Action], resource: Object, rule: Rule, plan: Plan
    ) -> list[tuple[Answer, ObjectKey, Failed | None]]:
        """Each write by itself: one that is refused does not hide what the server says of the others."""
        slots = asyncio.Semaphore(CONCURRENCY)

        async def ask(action: Action) -> tuple[Answer, ObjectKey, Failed | None]:
            async with slots:
                return await self._ask(action, resource, rule, plan)

        return await asyncio.gather(*map(ask, actions))

    async def _ask(
        self, action: Action, resource: Object, rule: Rule, plan: Plan
    ) -> tuple[Answer, ObjectKey, Failed | None]:
        warnings: list[str] = []
        client = DryRunClient(self.cluster.reader.session, warned=warnings.append)
        api = ServerApi(client, self.cluster.reader.resource)
        executor = Executor(api, _NoStores(self.cluster.kinds.info), OwnWrites())
        outcome = await executor.execute([replace(action, needs=frozenset())], resource, account=plan.account)
        failed = outcome.failed.get(action.key)
        return self._answer(action, outcome, dict.fromkeys(warnings), rule, plan), action.key, failed

    # -- what cannot be asked ------------------------------------------------------------------------------------------

    async def _unasked(self, plan: Plan, rule: Rule) -> list[Answer]:
        """The writes that need something which does not exist: the custom resource of a file, or what this run would
        create."""
        changes_resource = any(isinstance(each, ResourceAction) for each in plan.actions)
        exists = not changes_resource or await self.cluster.reader.get(rule.kind, plan.resource) is not None
        found = []
        for action in plan.actions:
            missing = self._missing(action.key, Kind.of(action.object)) if isinstance(action, Create) else ""
            if isinstance(action, ResourceAction) and not exists:
                missing = f"{action.key} would be created first"
            if missing:
                found.append(Answer(Verdict.UNASKED, action.child, action, missing))
        return found

    def _missing(self, key: ObjectKey, kind: Kind | None = None) -> str:
        """The object that the plans of this run would create before one of this key can exist; empty if there is
        none."""
        for each in self.created:
            if each.group_kind == NAMESPACE and each.name == key.namespace:
                return f"{each} would be created first"
            if kind is not None and each.group_kind == DEFINITION and self.cluster.reader.resource(kind) is None:
                return f"{each} would be created first"
        return ""

    def _waiting(self, plan: Plan) -> Iterator[Answer]:
        """The children that wait. What they would write is known only when they do not."""
        for child in plan.children:
            if child.state is State.WAITING:
                missing = next(filter(None, (self._missing(each.key) for each in child.objects)), "")
                waits = dict.fromkeys(f"waits for {each.for_what}" for each in plan.waits if each.child == child.id)
                yield Answer(Verdict.UNASKED, child.id, message=missing or "; ".join(waits))

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answer(self, action: Action, outcome: Outcome, warnings: Iterable[str], rule: Rule, plan: Plan) -> Answer:
        failed, secrecy, shown = outcome.failed.get(action.key), rule.secrecy_of(action.child), plan.masks.text
        warned = tuple(shown(secrecy.rejection(text, _NOT_SHOWN)) for text in warnings)
        answer = Answer(Verdict.ACCEPTED, action.child, action, warnings=warned)
        if failed is not None and failed.verb:
            return replace(answer, verdict=Verdict.UNASKED, message=_needed(failed, self._info(action, rule), action))
        if failed is not None:
            verdict = Verdict.REFUSED if _is_refusal(failed) else Verdict.UNASKED
            message = shown(secrecy.rejection(failed.message, failed.redacted, failed.causes))
            return replace(answer, verdict=verdict, message=message)
        if outcome.replan:
            return replace(answer, verdict=Verdict.UNASKED, message="it has changed since it was read; plan again")
        if isinstance(action, Delete | ResourceAction):
            return answer
        stored = outcome.written.get(action.key)
        if stored is None:
            return answer
        changed, added = self._differences(action, stored, plan)
        return replace(answer, changed=changed, added=added)

    def _info(self, action: Action, rule: Rule) -> KindInfo:
        if isinstance(action, ResourceAction):
            return self.cluster.kinds.info(rule.kind)
        return self.cluster.kinds.info(Kind.of(action.live if isinstance(action, Delete) else action.object))

    def _differences(
        self, action: Create | Change, answer: Object, plan: Plan
    ) -> tuple[tuple[StoredField, ...], tuple[str, ...]]:
        """The fields that the server would store with other values than it was sent, and those that it would add to
        what was sent and to what exists."""
        masks, shape = plan.masks, self.cluster.kinds.info(Kind.of(answer)).shape
        stored = _own_fields(answer)
        found = differences(*masks.pair(_own_fields(action.object), stored), shape)
        added = dict.fromkeys(each.path for each in found if each.before is NOTHING)
        if not isinstance(action, Create) and action.live is not None:
            new = differences(*masks.pair(_own_fields(action.live), stored), shape)
            added = dict.fromkeys(each.path for each in new if each.path in added)
        return tuple(StoredField.of(each) for each in found if each.before is not NOTHING), tuple(added)


def _is_in(action: Action, answers: Iterable[Answer]) -> bool:
    return any(each.action is action for each in answers)


def _is_refusal(failed: Failed) -> bool:
    """Whether the operator would get this answer too. Missing permissions are the user's own, and a server that is
    unavailable has decided nothing."""
    return condition_reason(failed.failure) is not None and not failed.verb and NO_DRY_RUN not in failed.message


def _after(before: Plan, after: Plan, refused: Container[ObjectKey]) -> Plan:
    """The plan without refused writes, with what the operator would report of them, and with the deletions of what it
    would recreate."""
    recreated = [each for each in after.actions if isinstance(each, Delete) and each.why == "recreate"]
    return replace(
        before,
        actions=(*(each for each in before.actions if each.key not in refused), *recreated),
        problems=tuple(dict.fromkeys((*after.problems, *before.problems))),
        children=after.children,
        status=after.status,
        conditions=after.conditions,
        events=after.events,
    )


def _needed(failed: Failed, info: KindInfo, action: Action) -> str:
    if failed.verb == IMPERSONATE:
        return f"a dry run is made as the account of the write: grant this user {IMPERSONATE} on {failed.account}"
    whom = f"the ServiceAccount {failed.account}" if failed.account else "this user"
    where = place(action.key.namespace, namespaced=info.namespaced)
    return f"a dry run needs the permissions of the write: grant {whom} {failed.verb} on {info.resource}{where}"


def _own_fields(obj: Object) -> dict[str, Any]:
    """The object without its status and what only the server sets."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in SERVER_METADATA}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}
