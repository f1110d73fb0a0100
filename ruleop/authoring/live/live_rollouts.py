"""The rollouts of an operator in a cluster, and commands for them: they change the record, which the operator follows.

A command needs permission to update the ConfigMap of the record, and no operator that runs at the moment. Its write
names the version that it read, so it does not undo a step of the operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.operator import CONFIG_MAP
from ruleop.core.errors import RuleopError
from ruleop.core.rollout.rollout_record import Refused
from ruleop.operator.engine.api.server_api import ServerApi, StoredData
from ruleop.operator.engine.revisions.revision_data import decode, revisions_key
from ruleop.operator.engine.rollouts.rollout_store import RolloutStore, rollouts_key
from ruleop.operator.kube.client.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.authoring.live.reading.open_cluster import LiveCluster
    from ruleop.core.rollout.rollout_record import Record, Revision

MAX_ATTEMPTS: Final = 20  # the operator writes a few times a second while a rollout is in progress


class NoRolloutError(RuleopError):
    """There is no such rollout, or the command has no meaning for it."""


def _store(cluster: LiveCluster) -> RolloutStore:
    operator = cluster.operator
    if operator.problem:
        raise NoRolloutError(operator.problem)
    api = ServerApi(Client(cluster.connection.session), cluster.connection.discovery.resource)
    return RolloutStore(StoredData(api, rollouts_key(operator.namespace, operator.name)))


async def read_rollouts(cluster: LiveCluster, watch: str = "") -> dict[str, Record]:
    """The records by watch; with `watch`, only that of this name. Raises RuleopError."""
    return _selected(await _store(cluster).read(), watch)


async def change_rollout(cluster: LiveCluster, watch: str, change: Callable[[Record], Record]) -> tuple[str, Record]:
    """Changes the record of a watch. Without a name there has to be only one. Raises RuleopError."""
    store = _store(cluster)
    for _ in range(MAX_ATTEMPTS):
        records = await store.read()
        found = _selected(records, watch)
        if len(found) != 1:
            raise NoRolloutError(f"several watches have `rollout`; name one of {', '.join(sorted(found))}")
        ((name, record),) = found.items()
        try:
            changed = change(record)
        except Refused as refused:
            raise NoRolloutError(f"{name}: {refused}") from None
        if changed.undo and not record.undo and not await _is_kept(cluster, changed.target):
            raise NoRolloutError(f"{name}: the rules of revision {changed.target.short} are not kept; edit the rules")
        if await store.write({**records, name: changed}):
            return name, changed
    raise NoRolloutError("the record was changed by somebody else each time; repeat the command")


async def _is_kept(cluster: LiveCluster, revision: Revision) -> bool:
    """Whether the operator can load these rules. It would reconcile no CR with rules that it does not have."""
    key = revisions_key(cluster.operator.namespace, cluster.operator.name)
    return revision.project in decode(await cluster.get(CONFIG_MAP, key)).packed


def _selected(records: Mapping[str, Record], watch: str) -> dict[str, Record]:
    """A watch is named by its kind, with or without its group, and `/NAME` if the kind has several."""
    found = {name: record for name, record in records.items() if not watch or watch in _titles(name)}
    if not found and watch:
        names = f": there are {', '.join(sorted(records))}" if records else ""
        raise NoRolloutError(f"no watch {watch} with `rollout`{names}")
    if not found:
        raise NoRolloutError("no watch of the operator has `rollout`, or it has not started yet")
    return found


def _titles(name: str) -> tuple[str, str]:
    kind, _, watch = name.partition("_")
    more = f"/{watch}" if watch else ""
    return f"{kind}{more}", f"{kind.partition('.')[0]}{more}"
