"""Follows the project's files, and says when they have become something else.

Digests decide, not events. Editors write a file in pieces, or replace it by a rename; a ConfigMap is swapped by turning its `..data` link,
of which a watch on the files themselves sees nothing. So an event in one of the project's places is only a reason to look again, once the
files have been still for a moment, and a project is new when its digest is.

Events may be missing altogether: some file systems give none, a watch ends with its folder, a folder is replaced together with the one
around it, and there are only so many watches on a machine. So each second it is made sure that the folders that are watched are the ones
that are there, and now and then the files are looked at anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from watchdog.events import (
    DirAttribEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileAttribEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from ruleop.errors import Site
from ruleop.rules import Finding, Place, Project, ProjectErrors, files_digest, load_project, places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from watchdog.observers.api import BaseObserver, ObservedWatch

STILL = 0.15  # seconds without an event before the files are read: one edit is several events
STILL_AT_MOST = 0.6  # files that somebody writes to without end are read all the same
LOOK_ANYWAY = 30.0  # seconds; file systems that give no events exist (some network mounts)
LOOK_AT_FOLDERS = 1.0  # seconds; a folder that is put in the place of another gives no event in either
# Of all else, reading above all, nobody is woken. A folder's "modified" only repeats what happened to a file in it.
CHANGES: list[type[FileSystemEvent]] = [
    FileCreatedEvent, FileModifiedEvent, FileAttribEvent, FileClosedEvent, FileMovedEvent, FileDeletedEvent,
    DirCreatedEvent, DirAttribEvent, DirMovedEvent, DirDeletedEvent,
]  # fmt: skip

Identity = tuple[int, int]  # device and inode


class Reloader:
    """Reads the project anew when its files change. `changed` gets a project with another digest than the last, or one that can be loaded
    again; `refused` the mistakes of one that cannot, each time that they are others. Both are called on the event loop."""

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        *,
        current: str,
        changed: Callable[[Project], None],
        refused: Callable[[ProjectErrors], None],
        look_anyway: float = LOOK_ANYWAY,
    ) -> None:
        self.root = root
        self.environ = environ
        self.digest = current
        self.changed = changed
        self.refused = refused
        self.look_anyway = look_anyway
        self.log = structlog.get_logger()
        self._stirred = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._observer: BaseObserver = Observer()
        self._watches: dict[Place, tuple[ObservedWatch, Identity | None]] = {}
        self._named: tuple[Identity | None, ...] = ()  # what had the names of the project's folders when their places were found
        self._unwatchable = ""
        self._task: asyncio.Task[None] | None = None
        self._read = ""  # the digest of the files as they were last looked at
        self._said = ""

    def start(self) -> None:
        self._observer.daemon = True
        self._observer.start()
        self._stirred.set()  # what changed since the project was loaded has given no event
        self._task = asyncio.create_task(self._follow(), name="reload")

    def _stir(self) -> None:
        """Called by the observer's threads."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._stirred.set)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._observer.is_alive():
            self._observer.stop()
            await asyncio.to_thread(self._observer.join, 2)

    async def _follow(self) -> None:
        while True:
            await self._until_stirred()
            await self._until_still()
            try:
                # Watched first, then read: what changes while it is read is looked at once more.
                await asyncio.to_thread(self._watch)
                await self.look()
            except Exception as error:
                # A bug, or a file system that fails as nobody thought of. To stop following would be to run old rules for ever, in silence.
                self.log.exception("the rules could not be read again in a way that ruleop did not expect")
                self._read = ""  # they are looked at again, whether they change or not
                self._refuse(ProjectErrors([Finding(Site(str(self.root)), f"cannot be read: {error!r}", "error", "unreadable")]))

    async def _until_stirred(self) -> None:
        """Until an event, until a folder is another, or until it is time to look anyway."""
        end = self._loop.time() + self.look_anyway
        while (left := end - self._loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_AT_FOLDERS)):
                    await self._stirred.wait()
                    return
            if self._names() != self._named or not all(map(self._stands, self._watches)):
                return

    async def _until_still(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STILL_AT_MOST):
                while self._stirred.is_set():
                    self._stirred.clear()
                    await asyncio.sleep(STILL)
        self._stirred.clear()  # whatever it was, it is read now

    # -- what is watched -----------------------------------------------------------------------------------------------------------------

    def _names(self) -> tuple[Identity | None, ...]:
        """What has the names of the project's folders now: each may be removed and made again, or be a link that was turned."""
        return tuple(_identity(self.root / name) for name in ("", "watches.yaml", "templates", "crds"))

    def _stands(self, place: Place) -> bool:
        """Whether the folder that is watched is the one that is there. A watch ends with its folder, whose number the next may get."""
        watch, identity = self._watches[place]
        alive = any(emitter.watch == watch and emitter.is_alive() for emitter in self._observer.emitters)
        return alive and identity == _identity(place.folder)

    def _watch(self) -> None:
        """Watches the project's places as they are now, and no others."""
        self._named = self._names()
        there = self.root.is_dir()
        wanted = places(self.root) if there else ()
        for place in [place for place in self._watches if place not in wanted or not self._stands(place)]:
            watch, _ = self._watches.pop(place)
            self._observer.unschedule(watch)
        problem = "" if there else "there is no such folder"
        for place in wanted:
            if place not in self._watches:
                identity = _identity(place.folder)
                try:
                    handler = _Stirring(place, self._stir)
                    watch = self._observer.schedule(handler, str(place.folder), recursive=place.deep, event_filter=CHANGES)
                except OSError as error:
                    problem = error.strerror or str(error)
                else:
                    self._watches[place] = (watch, identity)
        if problem and problem != self._unwatchable:
            message = "the folder of the rules cannot be watched; it is looked at now and then"
            self.log.warning(message, folder=str(self.root), error=problem)
        self._unwatchable = problem

    # -- what is read --------------------------------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Reads the files once, beside the event loop: a large project takes its time. Mistakes are told once, not at every look."""
        read = await asyncio.to_thread(files_digest, self.root)
        if read == self._read:
            return
        try:
            project = await asyncio.to_thread(load_project, self.root, environ=self.environ)
        except ProjectErrors as errors:
            self._refuse(errors)
        else:
            if project.digest != self.digest or self._said:
                self._said = ""
                self.digest = project.digest
                self.changed(project)
        self._read = read

    def _refuse(self, errors: ProjectErrors) -> None:
        if str(errors) != self._said:
            self._said = str(errors)
            self.refused(errors)


class _Stirring(FileSystemEventHandler):
    def __init__(self, place: Place, stir: Callable[[], None]) -> None:
        self.place = place
        self._stir = stir

    def on_any_event(self, event: FileSystemEvent) -> None:
        if any(path and self.place.concerns(Path(os.fsdecode(path))) for path in (event.src_path, event.dest_path)):
            self._stir()


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
