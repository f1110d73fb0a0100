"""`ruleop generate policy`."""

from __future__ import annotations

from typing import Any

import click

from ruleop.authoring.generate.crd.generated_crds import MARK
from ruleop.authoring.generate.policy.policies import policies, policy_text
from ruleop.authoring.report.plan_text import Span, Tone
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.outputs.terminal import print_diagnostics
from ruleop.cli.program import Command, UsageError


@click.command(cls=Command, example="ruleop generate policy | kubectl apply -f -")
@project_options
@choice_options("name", "namespaces")
@generated_options
@force_option
def command(folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool, **flags: Any) -> int:
    """Print admission policies of the rules of `validate`, so that the API server refuses what breaks them.

    A rule that CEL cannot express exactly stays with the operator alone: a note on stderr has its line and the reason.
    Exit status 0: done. 1: the project has mistakes, or --check found a file that is missing or not current. 2: wrong
    usage, there is no such rule, or a file cannot be read or written.
    """
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
        loaded = load_with_sources(Folder(folder), env_files)
        found, kept = policies(loaded)
    print_diagnostics((Span("note: ", Tone.FAINT), Span(str(each))) for each in kept)
    if not found:
        raise UsageError("no rule of `validate` that CEL can express: there is nothing to generate")
    text = policy_text(found, kept, choices)
    return print_or_write({"policy.yaml": text}, text, out=out, check=check, made=Made("" if force else MARK))
