"""`ruleop generate helm`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ruleop.authoring.generate.crd.generated_crds import MARK, installed_crds
from ruleop.authoring.generate.installation.chart_files import chart_files
from ruleop.cli.generating.crd_changes import force_option, refuse_breaking_changes
from ruleop.cli.generating.generated import Made, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.program import Command, UsageError


@click.command(cls=Command, example="ruleop generate helm --out chart && helm install app ./chart")
@project_options
@choice_options("name", "namespaces", "image", "version", "rules")
@generated_options
@force_option
def command(folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool, **flags: Any) -> int:
    """Make a Helm chart that installs the operator.

    Its values are documented in values.yaml. Exit status 0: done. 1: the project has mistakes, its CRDs have changes
    that break what works with those in the chart, or --check found a file that is missing or not current. 2: wrong
    usage, or a file cannot be read or written.
    """
    if out:
        _require_apart(out, folder)
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
        loaded = load_with_sources(Folder(folder), env_files)
        crds = installed_crds(loaded)
        files = chart_files(loaded, choices, crds)
    if out and not (check or force):
        refuse_breaking_changes(crds, sorted(Path(out).glob("files/crds/*.yaml")))
    printed = "".join(f"# path: {path}\n{text}" for path, text in files.items())
    made = Made("" if force else MARK, first="Chart.yaml", folder="files")
    return print_or_write(files, printed, out=out, check=check, made=made)


def _require_apart(out: str, project: str) -> None:
    """A chart has a folder templates/, as a project has."""
    chart, rules = Path(os.path.realpath(out)), Path(os.path.realpath(project))
    if chart == rules or chart.is_relative_to(rules / "templates"):
        raise UsageError(
            f"{out}: the templates of the chart would be among those of the project: name another folder, such as chart"
        )
