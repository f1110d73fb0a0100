"""The ConfigMap `<name>-rollouts`: the record of each watch with `rollout`, under its kind and name.

The leader writes it, and so does `ruleop rollout pause|resume|undo`; resourceVersion keeps them apart. All processes of
the operator follow it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import structlog

from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.planning.rollout import RecordError, decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule
    from ruleop.operator.server_api import StoredData
    from ruleop.planning.rollout import RolloutRecord


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
