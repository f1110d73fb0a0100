"""`ruleop generate docs`."""

from __future__ import annotations

import click

from ruleop.authoring.generate.crd.generated_crds import installed_crds
from ruleop.authoring.generate.kind_docs import MARK, kind_docs
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.program import Command


@click.command(cls=Command, example="ruleop generate docs --out docs/")
@project_options
@generated_options
@force_option
def command(folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool) -> int:
    """Print a reference of the kinds for people who write custom resources, in Markdown.

    For each kind: examples, fields, status, conditions, rules, the objects that are made of it, and what happens on
    deletion. --out writes reference.md. Exit status 0: done. 1: the project has mistakes, or --check found a file that
    is missing or not current. 2: wrong usage, or a file cannot be read or written.
    """
    with reporting(Folder(folder)):
        loaded = load_with_sources(Folder(folder), env_files)
        text = kind_docs(loaded, installed_crds(loaded))
    return print_or_write({"reference.md": text}, text, out=out, check=check, made=Made("" if force else MARK))
