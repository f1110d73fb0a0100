"""The commands: one module each, imported when it is called. They parse options and print results."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """The program `ruleop`, which kubectl finds as `kubectl-ruleop`."""
    if sys.argv[1:2] == ["run"]:
        # The first process of a container ignores signals without a handler, and importing takes half a second.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _open_streams()
    try:
        # Imported here, so that an interrupt during the import prints no traceback.
        from ruleop.cli.program import program  # noqa: PLC0415

        is_plugin = sys.argv[0].removesuffix(".exe").endswith("kubectl-ruleop")
        program.main(prog_name="kubectl ruleop" if is_plugin else "ruleop")
    except KeyboardInterrupt:
        sys.exit(130)


def _open_streams() -> None:
    """Opens closed standard streams so that using them fails. Otherwise the next opened file would get their number.

    Errors that go to a closed stderr are lost.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
