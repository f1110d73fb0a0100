"""`ruleop generate manifests`, `helm`, `image`, `bundle`, `rbac` and `dashboard`: an operator in a cluster."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

import click

from ruleop.authoring.generate import (
    MARK,
    alerting_rules,
    bundle_files,
    chart_files,
    image_files,
    install_yaml,
    installation,
    installed_crds,
    kustomize_base,
    metrics_job,
    monitoring_files,
    operator_roles,
    role_objects,
    samples,
    service_account,
    user_roles,
    wide_permissions,
    yaml_stream,
)
from ruleop.authoring.report import Span, Tone
from ruleop.authoring.scaffold import rules_text
from ruleop.cli.generating.generate_crd import force_crds_option, refuse_breaking_changes
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.choices import choice_options, chosen, require_image
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.outputs import finding_formats
from ruleop.cli.outputs.terminal import print_diagnostics
from ruleop.cli.program import Command, UsageError
from ruleop.language.rules.operator_choices import GENERIC_IMAGE, Choices


@click.command(cls=Command, example="ruleop generate manifests | kubectl apply -f -")
@project_options
@choice_options("name", "namespace", "namespaces", "image", "version", "rules", "rules-image")
@generated_options
@force_crds_option
def generate_manifests(
    folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool, **flags: Any
) -> int:
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
    _note_missing_image(choices)
    return print_or_write(
        kustomize_base(found), install_yaml(found), out=out, check=check, made=Made("" if force else MARK)
    )


@click.command(cls=Command, example="ruleop generate helm --out chart && helm install app ./chart")
@project_options
@choice_options("name", "namespaces", "image", "version", "rules", "rules-image")
@generated_options
@force_crds_option
def generate_helm(folder: str, env_files: tuple[str, ...], out: str, check: bool, force: bool, **flags: Any) -> int:
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
    _note_missing_image(choices)
    printed = "".join(f"# path: {path}\n{text}" for path, text in files.items())
    made = Made("" if force else MARK, first="Chart.yaml", folder="files")
    return print_or_write(files, printed, out=out, check=check, made=made)


_PUSHED: Final = f"REGISTRY/{GENERIC_IMAGE}"
_BUILD_GENERIC: Final = f"in a checkout of ruleop, `make image IMAGE={_PUSHED}`"
_BUILD_OWN: Final = f"`ruleop generate image --out .` and `docker build -t {_PUSHED} .`"


def _note_missing_image(choices: Choices) -> None:
    if choices.image == GENERIC_IMAGE:
        build = _BUILD_OWN if choices.rules == "image" else _BUILD_GENERIC
        _print_image_note(build, "--image, or `image` in ruleop.yaml")


def _print_image_note(build: str, option: str) -> None:
    """No registry has the image that is the default."""
    note = f"no registry has the image {GENERIC_IMAGE}: build it ({build}), push it, and name it with {option}"
    print_diagnostics([(Span("note: ", Tone.FAINT), Span(note))])


def _require_apart(out: str, project: str) -> None:
    """A chart has a folder templates/, as a project has."""
    chart, rules = Path(os.path.realpath(out)), Path(os.path.realpath(project))
    if chart == rules or chart.is_relative_to(rules / "templates"):
        raise UsageError(
            f"{out}: the templates of the chart would be among those of the project: name another folder, such as chart"
        )


@click.command(cls=Command, example="ruleop generate image --out . && docker build -t app-operator:1.2.0 .")
@project_options
@choice_options("name", "version")
@click.option("--base", default="", metavar="IMAGE", help=f"The generic image. Default: {GENERIC_IMAGE}.")
@click.option("--rules-only", is_flag=True, help="An image of the rules alone, to mount on the generic image.")
@generated_options
@force_option
def generate_image(
    folder: str,
    env_files: tuple[str, ...],
    *,
    base: str,
    rules_only: bool,
    out: str,
    check: bool,
    force: bool,
    **flags: Any,
) -> int:
    """Print a Dockerfile that puts these rules on the generic image.

    With --rules-only the image has the rules and nothing else, for --rules-image of `generate helm` and `manifests`.
    --out writes it with a .dockerignore; its folder is that of the project. Exit status 0: done. 1: the project has
    mistakes, or --check found a file that is missing or not current. 2: wrong usage, or a file cannot be read or
    written.
    """
    if base and rules_only:
        raise UsageError("--rules-only starts from no image: use it without --base")
    if base:
        require_image("base", base)
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
        loaded = load_with_sources(Folder(folder), env_files)
        files = image_files(loaded.files, choices, None if rules_only else base or GENERIC_IMAGE)
    if not (base or rules_only):
        _print_image_note(_BUILD_GENERIC, "--base")
    made = Made("" if force else MARK)
    return print_or_write(files, files["Dockerfile"], out=out, check=check, made=made)


@click.command(cls=Command, example="ruleop generate bundle --out bundle/ --version 1.2.0 --replaces 1.1.0")
@project_options
@choice_options("name", "image", "version", "rules")
@click.option("--channel", default="stable", show_default=True, metavar="NAME", help="The channel of the catalogue.")
@click.option("--replaces", default="", metavar="VERSION", help="The version that this one replaces.")
@generated_options
@force_crds_option
def generate_bundle(
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
    _note_missing_image(choices)
    printed = "".join(f"# path: {path}\n{text}" for path, text in files.items())
    return print_or_write(files, printed, out=out, check=check, made=Made("" if force else MARK, folder="manifests"))


@click.command(cls=Command, example="ruleop generate rbac --namespaces blog,shop")
@project_options
@choice_options("name", "namespace", "namespaces")
@generated_options
@force_option
@click.option("--users", is_flag=True, help="Also roles for people: view, edit and admin of the custom resources.")
def generate_rbac(
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


_PLAIN: Final = re.compile(r"[\w.:/-]+", re.ASCII)


@click.command(cls=Command, example="ruleop generate dashboard --out monitoring/")
@project_options
@choice_options("name", "namespace")
@click.option("--job", default="", metavar="JOB", help="Label `job` of the metrics. Default: NAME-metrics.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["dashboard", "alerts", "rules"]),
    default="dashboard",
    show_default=True,
    help="What is printed: the dashboard, the alerts as a PrometheusRule, or as a file for Prometheus.",
)
@generated_options
@force_option
def generate_dashboard(folder: str, *, job: str, output: str, out: str, check: bool, force: bool, **flags: Any) -> int:
    """Print a Grafana dashboard of the operator, or its alerts.

    --out writes both, the dashboard also as a ConfigMap that Grafana's sidecar finds. Exit status 0: done. 1:
    ruleop.yaml has mistakes, or --check found a file that is missing or not current. 2: wrong usage, or a file cannot
    be read or written.
    """
    with reporting(Folder(folder)):
        choices = chosen(folder, flags)
    job = job or metrics_job(choices)
    if not _PLAIN.fullmatch(job):
        raise UsageError(f'--job must be letters, digits and any of "_.:/-", not "{job}"')
    files = monitoring_files(choices, job)
    printed = {"dashboard": files["dashboard.json"], "alerts": files["alerts.yaml"], "rules": alerting_rules(job)}
    made = Made("" if force else MARK, first="alerts.yaml")  # JSON has no comments
    return print_or_write(files, printed[output], out=out, check=check, made=made)
