"""The commands. One module each, imported when it is called; what they do lives in the other rooms."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """The program `ruleop`."""
    if sys.argv[1:2] == ["run"]:
        # The first process of a container does not end by a signal that nobody handles; and until all is imported, half a second goes by.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _open_streams()
    try:
        # Imported here so that an interrupt while it loads is an interrupt, not a traceback.
        from ruleop.cli.program import program  # noqa: PLC0415

        program.main(prog_name="ruleop")
    except KeyboardInterrupt:
        sys.exit(130)


def _open_streams() -> None:
    """A standard stream that was closed is opened so that to use it fails; else the next file that is opened would get its number.
    Complaints are lost: there is nobody to tell."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
