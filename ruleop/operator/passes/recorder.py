"""`ruleop run --record DIR`: writes each plan of a pass to a file, which `ruleop plan --replay` plans again.

It is for bug reports, and slows the operator down. Only the last files of each custom resource are kept.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from ruleop.planning.recording import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.planning import Observed

KEPT: Final = 50
"""Maximum number of files of one custom resource."""


class PassFiles:
    """The files of all passes. Only their owner can read them, because custom resources may contain secrets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        self._files: dict[ObjectKey, deque[Path]] = {}
        self._failed = False
        self.log = structlog.get_logger()

    def recorder(self, observed: Observed) -> Recorder:
        """Of one pass."""
        return Recorder(observed)

    def write(self, key: ObjectKey, document: Mapping[str, Any]) -> None:
        self._count += 1
        parts = (key.kind, key.group, key.namespace, key.name, f"{self._count:06}")
        path = self.folder / ("_".join(part for part in parts if part) + ".json")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        except (OSError, TypeError) as error:
            if not self._failed:
                self.log.warning("pass not recorded", file=str(path), error=str(error))
            self._failed = True
            return
        self._failed = False
        files = self._files.setdefault(key, deque())
        files.append(path)
        if len(files) > KEPT:
            with contextlib.suppress(OSError):
                files.popleft().unlink()
