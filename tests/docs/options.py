"""The tables of docs/reference/options.md: the options of all commands, as their `--help` prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import click

from ruleop.cli.program import program

Record = tuple[str, str]
SHARED = 3
"""The number of commands from which an option with the same words is listed once."""
MOST = 8


def options() -> str:
    records = {context.command_path.removeprefix("ruleop "): _records(context) for context in _commands(_root())}
    counts = Counter(record for each in records.values() for record in each)
    shared = [record for record, count in counts.items() if count >= SHARED]
    rows = (
        (name, "most" if counts[name, text] > MOST else ", ".join(_having(records, (name, text))), text)
        for name, text in shared
    )
    parts = [f"## Options of several commands\n\n{_table(('option', 'of', ''), rows)}"]
    for command, own in records.items():
        if rest := [record for record in own if record not in shared]:
            parts.append(f"## {command}\n\n{_table(('option', ''), rest)}")
    return "\n" + "\n".join(parts) + "\n"


def _root() -> click.Context:
    return click.Context(program, info_name="ruleop", **program.context_settings)


def _commands(context: click.Context) -> Iterator[click.Context]:
    command = context.command
    if not isinstance(command, click.Group):
        yield context
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _commands(click.Context(found, info_name=name, parent=context))


def _records(context: click.Context) -> list[Record]:
    found = [
        each.get_help_record(context)
        for each in context.command.get_params(context)
        if isinstance(each, click.Option) and "--help" not in each.opts
    ]
    return [(name, text.replace("  [", " [")) for name, text in filter(None, found)]


def _having(records: dict[str, list[Record]], record: Record) -> Iterator[str]:
    return (f"`{command}`" for command, own in records.items() if record in own)


def _table(head: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [tuple(head), *(("---",) * len(tuple(head)),), *((f"`{name}`", *rest) for name, *rest in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
