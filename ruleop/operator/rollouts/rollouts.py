"""The rules that a custom resource has, by the stored record of its rollout.

Only the stored record decides, never the rules on disk: so the record is written before the first custom resource is
reconciled with new rules, and all processes agree.

Rules of an earlier revision come from memory, or from the revisions that are stored. If they cannot be loaded, because
they are no longer kept, the custom resources that have them are frozen: nothing is written for them until their wave.
The new rules would reach all at once, which is what the author did not want. One that is being deleted does not wait:
it is deleted by the rules on disk."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.planning import choose_rule
from ruleop.planning.rollout import RecordError, RolloutRecord, RolloutRevision, condition_of, decode, encode, member_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project, Rule
    from ruleop.operator.revisions import RevisionStore
    from ruleop.operator.server_api import StoredData
    from ruleop.planning.model.conditions import Condition


# -- rollout store -----------------------------------------------------------------------------------------------------
#
# The ConfigMap `<name>-rollouts`: the record of each watch with `rollout`, under its kind and name.
#
# The leader writes it, and so does `ruleop rollout pause|resume|undo`; resourceVersion keeps them apart. All processes
# of the operator follow it.


def rollouts_key(namespace: str, name: str) -> ObjectKey:
    """The ConfigMap of an operator of this name."""
    return ObjectKey("", "ConfigMap", namespace, f"{name}-rollouts")


def prefix_of(selector: str) -> str:
    """The beginning of the names in the ConfigMap that are those of a process with this selector: each such process has
    rollouts of its own. No kind begins with a digit."""
    return f"0{hashlib.sha256(selector.encode()).hexdigest()[:8]}_" if selector else ""


def is_of(watch: str, prefix: str) -> bool:
    return watch.startswith(prefix) if prefix else not watch.startswith("0")


def watch_key(rule: Rule, prefix: str = "") -> str:
    """The name of a watch in the ConfigMap."""
    return f"{prefix}{rule.kind.versionless}" + (f"_{rule.name}" if rule.name else "")


def kind_of(watch: str) -> GroupKind:
    name = watch.partition("_")[2] if watch.startswith("0") else watch
    kind, _, group = name.partition("_")[0].partition(".")
    return GroupKind(group, kind)


def decode_records(data: Mapping[str, str]) -> dict[str, RolloutRecord]:
    """The records in the ConfigMap. An invalid one, for example after an edit by hand, is left out."""
    records: dict[str, RolloutRecord] = {}
    for watch, text in data.items():
        try:
            records[watch] = decode(text)
        except RecordError as error:
            structlog.get_logger().warning("invalid record of a rollout ignored", watch=watch, error=str(error))
    return records


class RolloutStore:
    def __init__(self, store: StoredData, prefix: str = "") -> None:
        self.store = store
        self.prefix = prefix  # of the records of this process; it leaves others as they are
        self.version = 0  # of the last known content; 0: there is no ConfigMap
        self.data: Mapping[str, str] = {}

    async def read(self) -> dict[str, RolloutRecord]:
        found = await self.store.read()
        if found is None:
            return self.removed()
        if not self.is_new(found["metadata"]["resourceVersion"]):  # an event was faster
            return self._records()
        return self.seen(found)

    def is_new(self, version: str) -> bool:
        return int(version) > self.version

    def seen(self, obj: Object) -> dict[str, RolloutRecord]:
        self.version, self.data = int(obj["metadata"]["resourceVersion"]), obj.get("data") or {}
        return self._records()

    def _records(self) -> dict[str, RolloutRecord]:
        return {watch: each for watch, each in decode_records(self.data).items() if is_of(watch, self.prefix)}

    def removed(self) -> dict[str, RolloutRecord]:
        self.version, self.data = 0, {}
        return {}

    async def write(self, records: Mapping[str, RolloutRecord]) -> bool:
        """Returns when the records are stored; nothing is sent if they are already. False if something else wrote the
        ConfigMap meanwhile, before or after."""
        others = {watch: text for watch, text in self.data.items() if not is_of(watch, self.prefix)}
        data = others | {watch: encode(record) for watch, record in sorted(records.items())}
        if data == self.data:
            return True
        written = await self.store.write(data, str(self.version) if self.version else "")
        if written is None or int(written["metadata"]["resourceVersion"]) < self.version:
            return False
        self.seen(written)
        return True


# -- rollouts ----------------------------------------------------------------------------------------------------------


RETRY_INTERVAL: Final = 60.0  # seconds until a revision that cannot be loaded is looked up again


class RuleChoice(NamedTuple):
    """The rules of one custom resource."""

    rule: Rule | None  # None: no rule matches it
    condition: Condition | None = None  # names its revision
    is_frozen: bool = False  # the rules that it has cannot be loaded


class Rollouts:
    def __init__(self, revisions: RevisionStore, prefix: str = "") -> None:
        self.revisions = revisions
        self.prefix = prefix  # of the records of this process
        self.records: Mapping[str, RolloutRecord] = {}  # as stored, by watch
        self.disk: Project | None = None
        self.projects: dict[RolloutRevision, Project] = {}  # of revisions that differ from the rules on disk
        self._retry_at = 0.0
        self._missing: set[RolloutRevision] = set()  # those that cannot be loaded
        self.log = structlog.get_logger()

    def choose(self, rules: Sequence[Rule], resource: Object) -> RuleChoice:
        """The rule for a custom resource. `rules`: those on disk, of its kind."""
        rule = choose_rule(rules, resource)
        record = (
            self.records.get(watch_key(rule, self.prefix)) if rule is not None and rule.rollout is not None else None
        )
        if rule is None or record is None:
            return RuleChoice(rule)
        uid = resource["metadata"].get("uid") or ""
        revision, condition = record.revision_of(member_of(uid)), condition_of(record, uid)
        if self.disk is not None and revision.is_same(RolloutRevision(rule.revision, self.disk.revision)):
            return RuleChoice(rule, condition)
        if (project := self.projects.get(revision)) is not None:
            return RuleChoice(choose_rule(project.rules, resource), condition)
        if resource["metadata"].get("deletionTimestamp"):
            return RuleChoice(rule)
        return RuleChoice(None, condition, is_frozen=True)

    # -- the rules on disk ---------------------------------------------------------------------------------------------

    def put_in_force(self, project: Project) -> None:
        """Called before anything is reconciled with the new rules on disk: from now on they are the target, and the
        ones before are kept as long as a custom resource may have them."""
        before, self.disk = self.disk, project
        if before is None:
            return
        known = {watch_key(rule, self.prefix): rule for rule in before.rules}
        adopted: dict[str, RolloutRecord] = {}
        for rule in project.rules:
            if rule.rollout is None or (old := known.get(watch_key(rule, self.prefix))) is None:
                continue
            revision = RolloutRevision(old.revision, before.revision)
            record = self.records.get(watch_key(rule, self.prefix))
            if record is None:  # the edit adds `rollout`
                record = adopted[watch_key(rule, self.prefix)] = RolloutRecord.complete(revision)
            for each in (revision, *record.revisions):
                if each.rule == old.revision:
                    self.projects[each] = before
        self.records = {**self.records, **adopted}

    def rules_of(self, kind: GroupKind) -> Iterator[Rule]:
        """The rules of earlier revisions that custom resources of a kind may have."""
        on_disk = {rule.revision for rule in self.disk.rules} if self.disk is not None else set()
        found = {rule.revision: rule for project in self.projects.values() for rule in project.rules}
        for revision, rule in found.items():
            if rule.kind.versionless == kind and revision not in on_disk:
                yield rule

    # -- earlier revisions ---------------------------------------------------------------------------------------------

    async def load_earlier(self) -> bool:
        """Loads the revisions that custom resources may have, and drops the others. Whether any was loaded or dropped.
        Raises RuleopError."""
        before = set(self.projects)
        for revision in self._needed() - before:
            if (project := await self._load(revision)) is not None:
                self.projects[revision] = project
        needed = self._needed()  # the records or the rules may have changed meanwhile
        self.projects = {each: project for each, project in self.projects.items() if each in needed}
        self._missing &= needed
        return before != self.projects.keys()

    def _needed(self) -> set[RolloutRevision]:
        on_disk = {rule.revision for rule in self.disk.rules} if self.disk is not None else set()
        return {each for record in self.records.values() for each in record.revisions if each.rule not in on_disk}

    async def _load(self, revision: RolloutRevision) -> Project | None:
        now = time.monotonic()
        if revision in self._missing and now < self._retry_at:
            return None
        project = await self.revisions.find(revision.project)
        if project is not None:
            self._missing.discard(revision)
            return project
        self._retry_at = now + RETRY_INTERVAL
        if revision not in self._missing:
            self._missing.add(revision)
            self.log.error(
                "earlier rules cannot be loaded; the CRs that have them are not reconciled until their wave",
                revision=revision.short,
            )
        return None

    @property
    def frozen(self) -> frozenset[RolloutRevision]:
        """Revisions that custom resources have and that cannot be loaded."""
        return frozenset(self._missing)
