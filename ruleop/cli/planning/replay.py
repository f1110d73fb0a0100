"""`ruleop plan --replay`: plans a recorded pass again, by the rules of this project."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from ruleop.authoring.report import Planned, mistake
from ruleop.cli.outputs.terminal import print_diagnostics
from ruleop.cli.planning.passes import Passes, load_for_planning
from ruleop.cli.program import UsageError
from ruleop.errors import RuleopError
from ruleop.files import read_named, why_unreadable
from ruleop.planning import choose_rule, plan
from ruleop.planning.recording import Replay, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.language.rules import Project, Rule


def replay_pass(folder: str, env_files: Sequence[str], file: str) -> Passes:
    where, project = load_for_planning(folder, env_files)
    replay = _read(file)
    passes = Passes(where, replay.observed.kinds)
    with _reading(file):
        found, rule = None, _rule(project, replay, file)
        if rule is not None:
            found = plan(rule, replay.resource, replay.observed, replay.history, predict_status=replay.predict_status)
        passes.add(Planned(replay.resource, found, rule))
    return passes


@contextlib.contextmanager
def _reading(file: str) -> Iterator[None]:
    """A recording has far too many values to check each of them beforehand."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        why = f"not a recorded pass: a value has another form than in one ({type(error).__name__})"
        raise UsageError(f"{file}: {why}; --debug shows where it was read") from error


def _read(file: str) -> Replay:
    try:
        document = orjson.loads(read_named(Path(file)))
    except OSError as error:
        raise UsageError(f"{file}: {why_unreadable(error)}") from None
    except ValueError as error:
        raise UsageError(f"{file}: not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageError(f"{file}: not a recorded pass")
    try:
        with _reading(file):
            return read_document(document)
    except RuleopError as error:
        raise UsageError(f"{file}: {error}") from None


def _rule(project: Project, replay: Replay, file: str) -> Rule | None:
    """The rule of the recording. If it has changed, the rule that matches now, with a warning."""
    for rule in project.rules:
        if rule.digest == replay.rule_digest:
            return rule
    message = f"the rule {replay.rule} has changed since it was recorded: the current one is used"
    print_diagnostics(mistake(file, message, warning=True))
    return choose_rule(project.rules, replay.resource)
