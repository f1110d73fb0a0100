"""Read your own writes: a CR is not planned from stores that are older than what ruleop wrote for it last.

A store is always a little behind the server. What was written is in it all the same, because the answer to each write
is put there at once, what was found gone is taken out at once, and neither is overtaken by what the watch still has to
tell (`ruleop.kube.watch.store`). What remains:

- A store that is made anew (its kind came back, the rules changed) knows nothing of answers. Its first list is a
  consistent read, but what answers it may be another API server, which is behind.
- A write whose answer was lost. It is read live by the executor, and what was read is put into the store like an
  answer. If it takes effect later still, the store is older than it, and nobody knows; then each write made from the
  older state is refused by its preconditions (a create by the name, all others by uid and resourceVersion), read live,
  and planned again.

So the versions of the last answers are kept for each CR until the watch itself has reached them, and a CR whose stores
are behind waits. Nobody waits for ever: resourceVersions go back when a backup is restored, and then what was written
is gone. Time is an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import ObjectKey

FIRST, LONGEST = 0.05, 5.0  # seconds between looks; each change that comes brings one about anyway
PATIENCE = 60.0


class Stores(Protocol):
    def is_at_least(self, key: ObjectKey, version: str) -> bool:
        """Whether the object's store holds that version of it, or knows what became of it since. True where no store
        would hold it."""
        ...

    def has_seen(self, key: ObjectKey, version: str) -> bool:
        """Whether its watch has got that far; what is then in the store came from there, and stays."""
        ...


class Expectations:
    """Of one CR."""

    __slots__ = ("_looks", "_since", "_versions")

    def __init__(self) -> None:
        self._versions: dict[ObjectKey, str] = {}
        self._since: float | None = None
        self._looks = 0

    def __bool__(self) -> bool:
        return bool(self._versions)

    def wrote(self, versions: Mapping[ObjectKey, str]) -> None:
        self._versions.update(versions)

    def wait(self, stores: Stores, now: float) -> float | None:
        """Seconds until the next look; None if nothing is to be waited for (any longer)."""
        behind = False
        for key, version in list(self._versions.items()):
            if stores.has_seen(key, version):
                del self._versions[key]
            elif not stores.is_at_least(key, version):
                behind = True
        if not behind:
            self._since, self._looks = None, 0
            return None
        if self._since is None:
            self._since = now
        if now - self._since >= PATIENCE:
            self._versions.clear()
            self._since, self._looks = None, 0
            return None
        self._looks += 1
        return min(LONGEST, FIRST * 2.0 ** min(self._looks - 1, 20))
