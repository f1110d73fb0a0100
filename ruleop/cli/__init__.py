"""The commands. One module each, imported when it is called; what they do lives in the other rooms."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """The program `ruleop`."""
    if sys.argv[1:2] == ["run"]:
        # The first process of a container does not end by a signal that nobody handles; and until all is imported, half a second goes by.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        # Imported here so that an interrupt while it loads is an interrupt, not a traceback.
        from ruleop.cli.program import program  # noqa: PLC0415

        program.main(prog_name="ruleop")
    except KeyboardInterrupt:
        sys.exit(130)
