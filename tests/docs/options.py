"""The table of flags of `ruleop run` in docs/cli/operate.md, as its `--help` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from ruleop.cli.run import command

COMMON = {"-C", "--env-file", "--debug", "--help"}
"""Options of all commands, which the page explains elsewhere or which `--help` alone needs."""


def flags() -> str:
    rows = (f"| `{name}` | {text} |" for name, text in _records())
    return "\n".join(["| flag | |", "|---|---|", *rows]) + "\n"


def _records() -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name="ruleop run")
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record is not None and not COMMON.intersection(each.opts):
            name, text = (cell.replace("|", "\\|") for cell in record)
            yield name, re.sub(r"\[env var: \w+(; )?", "[", text).replace("  [", " [").removesuffix(" []")
