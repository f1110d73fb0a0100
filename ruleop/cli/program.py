"""The program around the commands: their list, their exit statuses and their error messages.

Exit status: 0 success, 1 failure (such as mistakes in a project), 2 wrong usage or an unreadable project, 130
interrupted. A command returns its status. An exception becomes a message that a person can act on; `--debug` shows a
traceback too.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from ruleop.errors import RuleopError, traceback_lines
from ruleop.nearest import did_you_mean
from ruleop.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

DONE: Final = 0
NO: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130

DEBUG: Final = "RULEOP_DEBUG"

F = TypeVar("F", bound=Callable[..., Any])

COMMANDS: Final = {
    "check": "Check a project for mistakes, without a cluster.",
    "cluster": "Run an API server in memory, for any client.",
    "dev": "Run the operator with a cluster in memory, and show a tree.",
    "explain": "Explain why a custom resource of a cluster is as it is.",
    "generate": "Generate what a cluster needs: CRDs, roles, manifests, a chart.",
    "history": "Show what changed on a custom resource of a cluster, and when.",
    "init": "Make a new project in a folder.",
    "plan": "Show what one reconcile of a custom resource would do.",
    "recover": "Recover children after the operator's key was lost.",
    "rename": "Give an operator of a cluster another name.",
    "render": "Print the children of a custom resource as YAML.",
    "rollout": "Show and steer the waves of an edit of the rules in a cluster.",
    "run": "Run the operator against a cluster.",
    "test": "Run the tests of a project.",
    "version": "Print the versions of ruleop, Python and the client library.",
}
"""The commands with their line in `ruleop --help`, which therefore need not import them."""
OF_OPERATORS: Final = ("recover", "rename", "rollout")


class UsageError(RuleopError):
    """Wrong usage of a command. The message is printed as it is."""


def write_to(stream: TextIO, text: str) -> None:
    """Writes to a stream. A closed pipe (`ruleop render | head`) does not change the exit status."""
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:  # the locale cannot encode a character of it
            stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
        stream.flush()
    except OSError as error:
        _discard(stream)
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"the output cannot be written: {error.strerror}") from None


def _discard(stream: TextIO) -> None:
    """The rest of the buffer, which would fail again when Python exits, and change the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_COMPLETED: Final = {"DIR": "dir", "FILE": "file", "PATH": "file"}
"""The kind of file that a shell completes as the value of an option, by the option's metavar."""


class PathText(click.types.StringParamType):
    """A path, taken as it is: the commands check it. Shells complete it as a file or a folder."""

    def __init__(self, what: str) -> None:
        self._what = what

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - of click
        param: click.Parameter,  # noqa: ARG002 - of click
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self._what)]


class Command(click.Command):
    """A command whose help ends with an example, and goes to stdout in the same way as other output."""

    def __init__(self, *args: Any, example: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.example = example
        for parameter in self.params:
            if parameter.metavar in _COMPLETED and parameter.type is click.STRING:
                parameter.type = PathText(_COMPLETED[parameter.metavar])

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _help
        return option

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - of click
        with formatter.section("Example"):
            formatter.write(f"{'':>{formatter.current_indent}}{self.example}\n")


def _help(context: click.Context, _option: click.Parameter, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        write_to(sys.stdout, context.get_help() + "\n")
        context.exit()


def _version(context: click.Context, _option: click.Parameter, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        command = program.get_command(context, "version")
        assert command is not None
        context.invoke(command)
        context.exit()


def output_option(*formats: str) -> Callable[[F], F]:
    """The option `-o`; the first format is the default."""
    return click.option(
        "-o",
        "output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Output format.",
    )


class CommandGroup(Command, click.Group):
    """A command with commands of its own: those of its module, or of modules of `ruleop.cli` that are imported when
    they are needed.

    `lines` has the commands, each with its line in the help. The command `a` is `command` of the module `a`, or what
    `homes` says.
    """

    def __init__(
        self, *args: Any, lines: Mapping[str, str], homes: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._lines = lines
        self._homes = homes or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - of click
        return list(self._lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands or cmd_name not in self._lines:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._homes.get(cmd_name, f"{cmd_name}.command").partition(".")
        command: click.Command = getattr(importlib.import_module(f"ruleop.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - of click
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lines.items()))

    def resolve_command(
        self,
        ctx: click.Context,
        args: list[str],
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        # A shell that completes a line parses it as far as it goes, without errors.
        if name not in self._lines and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"unknown command {name!r}{did_you_mean(name, self._lines)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of the commands, without importing them, and then the options."""
        items = [CompletionItem(name, help=line) for name, line in self._lines.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


class Program(CommandGroup):
    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        extra["standalone_mode"] = False  # exit statuses are set below, not by click
        sys.exit(self._ended(list(args) if args is not None else sys.argv[1:], prog_name or "ruleop", extra))

    def _ended(self, args: list[str], name: str, extra: dict[str, Any]) -> int:
        try:
            status = super().main(args, name, **extra)
        except (KeyboardInterrupt, click.Abort):
            return INTERRUPTED
        except click.exceptions.NoArgsIsHelpError as error:
            _print_error(error.format_message())
            return UNUSABLE
        except click.ClickException as error:
            _print_error(_usage_message(error))
            return UNUSABLE
        except RuleopError as error:
            if error.__cause__ is not None and _debugs(args):
                _print_error("\n".join(traceback_lines(error.__cause__)))
            _print_error(f"ruleop: {error}")
            return UNUSABLE if isinstance(error, UsageError) else NO
        except Exception as error:  # noqa: BLE001 - any other exception is an internal error
            return _internal_error(error, args)
        return status if isinstance(status, int) else DONE


@click.group(
    cls=Program,
    lines=COMMANDS,
    homes={"history": "explain.history_command", **{name: f"operators.{name}_command" for name in OF_OPERATORS}},
    example="ruleop init blog && cd blog && ruleop dev --apply examples/",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="The same as `ruleop version`.",
)
def program() -> None:
    """A Kubernetes operator without code: rules and templates turn custom resources into child resources."""


def _print_error(text: str) -> None:
    try:
        click.echo(printable_lines(text), err=True)
    except OSError:  # stderr is closed or full; the exit status remains
        _discard(sys.stderr)


def _debugs(args: list[str]) -> bool:
    return bool(os.environ.get(DEBUG)) or "--debug" in args


def _internal_error(error: Exception, args: list[str]) -> int:
    if _debugs(args):
        _print_error("\n".join(traceback_lines(error)))
    else:
        _print_error(
            f"ruleop: internal error ({type(error).__name__}); your project is not the cause. "
            "Please report it with the command and its output with --debug."
        )
    return UNUSABLE


def _usage_message(error: click.ClickException) -> str:
    """An error of click in ruleop's form: the command, one sentence, and where to find help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ruleop"
    return f"{path}: {_sentence(error, context)}\nTry: {path} --help"


def _sentence(error: click.ClickException, context: click.Context | None) -> str:
    parameter = getattr(error, "param", None)
    if isinstance(parameter, click.Argument):
        option = parameter.metavar
    else:
        option = parameter.opts[0] if parameter is not None and parameter.opts else getattr(error, "option_name", None)
    name = option or getattr(error, "param_hint", None) or ""
    if isinstance(error, click.NoSuchOption):
        known = [option for each in (context.command.params if context else ()) for option in each.opts]
        return f"unknown option {error.option_name}{did_you_mean(error.option_name, [*known, '--help'])}"
    if isinstance(error, click.BadOptionUsage):
        return f"{name} needs a value" if "requires an argument" in error.message else f"{name}: {error.message}"
    if isinstance(error, click.MissingParameter):
        return f"{name} is missing: name a file of custom resources" if name == "-f" else f"{name} is missing"
    if isinstance(error, click.BadParameter):
        return f"{name}: {error.message.rstrip('.')}"
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]
