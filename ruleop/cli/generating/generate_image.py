"""`ruleop generate image`."""

from __future__ import annotations

from typing import Any

import click

from ruleop.authoring.generate.crd.generated_crds import MARK
from ruleop.authoring.generate.installation.operator_choices import GENERIC_IMAGE
from ruleop.authoring.generate.installation.rule_files import image_files
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen, require_image
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.program import Command


@click.command(cls=Command, example="ruleop generate image --out . && docker build -t app-operator:1.2.0 .")
@project_options
@choice_options("name", "version")
@click.option("--base", default=GENERIC_IMAGE, show_default=True, metavar="IMAGE", help="The generic image.")
@generated_options
@force_option
def command(
    folder: str, env_files: tuple[str, ...], base: str, out: str, check: bool, force: bool, **flags: Any
) -> int:
    """Print a Dockerfile that puts these rules on the generic image.

    --out writes it with a .dockerignore; its folder is that of the project. Exit status 0: done. 1: the project has
    mistakes, or --check found a file that is missing or not current. 2: wrong usage, or a file cannot be read or
    written.
    """
    require_image("base", base)
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
        files = image_files(load_with_sources(Folder(folder), env_files).files, choices, base)
    made = Made("" if force else MARK)
    return print_or_write(files, files["Dockerfile"], out=out, check=check, made=made)
