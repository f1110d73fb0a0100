"""`ruleop generate manifests`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ruleop.authoring.generate.crd.generated_crds import MARK, installed_crds
from ruleop.authoring.generate.installation.manifests import install_yaml, installation, kustomize_base
from ruleop.cli.generating.crd_changes import force_option, refuse_breaking_changes
from ruleop.cli.generating.generated import Made, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.program import Command


@click.command(cls=Command, example="ruleop generate manifests | kubectl apply -f -")
@project_options
@choice_options("name", "namespace", "namespaces", "image", "version", "rules")
@generated_options
@force_option
def command(folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool, **flags: Any) -> int:
    """Print the objects that install the operator: CRDs, roles, rules and Deployment.

    --out writes a folder for `kubectl apply -k`, with components to choose from. Exit status 0: done. 1: the project
    has mistakes, its CRDs have changes that break what works with those in the folder, or --check found a file that is
    missing or not current. 2: wrong usage, or a file cannot be read or written.
    """
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
        loaded = load_with_sources(Folder(folder), env_files)
        found = installation(loaded, choices, installed_crds(loaded))
    if out and not (check or force):
        refuse_breaking_changes(found.crds, [Path(out) / "crds.yaml"])
    return print_or_write(
        kustomize_base(found), install_yaml(found), out=out, check=check, made=Made("" if force else MARK)
    )
