"""Follows the project's files, and says when they have become something else.

Digests decide, not events. Editors write a file in pieces, or replace it by a rename; a ConfigMap is swapped by turning its `..data` link,
of which a watch on the files themselves sees nothing. So any event below the project's folder is only a reason to look again, once the
files have been still for a moment, and a project is new when its digest is.

Events may be missing altogether: some file systems give none, a watch ends with its folder, and there are only so many watches on a
machine. So the files are looked at now and then anyway, and each look makes sure that what is watched is the folder that is there now.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from ruleop.rules import Project, ProjectErrors, load_project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from watchdog.observers.api import BaseObserver

STILL = 0.15  # seconds without an event before the files are read: one edit is several events
STILL_AT_MOST = 0.6  # a folder that somebody writes to without end is read all the same
LOOK_ANYWAY = 30.0  # seconds; file systems that give no events exist (some network mounts)
LOOK_FOR_FOLDER = 1.0  # seconds; of a folder that is gone nothing tells that it is there again
READING = frozenset({"opened", "closed_no_write"})  # is no change, and we read ourselves


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
        self._watched: tuple[int, int] | None = None  # device and inode of the folder that is watched
        self._unwatchable = ""
        self._task: asyncio.Task[None] | None = None
        self._said = ""

    def start(self) -> None:
        self._observer.daemon = True
        self._observer.start()
        self._watch_the_folder()
        self._stirred.set()  # what changed since the project was loaded has given no event
        self._task = asyncio.create_task(self._follow(), name="reload")

    def _stir(self) -> None:
        """Called by the observer's thread."""
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
            wait = self.look_anyway if self.root.exists() else min(LOOK_FOR_FOLDER, self.look_anyway)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stirred.wait()
            await self._until_still()
            try:
                self._watch_the_folder()
                await self.look()
            except Exception:
                # A bug, or a file system that fails as nobody thought of. To stop following would be to run old rules for ever, in silence.
                self.log.exception("the rules could not be read again in a way that ruleop did not expect")

    async def _until_still(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STILL_AT_MOST):
                while self._stirred.is_set():
                    self._stirred.clear()
                    await asyncio.sleep(STILL)
        self._stirred.clear()  # whatever it was, it is read now

    def _watch_the_folder(self) -> None:
        """Watches the folder that has the project's name now; it may have been removed and made again, or be a link that was turned."""
        problem = ""
        try:
            found = self.root.stat()
            # A watch ends with its folder, and the next folder may get the old one's number.
            if self._watched == (found.st_dev, found.st_ino) and all(emitter.is_alive() for emitter in self._observer.emitters):
                return
            self._watched = None
            self._observer.unschedule_all()
            self._observer.schedule(_Stirring(self._stir), str(self.root.resolve()), recursive=True)
            self._watched = (found.st_dev, found.st_ino)
        except OSError as error:
            problem = error.strerror or str(error)
            if problem != self._unwatchable:
                self.log.warning(
                    "the folder of the rules cannot be watched; it is looked at now and then", folder=str(self.root), error=problem
                )
        self._unwatchable = problem

    async def look(self) -> None:
        """Reads the files once, beside the event loop: a large project takes its time. Mistakes are told once, not at every look."""
        try:
            project = await asyncio.to_thread(load_project, self.root, environ=self.environ)
        except ProjectErrors as errors:
            if str(errors) != self._said:
                self._said = str(errors)
                self.refused(errors)
            return
        if project.digest != self.digest or self._said:
            self._said = ""
            self.digest = project.digest
            self.changed(project)


class _Stirring(FileSystemEventHandler):
    def __init__(self, stir: Callable[[], None]) -> None:
        self._stir = stir

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type not in READING:
            self._stir()
