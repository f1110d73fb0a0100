"""The help of each command ends with an example that the program understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from ruleop.cli.program import COMMANDS, CommandGroup, program


def commands(
    group: CommandGroup = program, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if isinstance(command, CommandGroup):
            yield from commands(command, (*path, name))


ALL = [((), program), *commands()]
NAMED = pytest.mark.parametrize(("path", "command"), ALL, ids=["ruleop " + " ".join(path) for path, _ in ALL])


def lines(example: str) -> Iterator[list[str]]:
    """The command lines of ruleop in a line of a shell."""
    words: list[str] = []
    lexer = shlex.shlex(example, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for word in [*lexer, ";"]:
        if set(word) <= set("&|;<>()"):
            if words[:1] == ["ruleop"]:
                yield words[1:]
            words = []
        else:
            words.append(word)


@NAMED
def test_the_help_of_each_command_ends_with_an_example(path, command, ruleop):
    shown = ruleop(*path, "--help").out
    assert re.search(r"\nExample:\n  .*\bruleop [^\n]+\n$", shown), shown
    assert " ".join(("ruleop", *path)) in shown.splitlines()[-1]


@NAMED
def test_the_command_line_of_an_example_parses(path, command):
    found = list(lines(command.example))
    assert found
    for words in found:
        # With the settings of the program: a command keeps the names of its help option.
        context = click.Context(program, **program.context_settings)
        command, arguments = program, words
        while isinstance(command, CommandGroup):
            _, command, arguments = command.resolve_command(context, arguments)
        assert command.make_context(command.name, list(arguments), parent=context).params


def test_every_command_is_among_them():
    assert {path[0] for path, _ in ALL if path} == set(COMMANDS)


def test_the_command_lines_of_a_shell_line_are_found():
    found = list(lines("ruleop a -f 'x y' | kubectl diff -f - && ruleop b > out & ls"))
    assert found == [["a", "-f", "x y"], ["b"]]
