"""The rollouts of an operator in a cluster, and commands for them: they change the record, which the operator follows.

A command needs permission to update the ConfigMap of the record, and no operator that runs at the moment. Its write
names the version that it read, so it does not undo a step of the operator.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.operator import CONFIG_MAP
from ruleop.authoring.report import RevisionView, WatchView
from ruleop.errors import RuleopError
from ruleop.language.rules import ProjectErrors, RuleFiles
from ruleop.language.rules.checking import checked
from ruleop.language.rules.loading import build_unchecked
from ruleop.operator.revisions import decode, files_of_revision, revisions_key, unpack
from ruleop.operator.rollouts import RolloutStore, rollouts_key, watch_key
from ruleop.operator.server_api import ServerApi, StoredData
from ruleop.operator.wire.client.client import Client
from ruleop.planning.rollout import SHORT, Refused, RolloutRevision, reverted

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.authoring.live.reading.open_cluster import LiveCluster
    from ruleop.operator.revisions import Revisions
    from ruleop.planning.rollout import RolloutRecord

MAX_ATTEMPTS: Final = 20  # the operator writes a few times a second while a rollout is in progress


class NoRolloutError(RuleopError):
    """There is no such rollout, or the command has no meaning for it."""


def _store(cluster: LiveCluster) -> RolloutStore:
    operator = cluster.operator
    if operator.problem:
        raise NoRolloutError(operator.problem)
    api = ServerApi(Client(cluster.connection.session), cluster.connection.discovery.resource)
    return RolloutStore(StoredData(api, rollouts_key(operator.namespace, operator.name)))


async def read_rollouts(cluster: LiveCluster, watch: str = "") -> dict[str, RolloutRecord]:
    """The records by watch; with `watch`, only that of this name. Raises RuleopError."""
    return _selected(await _store(cluster).read(), watch)


async def change_rollout(
    cluster: LiveCluster, watch: str, change: Callable[[RolloutRecord], RolloutRecord], *, to: str = ""
) -> tuple[str, RolloutRecord]:
    """Changes the record of a watch. Without a name there has to be only one. `to`: instead, reverts it to the revision
    whose number begins with this. Raises RuleopError."""
    store = _store(cluster)
    for _ in range(MAX_ATTEMPTS):
        records = await store.read()
        found = _selected(records, watch)
        if len(found) != 1:
            raise NoRolloutError(f"several watches have `rollout`; name one of {', '.join(sorted(found))}")
        ((name, record),) = found.items()
        try:
            changed = reverted(record, await _find_revision(cluster, name, record, to)) if to else change(record)
        except Refused as refused:
            raise NoRolloutError(f"{name}: {refused}") from None
        if changed.undo and not record.undo and not await _is_kept(cluster, changed.target):
            raise NoRolloutError(f"{name}: the rules of revision {changed.target.short} are not kept; edit the rules")
        if await store.write({**records, name: changed}):
            return name, changed
    raise NoRolloutError("the record was changed by somebody else each time; repeat the command")


async def _find_revision(cluster: LiveCluster, watch: str, record: RolloutRecord, number: str) -> RolloutRevision:
    """The revision of a watch whose number begins with this; as in the record, if that has it. Raises
    NoRolloutError."""
    revisions = await _read_revisions(cluster)
    found = list(dict.fromkeys(each.digest for each in revisions.index if each.digest.startswith(number.lower())))
    if len(found) != 1:
        which = f"{len(found)} revisions begin with {number}: write more of it" if found else f"no revision {number}"
        raise NoRolloutError(f"{which}; `ruleop rollout history` lists them")
    short = found[0][:SHORT]
    try:
        files = files_of_revision(revisions, found[0])
        project = build_unchecked(files, environ=_Environment()) if files is not None else None
        if project is not None:
            checked(RuleFiles.of(project), environ=_Environment())
    except ProjectErrors as errors:
        raise NoRolloutError(f"the rules of revision {short} have mistakes: {errors.mistakes[0]}") from None
    if project is None:
        raise NoRolloutError(f"the rules of revision {short} are not kept; edit the rules")
    title = watch.partition("_")[2] if watch.startswith("0") else watch
    rule = next((each for each in project.rules if watch_key(each) == title), None)
    if rule is None:
        raise NoRolloutError(f"revision {short} has no watch {title.replace('_', '/')}")
    recorded = [*record.revisions, *filter(None, (record.previous, record.rejected))]
    known = (each for each in recorded if found[0] in {each.number, each.project} and each.project in revisions.packed)
    return next(known, RolloutRevision(rule.revision, found[0]))


class _Environment(Mapping[str, str]):
    """Environment variables, of which each exists. The digest of a rule, for which this is, does not depend on their
    values, and the operator has others."""

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name, "1")

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


async def _read_revisions(cluster: LiveCluster) -> Revisions:
    return decode(
        await cluster.reader.get(CONFIG_MAP, revisions_key(cluster.operator.namespace, cluster.operator.name))
    )


async def read_revisions(cluster: LiveCluster, watch: str = "") -> list[RevisionView]:
    """The revisions of the rules, the newest first. Of the watches with `rollout` only that of this name, if there is
    one. Raises RuleopError."""
    records = await _store(cluster).read()
    records = _selected(records, watch) if watch else records
    revisions = await _read_revisions(cluster)
    files = {digest: unpack(packed) for digest, packed in revisions.packed.items()}
    last = {each.digest: number for number, each in enumerate(revisions.index)}
    found = []
    for number, each in enumerate(revisions.index):
        before = files.get(revisions.index[number - 1].digest) if number else None
        watches = tuple(
            WatchView(name.replace("_", "/"), count)
            for name, record in sorted(records.items())
            for revision, count in record.counts().items()
            if revision.number == each.digest and last[each.digest] == number
        )
        changed = _changed(before, files.get(each.digest))
        found.append(RevisionView(each.digest, each.since, each.digest in revisions.packed, changed, watches))
    return found[::-1]


def _changed(before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> tuple[str, ...] | None:
    if before is None or after is None:
        return None
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


async def _is_kept(cluster: LiveCluster, revision: RolloutRevision) -> bool:
    """Whether the operator can load these rules. It would reconcile no CR with rules that it does not have."""
    return revision.project in (await _read_revisions(cluster)).packed


def _selected(records: Mapping[str, RolloutRecord], watch: str) -> dict[str, RolloutRecord]:
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
