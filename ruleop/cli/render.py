"""`ruleop render`: the children of a custom resource as YAML or JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ruleop.authoring.report import mistake, rendered_document
from ruleop.cli import finding_formats as found
from ruleop.cli.options import project_options
from ruleop.cli.passes import Passes, make_passes, pass_options
from ruleop.cli.program import DONE, NO, Command, output_option
from ruleop.cli.terminal import print_diagnostics, print_text, styled_comment
from ruleop.language.templates import yaml_document
from ruleop.planning import Expire
from ruleop.planning.changes import reason_for
from ruleop.printable import json_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.report import ResourceView


@click.command(cls=Command, example="ruleop render -f examples/app.yaml | kubectl diff -f -")
@pass_options
@project_options
@output_option("yaml", "json")
def command(
    folder: str,
    env_files: tuple[str, ...],
    files: tuple[str, ...],
    existing: tuple[str, ...],
    time: str,
    output: str,
) -> int:
    """Print the children of a custom resource as YAML.

    Objects are printed in apply order, each under a comment with its id and template. A child that waits is printed as
    a comment. Values of Secrets are not masked. Exit status 0: all objects were rendered, or wait. 1: some objects
    could not be rendered (see stderr). 2: wrong usage, or the project has mistakes.
    """
    # Random, because the output may be applied: everybody would know a password that is the same each time.
    passes = make_passes(folder, env_files, files, existing, time=time, seed=os.urandom(32), dated=True)
    if output == "json":
        resources = [rendered_document(planned) for planned in passes.planned]
        print_text(json_document({"resources": resources, **passes.unplanned()}))
    else:
        print_text("---\n".join(document for planned in passes.planned for document in _documents(passes, planned)))
    for planned in passes.planned:
        for problem in planned.errors:
            message = f"{problem.child}: {problem.message}"
            if problem.site is not None:
                print_diagnostics(found.failure(problem.site, message, passes.folder))
            else:
                print_diagnostics(mistake(str(planned.key), message))
    return NO if passes.failed else DONE


def _documents(passes: Passes, planned: ResourceView) -> Iterator[str]:
    plan = planned.plan
    assert plan is not None
    whose = f"{plan.resource}: " if len(passes.planned) > 1 else ""
    for child, template, obj in plan.rendered:
        yield f"{styled_comment(f'{whose}{child}, from {template}')}{yaml_document(obj)}"
    waits = [
        styled_comment(f"{action.key} is deleted: {reason_for(action)}")
        for action in plan.actions
        if isinstance(action, Expire)
    ]
    for wait in plan.waits:
        site = f"  {passes.folder.place(wait.site)}" if wait.site is not None else ""
        waits.append(styled_comment(f"{whose}{wait.child} waits for {wait.for_what}{site}"))
    if waits:
        yield "".join(waits)
