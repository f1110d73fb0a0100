"""The commands. One module each, imported when it is called; what they do lives in the other rooms."""

from __future__ import annotations

import sys


def main() -> None:
    """The program `ruleop`."""
    try:
        # Imported here so that an interrupt while it loads is an interrupt, not a traceback.
        from ruleop.cli.program import program  # noqa: PLC0415

        program.main(prog_name="ruleop")
    except KeyboardInterrupt:
        sys.exit(130)
