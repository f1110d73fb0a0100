"""Changes of pages for their viewers, as server-sent events.

A viewer gets the changing part of its page again after a change, at most once a second. It is rendered once for all
viewers of the same URL. Without viewers, nothing is subscribed to and nothing is done.

All pages together use at most a small share of the time of the loop: after each rendering there is a pause in
proportion to the CPU time that it took, however many custom resources change and however many viewers there are.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import structlog

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator

    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.operator.manager.manager import Manager
    from ruleop.operator.wire.watch.store import Store, StoreChange

PERIOD: Final = 1.0  # seconds between two renderings of a page
MAX_PAUSE: Final = 15.0  # seconds after a rendering, whatever it took
MAX_VIEWERS: Final = 40

T = TypeVar("T")
Render: TypeAlias = "Callable[[str], Coroutine[Any, Any, PageFragment]]"
log = structlog.get_logger(__name__)


class TooManyViewers(Exception):  # noqa: N818 - an answer to a request
    """There are as many viewers as are allowed."""


@dataclass(slots=True, eq=False)
class Viewer:
    """One open connection. What it has not taken yet is replaced by what is newer."""

    html: str | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def give(self, html: str) -> None:
        self.html = html
        self.news.set()

    async def next(self) -> str:
        await self.news.wait()
        self.news.clear()
        assert self.html is not None
        return self.html


class Metered(Generic[T]):
    """A coroutine whose CPU time is measured: of its own steps, not of what else the loop does while it waits."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self.seconds = 0.0
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        step = partial(self._coroutine.send, None)
        while True:
            start = time.thread_time()
            try:
                waits = step()
            except StopIteration as end:
                found: T = end.value
                return found
            finally:
                self.seconds += time.thread_time() - start
            try:
                yield waits
            except BaseException as error:  # noqa: BLE001 - the coroutine's own affair, such as its cancellation
                step = partial(self._coroutine.throw, error)
            else:
                step = partial(self._coroutine.send, None)


@dataclass(slots=True)
class _Watched:
    """A URL that has viewers."""

    about: ObjectKey | None = None  # the custom resource that it is about, once that is known
    label: str = ""  # of the children of that
    html: str = ""
    changed: bool = True
    viewers: list[Viewer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PageFragment:
    """A rendering, and what it is about: a custom resource with the label of its children, or everything."""

    html: str
    about: ObjectKey | None = None
    label: str = ""


class Live:
    def __init__(self, manager: Manager, render: Render, *, share: float) -> None:
        """`render` gives the changing part of the page of a URL. `share`: of the time of the loop, for all pages."""
        self.manager, self.render, self.share = manager, render, share
        self.renderings, self.seconds = 0, 0.0
        self._watched: dict[str, _Watched] = {}
        self._subscribed: dict[Store, Callable[[], None]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def viewers(self) -> int:
        return sum(len(each.viewers) for each in self._watched.values())

    @property
    def subscriptions(self) -> int:
        return len(self._subscribed)

    def join(self, url: str) -> Viewer:
        """A viewer of this URL, until `leave`. Raises TooManyViewers."""
        if self.viewers >= MAX_VIEWERS:
            raise TooManyViewers
        viewer, watched = Viewer(), self._watched.setdefault(url, _Watched())
        watched.viewers.append(viewer)
        watched.changed = True  # the page may be older than the first subscription
        if self._task is None:
            self._subscribe()
            self._task = asyncio.create_task(self._run(), name="page")
        return viewer

    def leave(self, url: str, viewer: Viewer) -> None:
        watched = self._watched[url]
        watched.viewers.remove(viewer)
        if not watched.viewers:
            del self._watched[url]
        if not self._watched:
            self.stop()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for unsubscribe in self._subscribed.values():
            unsubscribe()
        self._subscribed.clear()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            self._subscribe()
            for url in [url for url, watched in self._watched.items() if watched.changed]:
                if (watched := self._watched.get(url)) is not None:
                    await asyncio.sleep(await self._update(url, watched))

    async def _update(self, url: str, watched: _Watched) -> float:
        """Renders a page again for its viewers. Returns the seconds of the pause that follows."""
        watched.changed = False
        work = Metered(self.render(url))
        try:
            fragment = await work
        except Exception:
            log.exception("request failed with an internal error", path=url.partition("?")[0])
            return PERIOD
        finally:
            self.renderings += 1
            self.seconds += work.seconds
        watched.about, watched.label = fragment.about, fragment.label
        if fragment.html != watched.html:
            watched.html = fragment.html
            for viewer in watched.viewers:
                viewer.give(fragment.html)
        return min(MAX_PAUSE, work.seconds * (1 / self.share - 1))

    # -- changes -------------------------------------------------------------------------------------------------------

    def _subscribe(self) -> None:
        """To the stores that there are now: a change of the rules may have replaced them."""
        stores = set(self._stores())
        for store in [each for each in self._subscribed if each not in stores]:
            self._subscribed.pop(store)()
            self._everything_changed()
        for store in stores - self._subscribed.keys():
            self._subscribed[store] = store.subscribe(self._changed)
            self._everything_changed()

    def _stores(self) -> Iterator[Store]:
        for informer in self.manager.known.informers.informers.values():
            yield from informer.stores()

    def _everything_changed(self) -> None:
        for watched in self._watched.values():
            watched.changed = True

    def _changed(self, change: StoreChange) -> None:
        labels = {entry.part_of for entry in (change.old, change.new) if entry is not None}
        for watched in self._watched.values():
            if watched.about is None or watched.about == change.key or (watched.label and watched.label in labels):
                watched.changed = True
