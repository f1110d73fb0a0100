"""Ruleop's own writes: which events of a watch they cause, and how recent a store has to be after them.

**Events.** The watch may deliver a write before its response arrives. Mistaken for a change by others, it would cause a
needless reconcile. So events about an object that is being written are held until the response arrives. Its
resourceVersion identifies ruleop's own write; the other events are reported then. That delays nothing: the CR that they
concern is busy with that write until then.

**Read your own writes.** A CR is not planned from stores that are older than ruleop's last writes for it. A store is
always slightly behind the API server. It contains ruleop's own writes nevertheless: the response to each write is put
into it at once, an object that turned out to be deleted is removed from it at once, and older events of the watch
overwrite neither (`ruleop.operator.wire.watch.store`). Two cases remain:

- A new store (its kind is served again, or the rules changed) holds no responses. Its first list is a consistent read,
  but another API server that is behind may answer it.
- The response to a write was lost. The executor reads the object live and puts it into the store like a response. If
  the write takes effect after that read, the store is older than the write, and this cannot be detected. Each write
  planned from the older state is then rejected by its preconditions (a create by the name, all others by uid and
  resourceVersion), and the object is read live and planned again.

So the resourceVersions of the last responses are kept for each CR until the watch has reached them, and a CR whose
stores are behind waits. The wait has a limit: when a backup of etcd is restored, resourceVersions go back, and the
written objects no longer exist. Time is an argument.
"""

from __future__ import annotations

import contextlib
from dataclasses import field
from typing import TYPE_CHECKING

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.operator.cache.cache import Cache
    from ruleop.operator.queue import Request

FIRST, LONGEST = 0.05, 5.0  # seconds between checks; each change of a watched object triggers one, too
PATIENCE = 60.0  # seconds that a CR waits for its stores


class OwnWrites:
    def __init__(self) -> None:
        self._writes: dict[ObjectKey, OwnWrite] = {}

    @contextlib.contextmanager
    def writing(self, key: ObjectKey) -> Iterator[OwnWrite]:
        """Holds events about an object during a write. The caller adds the version of the response to
        `Write.versions`; without one, all events are reported at the end."""
        write = self._writes.setdefault(key, OwnWrite())
        write.under_way += 1
        try:
            yield write
        finally:
            write.under_way -= 1
            if not write.under_way:
                del self._writes[key]
                for version, report in write.held:
                    if version not in write.versions or not version:
                        report()

    def hold(self, key: ObjectKey, version: int, report: Callable[[], None]) -> bool:
        """Whether the change may be ruleop's own write. If it is not, `report` is called after the write. `version` is
        0 for a deletion."""
        write = self._writes.get(key)
        if write is not None:
            write.held.append((version, report))
        return write is not None


@dataclass(slots=True)
class OwnWrite:
    """The running writes of one object: two CRs with the same child may write it concurrently."""

    under_way: int = 0
    versions: set[int] = field(default_factory=set)
    held: list[tuple[int, Callable[[], None]]] = field(default_factory=list)


@dataclass(slots=True)
class Expectations:
    """The versions that the stores have to reach before one CR is planned again."""

    versions: dict[ObjectKey, str] = field(default_factory=dict)
    _since: float | None = None
    _checks: int = 0

    def wait(self, stores: Cache, now: float) -> float | None:
        """Seconds until the next check; None if the stores are recent enough, or the wait has lasted too long."""
        behind = False
        for key, version in list(self.versions.items()):
            if stores.has_seen(key, version):
                del self.versions[key]
            elif not stores.is_at_least(key, version):
                behind = True
        if not behind:
            self._since, self._checks = None, 0
            return None
        if self._since is None:
            self._since = now
        if now - self._since >= PATIENCE:
            self.versions.clear()
            self._since, self._checks = None, 0
            return None
        self._checks += 1
        return min(LONGEST, FIRST * 2.0 ** min(self._checks - 1, 20))


class ControllerExpectations:
    """The expectations for all CRs of one watched kind."""

    def __init__(self) -> None:
        self._by_request: dict[Request, Expectations] = {}

    def wrote(self, request: Request, versions: Mapping[ObjectKey, str]) -> None:
        if versions:
            self._by_request.setdefault(request, Expectations()).versions.update(versions)

    def wait(self, request: Request, stores: Cache, now: float) -> float | None:
        """Seconds until the next check, while the stores are older than ruleop's last writes; otherwise None."""
        if (expected := self._by_request.get(request)) is None:
            return None
        wait = expected.wait(stores, now)
        if not expected.versions:
            del self._by_request[request]
        return wait

    def remove(self, request: Request) -> None:
        self._by_request.pop(request, None)
