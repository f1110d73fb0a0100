"""The program around the commands: which there are, and how each of them ends.

Exit status: 0 done, 1 the answer is no, 2 wrong usage or an unreadable project, 130 interrupted. A command returns its status. Whatever it
raises becomes words that a person can act on; a traceback is shown to those who ask for one.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from ruleop.errors import RuleopError
from ruleop.schema.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

DONE: Final = 0
NO: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130

DEBUG: Final = "RULEOP_DEBUG"

COMMANDS: Final = {
    "check": "Check a project for mistakes, without a cluster.",
    "plan": "Show what one reconcile of a custom resource would do.",
    "render": "Print the children of a custom resource as YAML.",
    "run": "Run the operator against a cluster.",
    "version": "Print the versions of ruleop, Python and the client library.",
}
"""With what `ruleop --help` says of each, so that it need not import them all."""


class UsageError(RuleopError):
    """A command that cannot be carried out as it was given. The message is shown as it is."""


def put(stream: TextIO, text: str) -> None:
    """Whoever reads may stop reading (`ruleop render | head`). That is no error, and does not change what the exit status says."""
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:  # the locale has no word for a sign in it
            stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
        stream.flush()
    except OSError as error:
        # What is still in the buffer would fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"the output cannot be written: {error.strerror}") from None


class Command(click.Command):
    """One whose help is an answer like any other."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _help
        return option


def _help(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        put(sys.stdout, context.get_help() + "\n")
        context.exit()


class Program(Command, click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"ruleop.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"there is no command {name!r}{did_you_mean(name, COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        extra["standalone_mode"] = False  # click's own ways of ending are not ours
        sys.exit(self._ended(list(args) if args is not None else sys.argv[1:], prog_name or "ruleop", extra))

    def _ended(self, args: list[str], name: str, extra: dict[str, Any]) -> int:
        try:
            status = super().main(args, name, **extra)
        except (KeyboardInterrupt, click.Abort):
            return INTERRUPTED
        except click.exceptions.NoArgsIsHelpError as error:
            _complain(error.format_message())
            return UNUSABLE
        except click.ClickException as error:
            _complain(_plain(error))
            return UNUSABLE
        except UsageError as error:
            _complain(f"ruleop: {error}")
            return UNUSABLE
        except RuleopError as error:
            _complain(str(error))
            return NO
        except Exception as error:  # noqa: BLE001 - the last place where a bug can become a sentence
            return _bug(error, args)
        return status if isinstance(status, int) else DONE


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, no_args_is_help=True)
def program() -> None:
    """A Kubernetes operator without code: custom resources become child resources by rules and templates."""


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody can be told; the exit status says it
        click.echo(text, err=True)


def _bug(error: Exception, args: list[str]) -> int:
    if os.environ.get(DEBUG) or "--debug" in args:
        traceback.print_exception(error)
    else:
        _complain(
            f"ruleop: this is a bug of ruleop ({type(error).__name__}), not of your project. Please report it, with the command and what "
            f"`--debug` adds to this message, where you got ruleop from."
        )
    return UNUSABLE


def _plain(error: click.ClickException) -> str:
    """What click says, as we would say it."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ruleop"
    return f"{path}: {_sentence(error, context)}\nTry: {path} --help"


def _sentence(error: click.ClickException, context: click.Context | None) -> str:
    parameter = getattr(error, "param", None)
    option = parameter.opts[0] if parameter is not None and parameter.opts else getattr(error, "option_name", None)
    name = option or getattr(error, "param_hint", None) or ""
    if isinstance(error, click.NoSuchOption):
        known = [option for each in (context.command.params if context else ()) for option in each.opts]
        return f"there is no option {error.option_name}{did_you_mean(error.option_name, [*known, '--help'])}"
    if isinstance(error, click.BadOptionUsage):
        return f"{name} needs a value" if "requires an argument" in error.message else f"{name}: {error.message}"
    if isinstance(error, click.MissingParameter):
        return f"{name} is missing: name the file of a custom resource" if name == "-f" else f"{name} is missing"
    if isinstance(error, click.BadParameter):
        return f"{name}: {error.message.rstrip('.')}"
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]
