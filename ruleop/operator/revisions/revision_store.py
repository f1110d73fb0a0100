"""Records which rules are in force, and gives the project of an earlier revision.

Only the leader records, once for each change of the rules: a restart with the same rules writes nothing. Nothing waits
for it, and nothing stops because of it: without permission for the ConfigMap, rules are reconciled all the same.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from ruleop.kubernetes.permissions import STORED, grant, place
from ruleop.language.rules import ProjectErrors
from ruleop.operator.revisions.revision_data import INDEX, Revision, decode, encode, files_of_revision, pack
from ruleop.operator.wire.client.server_errors import ApiError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.language.rules import Project
    from ruleop.operator.revisions.revision_data import Revisions
    from ruleop.operator.rules.process import ReadRules
    from ruleop.operator.server_api import StoredData

FIRST_RETRY: Final = 1.0  # seconds
MAX_RETRY_INTERVAL: Final = 300.0
SHORT: Final = 12  # characters of a digest in messages


class RevisionStore:
    def __init__(self, store: StoredData, *, now: Callable[[], str], read_rules: ReadRules) -> None:
        """`now`: the time in RFC 3339."""
        self.store = store
        self.now = now
        self.read_rules = read_rules
        self.project: Project | None = None  # the rules in force
        self.log = structlog.get_logger()
        self._changed = asyncio.Event()
        self._reported = ""

    def put_in_force(self, project: Project) -> None:
        self.project = project
        self._changed.set()

    async def run(self) -> None:
        """Records the rules in force, and each change of them."""
        retry_in = FIRST_RETRY
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                is_done = await self.record()
            except ApiError as error:
                is_done = False
                self._report(error)
            if is_done:
                retry_in, self._reported = FIRST_RETRY, ""
            else:
                await asyncio.sleep(retry_in)
                retry_in = min(MAX_RETRY_INTERVAL, retry_in * 2)
                self._changed.set()

    def _report(self, error: ApiError) -> None:
        """Logs each cause once."""
        if str(error) == self._reported:
            return
        self._reported = str(error)
        is_denied = error.problem is Problem.FORBIDDEN
        needed = {"grant": grant("configmaps", place(self.store.key.namespace), STORED)} if is_denied else {}
        self.log.warning("revision of the rules not recorded; will retry", error=str(error), **needed)

    async def load(self) -> Revisions:
        return decode(await self.store.read())

    async def find(self, digest: str) -> Project | None:
        """The project of the revision with this digest (`Project.revision`), with the environment of this process. None
        if it is not kept, or cannot be used any more."""
        project = self.project
        if project is not None and project.revision == digest:
            return project
        files = files_of_revision(await self.load(), digest, project.root if project is not None else "")
        if files is None:
            return None
        try:
            reading = await self.read_rules(files)
        except ProjectErrors as errors:
            self.log.warning("revision of the rules cannot be used", revision=digest[:SHORT], errors=str(errors))
            return None
        reading.errors.cancel()  # it was in force: whatever its checks find, resources of it are as they are
        return reading.project

    async def record(self) -> bool:
        """Records the rules in force, unless they are the latest revision. False if something else wrote the ConfigMap
        meanwhile. Raises ApiError."""
        project = self.project
        if project is None:
            return True
        found = await self.store.read()
        revisions = decode(found)
        if revisions.is_recorded(project.revision):
            return True
        files = await asyncio.to_thread(pack, project.files)
        if files is None:
            self.log.warning("the project is too large: its files are not kept", revision=project.revision[:SHORT])
        recorded = revisions.recorded(Revision(project.revision, self.now(), project.reads_environment), files)
        if recorded == revisions:
            return True
        version = found["metadata"]["resourceVersion"] if found is not None else ""
        written = await self.store.write({INDEX: encode(recorded)}, version, binary=recorded.packed)
        if written is not None:
            self.log.info("revision of the rules recorded", revision=project.revision[:SHORT])
        return written is not None
