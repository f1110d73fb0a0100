"""Follows the project's files, and says when they have become something else.

Digests decide, not events. Editors write a file in pieces, or replace it by a rename; a ConfigMap is swapped by turning its `..data` link,
of which a watch on the files themselves sees nothing. So any event below the project's folder is only a reason to look again, once the
files have been still for a moment, and a project is new when its digest is.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from ruleop.rules import Project, ProjectErrors, load_project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from watchdog.observers.api import BaseObserver

STILL = 0.15  # seconds without an event before the files are read: one edit is several events
LOOK_ANYWAY = 30.0  # seconds; file systems that give no events exist (some network mounts)


class Reloader:
    """Reads the project anew when its files change. `changed` gets a project with another digest, `refused` the mistakes of one that cannot
    be loaded; both are called on the event loop."""

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        *,
        current: str,
        changed: Callable[[Project], None],
        refused: Callable[[ProjectErrors], None],
    ) -> None:
        self.root = root
        self.environ = environ
        self.digest = current
        self.changed = changed
        self.refused = refused
        self._stirred = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._observer: BaseObserver | None = None
        self._task: asyncio.Task[None] | None = None
        self._said = ""

    def start(self) -> None:
        handler = _Stirring(self._stir)
        observer = Observer()
        observer.schedule(handler, str(self.root), recursive=True)
        observer.daemon = True
        observer.start()
        self._observer = observer
        self._task = asyncio.create_task(self._follow(), name="reload")

    def _stir(self) -> None:
        """Called by the observer's thread."""
        self._loop.call_soon_threadsafe(self._stirred.set)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._observer is not None:
            observer = self._observer
            observer.stop()
            await asyncio.to_thread(observer.join, 2)

    async def _follow(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_ANYWAY):
                    await self._stirred.wait()
            except TimeoutError:
                pass
            await self._until_still()
            self.look()

    async def _until_still(self) -> None:
        while self._stirred.is_set():
            self._stirred.clear()
            await asyncio.sleep(STILL)

    def look(self) -> None:
        """Reads the files once. Mistakes are told once, not at every look."""
        try:
            project = load_project(self.root, environ=self.environ)
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
        self._lock = threading.Lock()

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type not in {"opened", "closed_no_write"}:  # reading is no change, and we read ourselves
            self._stir()
