"""Loads the project again when its files change.

Digests decide, not events. Editors write a file in pieces, or replace it by a rename; a ConfigMap mount is updated by
replacing its `..data` link, which a watch on the files does not see. So an event in one of the project's folders only
leads to a check, after the files have not changed for a moment, and a project is new if its digest is.

Events can be missing: some file systems send none, a watch ends with its folder, a folder can be replaced together with
its parent, and the number of watches of a machine is limited. So each second the watched folders are compared with
those that exist, and every half minute the files are checked anyway.
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
from ruleop.language.rules import Finding, Place, Project, ProjectErrors, RuleFiles, places

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from watchdog.observers.api import BaseObserver, ObservedWatch

QUIET_PERIOD = 0.15  # seconds without an event before the files are read: one edit is several events
MAX_QUIET_WAIT = 0.6  # seconds after which files that are written all the time are read anyway
CHECK_INTERVAL = 30.0  # seconds; some file systems (network mounts) send no events
FOLDER_INTERVAL = 1.0  # seconds; a folder that replaces another one causes no event in either
# Other events, above all of reads, are ignored. "Modified" of a folder only repeats an event of a file in it.
CHANGES: list[type[FileSystemEvent]] = [
    FileCreatedEvent, FileModifiedEvent, FileAttribEvent, FileClosedEvent, FileMovedEvent, FileDeletedEvent,
    DirCreatedEvent, DirAttribEvent, DirMovedEvent, DirDeletedEvent,
]  # fmt: skip

Identity = tuple[int, int]  # device and inode


class Reloader:
    """`changed` is called with a project of other files than the last, or one that is valid again; `rejected` with the
    errors of an invalid one, when they are new. Both are called on the event loop. `read` loads and checks a project,
    and raises ProjectErrors. `current`: the project in force, which is not read again."""

    def __init__(
        self,
        root: Path,
        *,
        current: Project,
        read: Callable[[RuleFiles], Awaitable[Project]],
        changed: Callable[[Project], None],
        rejected: Callable[[ProjectErrors], None],
        check_interval: float = CHECK_INTERVAL,
    ) -> None:
        self.root = root
        self.project = current
        self.read = read
        self.changed = changed
        self.rejected = rejected
        self.check_interval = check_interval
        self.log = structlog.get_logger()
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._observer: BaseObserver = Observer()
        self._watches: dict[Place, tuple[ObservedWatch, Identity | None]] = {}
        # Identities of the project's folders when their watches were made
        self._identities: tuple[Identity | None, ...] = ()
        self._unwatchable = ""
        self._task: asyncio.Task[None] | None = None
        self._digest_read = ""  # of the files at the last check
        self._reported = ""  # the errors of the last rejected project

    def start(self) -> None:
        self._observer.daemon = True
        self._observer.start()
        self._changed.set()  # changes since the project was loaded caused no event
        self._task = asyncio.create_task(self._follow(), name="reload")

    def _notify(self) -> None:
        """Called by the observer's threads."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._changed.set)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._observer.is_alive():
            self._observer.stop()
            await asyncio.to_thread(self._observer.join, 2)

    async def _follow(self) -> None:
        while True:
            await self._until_change_or_check()
            await self._until_quiet()
            try:
                # Watched first, then read: a change during the read leads to another check.
                await asyncio.to_thread(self._watch)
                await self.check()
            except Exception as error:
                # If this task ended, the old rules would silently stay in force.
                self.log.exception("reload failed with an internal error; keeping the previous rules")
                self._digest_read = ""  # they are loaded again, whether they change or not
                self._reject(
                    ProjectErrors([Finding(Site(str(self.root)), f"cannot be read: {error!r}", "error", "unreadable")])
                )

    async def _until_change_or_check(self) -> None:
        """Waits for an event, for a folder to be replaced, or for the next periodic check."""
        end = self._loop.time() + self.check_interval
        while (left := end - self._loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, FOLDER_INTERVAL)):
                    await self._changed.wait()
                    return
            if self._folder_identities() != self._identities or not all(map(self._is_current, self._watches)):
                return

    async def _until_quiet(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_QUIET_WAIT):
                while self._changed.is_set():
                    self._changed.clear()
                    await asyncio.sleep(QUIET_PERIOD)
        self._changed.clear()  # everything up to here is read now

    # -- watched folders -----------------------------------------------------------------------------------------------

    def _folder_identities(self) -> tuple[Identity | None, ...]:
        """Of the project's folders now: each can be deleted and created again, or be a link to another one."""
        return tuple(_identity(self.root / name) for name in ("", "watches.yaml", "templates", "crds"))

    def _is_current(self, place: Place) -> bool:
        """Whether the watched folder still exists. A watch ends with its folder, and a new folder of the same name can
        have the same inode."""
        watch, identity = self._watches[place]
        alive = any(emitter.watch == watch and emitter.is_alive() for emitter in self._observer.emitters)
        return alive and identity == _identity(place.folder)

    def _watch(self) -> None:
        """Watches the project's folders as they are now, and no others."""
        self._identities = self._folder_identities()
        exists = self.root.is_dir()
        needed = places(self.root) if exists else ()
        for place in [place for place in self._watches if place not in needed or not self._is_current(place)]:
            watch, _ = self._watches.pop(place)
            self._observer.unschedule(watch)
        problem = "" if exists else "no such folder"
        for place in needed:
            if place not in self._watches:
                identity = _identity(place.folder)
                try:
                    handler = _Handler(place, self._notify)
                    watch = self._observer.schedule(
                        handler, str(place.folder), recursive=place.deep, event_filter=CHANGES
                    )
                except OSError as error:
                    problem = error.strerror or str(error)
                else:
                    self._watches[place] = (watch, identity)
        if problem and problem != self._unwatchable:
            message = "cannot watch the folder of the rules; checking it periodically"
            self.log.warning(message, folder=str(self.root), error=problem)
        self._unwatchable = problem

    # -- loading -------------------------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Reads the project if its files changed. The same errors are reported once."""
        files = await asyncio.to_thread(RuleFiles.read, self.root)
        if files.digest == self._digest_read:
            return
        if files.digest != self.project.revision or self._reported:
            await self._load(files)
        self._digest_read = files.digest

    async def _load(self, files: RuleFiles) -> None:
        try:
            project = self.project if files.digest == self.project.revision else await self.read(files)
        except ProjectErrors as errors:
            self._reject(errors)
        else:
            self._reported = ""
            self.project = project
            self.changed(project)

    def _reject(self, errors: ProjectErrors) -> None:
        if str(errors) != self._reported:
            self._reported = str(errors)
            self.rejected(errors)


class _Handler(FileSystemEventHandler):
    def __init__(self, place: Place, notify: Callable[[], None]) -> None:
        self.place = place
        self._notify = notify

    def on_any_event(self, event: FileSystemEvent) -> None:
        if any(path and self.place.concerns(Path(os.fsdecode(path))) for path in (event.src_path, event.dest_path)):
            self._notify()


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
