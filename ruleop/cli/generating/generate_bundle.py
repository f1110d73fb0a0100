"""`ruleop generate bundle`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ruleop.authoring.generate.crd.generated_crds import MARK, installed_crds
from ruleop.authoring.generate.installation.bundle import bundle_files
from ruleop.authoring.generate.samples import samples
from ruleop.cli.generating.crd_changes import force_option, refuse_breaking_changes
from ruleop.cli.generating.generated import Made, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.program import Command


@click.command(cls=Command, example="ruleop generate bundle --out bundle/ --version 1.2.0 --replaces 1.1.0")
@project_options
@choice_options("name", "image", "version", "rules")
@click.option("--channel", default="stable", show_default=True, metavar="NAME", help="The channel of the catalogue.")
@click.option("--replaces", default="", metavar="VERSION", help="The version that this one replaces.")
@generated_options
@force_option
def command(
    folder: str,
    env_files: tuple[str, ...],
    *,
    channel: str,
    replaces: str,
    out: str,
    check: bool,
    force: bool,
    **flags: Any,
) -> int:
    """Make a bundle for the Operator Lifecycle Manager.

    What a catalogue shows stands under `about` in ruleop.yaml. Exit status 0: done. 1: the project has mistakes, its
    CRDs have changes that break what works with those in the bundle, or --check found a file that is missing or not
    current. 2: wrong usage, or a file cannot be read or written.
    """
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
        loaded = load_with_sources(Folder(folder), env_files)
        crds = installed_crds(loaded)
        shown = samples(loaded, crds)
        files = bundle_files(loaded, choices, crds, shown, channel=channel, replaces=replaces)
    if out and not (check or force):
        before = (Path(out) / "manifests" / f"{crd['metadata']['name']}.yaml" for crd in crds)
        refuse_breaking_changes(crds, [each for each in before if each.is_file()])
    printed = "".join(f"# path: {path}\n{text}" for path, text in files.items())
    return print_or_write(files, printed, out=out, check=check, made=Made("" if force else MARK, folder="manifests"))
