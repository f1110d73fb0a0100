"""`ruleop generate rbac`."""

from __future__ import annotations

from typing import Any

import click

from ruleop.authoring.generate.crd.generated_crds import MARK, yaml_stream
from ruleop.authoring.generate.installation.operator_roles import (
    operator_roles,
    role_objects,
    service_account,
    user_roles,
    wide_permissions,
)
from ruleop.authoring.report.plan_text import Span, Tone
from ruleop.authoring.scaffold.yaml_layout import rules_text
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.outputs import finding_formats
from ruleop.cli.outputs.terminal import print_diagnostics
from ruleop.cli.program import Command


@click.command(cls=Command, example="ruleop generate rbac --namespaces blog,shop")
@project_options
@choice_options("name", "namespace", "namespaces")
@generated_options
@force_option
@click.option("--users", is_flag=True, help="Also roles for people: view, edit and admin of the custom resources.")
def command(
    folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool, users: bool, **flags: Any
) -> int:
    """Print the service account, the roles and the bindings of the operator.

    They grant exactly what the rules need, each rule with its reason. With --namespaces there are Roles in these
    namespaces, and no ClusterRole unless something cannot do without. Exit status 0: done. 1: the project has mistakes,
    a permission cannot be computed, or --check found a file that is missing or not current. 2: wrong usage, or a file
    cannot be read or written.
    """
    where = Folder(folder)
    with reporting(where):
        choices = chosen(folder, flags)
        loaded = load_with_sources(where, env_files)
        roles = operator_roles(loaded, choices)
    print_diagnostics(finding_formats.lines(roles.warnings, where))
    wide = [*wide_permissions(roles, choices)]
    print_diagnostics((Span("note: ", Tone.FAINT), Span(each)) for each in wide)
    objects = [service_account(choices), *role_objects(roles, choices, comments=True)]
    header = f"{MARK} rbac` from the rules: change them there.\n" + "".join(f"# {each}\n" for each in wide)
    files = {"rbac.yaml": header + "---\n".join(map(rules_text, objects))}
    if users:
        header = f"{MARK} rbac --users` from the rules: change them there.\n"
        files["users.yaml"] = header + "---\n".join(map(rules_text, user_roles(loaded.project, choices)))
    return print_or_write(files, yaml_stream(files), out=out, check=check, made=Made("" if force else MARK))
