"""`ruleop generate crd`, `manifests`, `helm`, `image`, `bundle`, `rbac` and `dashboard`: the objects of an operator in
a cluster."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.checking.inferred_definitions import sound_definitions
from ruleop.authoring.generate import (
    MARK,
    alerting_rules,
    breaking_changes,
    bundle_files,
    chart_files,
    crd_files,
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
from ruleop.authoring.report import Span, Tone, counted
from ruleop.authoring.scaffold import rules_text
from ruleop.cli import finding_formats
from ruleop.cli.generated import Output, choice_options, chosen, generated_options, valid
from ruleop.cli.loading import load_with_sources, read_documents
from ruleop.cli.options import Folder, connection_options, project_options
from ruleop.cli.program import DONE, NO, Command, UsageError
from ruleop.cli.terminal import print_diagnostics, print_lines, print_notes
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.schema import SchemaError
from ruleop.language.rules.operator_choices import GENERIC_IMAGE, IMAGE, Choices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.authoring.offline import Document
    from ruleop.authoring.report import Line
    from ruleop.kubernetes.kinds import Object


_FORCE_CRDS: Final = "Overwrite files that `ruleop generate` did not make, and CRDs by those with breaking changes."
"""Of commands that write CRDs into what is installed."""


def compared(crds: Iterable[Object], in_use: Iterable[Object]) -> tuple[list[Line], bool]:
    """The breaking changes of each CRD against the one in use, as lines, and whether there are any."""
    known = {(each["spec"]["group"], each["spec"]["names"]["kind"]): each for each in in_use}
    lines: list[Line] = []
    is_breaking = False
    for crd in crds:
        spec = crd["spec"]
        old = known.get((spec["group"], spec["names"]["kind"]))
        changes = breaking_changes(old, crd) if old is not None else []
        is_breaking |= bool(changes)
        breaking = counted(len(changes), "breaking change") if changes else "no breaking change"
        verdict = Span("new" if old is None else breaking, Tone.BAD if changes else Tone.PLAIN)
        lines.append((Span(f"{crd['metadata']['name']}: ", Tone.TITLE), verdict))
        lines += [(Span("  "), Span(str(change))) for change in changes]
    return lines, is_breaking


def refuse_breaking_changes(crds: Sequence[Object], written: Iterable[Path]) -> None:
    """Ends the command if the files that it wrote earlier have CRDs for which these are breaking changes."""
    names = [str(each) for each in written if each.is_file()]
    lines, is_breaking = compared(crds, written_crds(read_documents(names, folder=".")) if names else ())
    if is_breaking:
        refusal = "nothing was written: clients and custom resources may depend on it; --force writes it"
        print_diagnostics([*lines, (Span(refusal, Tone.BAD),)])
        raise click.exceptions.Exit(NO)


def written_crds(documents: Iterable[Document]) -> list[Object]:
    """The CRDs among the documents of files."""
    found: list[Object] = []
    for document in documents:
        if document.data.get("kind") != "CustomResourceDefinition":
            continue
        try:
            parse_crd(document.data)
        except SchemaError as error:
            raise UsageError(f"{document.site(error.finding.path)}: {error.finding}") from None
        found.append(document.data)
    return found


@click.command(cls=Command, example="ruleop generate crd --out crds/")
@project_options
@generated_options()
@click.option(
    "--against",
    default="",
    metavar="FILE",
    help="Compare all CRDs of the project with those of a file or folder: name each change that breaks what works "
    "with them, and write nothing.",
)
@click.option("--live", is_flag=True, help="Like --against, with the CRDs of the cluster.")
@connection_options
def generate_crd(folder: str, env_files: tuple[str, ...], to: Output, **flags: Any) -> int:
    """Print the CustomResourceDefinitions of the watches that have `schema`.

    The fields of the status are inferred from the rules. --out writes a file for each kind. Exit status 0: done. 1: the
    project has mistakes, --check found a file that is missing or not current, or --against or --live found a breaking
    change. 2: wrong usage, a file cannot be read or written, or the cluster cannot be used.
    """
    against, live = flags["against"], flags["live"]
    if (against or live) and (to.out or to.check):
        raise UsageError("--against and --live write nothing: use them without --out and --check")
    if against and live:
        raise UsageError("--against compares with files and --live with the cluster: use one of them")
    loaded = load_with_sources(Folder(folder), env_files)
    if against or live:
        crds = installed_crds(loaded)
        in_use = _of_cluster(crds, flags) if live else written_crds(read_documents([against], folder=folder))
        lines, is_breaking = compared(crds, in_use)
        print_lines(lines)
        return NO if is_breaking else DONE
    definitions = sound_definitions(loaded)
    if not definitions:
        raise UsageError("no watch has `schema`: there is nothing to generate")
    files = crd_files(definitions)
    return to.write(files, yaml_stream(files))


def _of_cluster(crds: list[Object], flags: Mapping[str, Any]) -> list[Object]:
    # Imports the client, which only --live needs.
    from ruleop.authoring.live import definitions_in_use  # noqa: PLC0415
    from ruleop.cli.live_cluster import run_reading  # noqa: PLC0415
    from ruleop.operator.wire.client.server_errors import ApiError  # noqa: PLC0415

    try:
        return run_reading(definitions_in_use(crds, flags["kubeconfig"], flags["context"]))
    except ApiError as error:
        raise UsageError(f"the CRDs of the cluster cannot be read: {error}") from None


# -- an operator in a cluster ------------------------------------------------------------------------------------------


@click.command(cls=Command, example="ruleop generate manifests | kubectl apply -f -")
@project_options
@choice_options("name", "namespace", "namespaces", "image", "version", "rules", "rules-image")
@generated_options(_FORCE_CRDS)
def generate_manifests(folder: str, env_files: tuple[str, ...], to: Output, **flags: Any) -> int:
    """Print the objects that install the operator: CRDs, roles, rules and Deployment.

    --out writes a folder for `kubectl apply -k`, with components to choose from. Exit status 0: done. 1: the project
    has mistakes, its CRDs have changes that break what works with those in the folder, or --check found a file that is
    missing or not current. 2: wrong usage, or a file cannot be read or written.
    """
    choices = chosen(folder, flags)
    loaded = load_with_sources(Folder(folder), env_files)
    found = installation(loaded, choices, installed_crds(loaded))
    if to.replaces:
        refuse_breaking_changes(found.crds, [Path(to.out) / "crds.yaml"])
    _note_missing_image(choices)
    return to.write(kustomize_base(found), install_yaml(found))


@click.command(cls=Command, example="ruleop generate helm --out chart && helm install app ./chart")
@project_options
@choice_options("name", "namespaces", "image", "version", "rules", "rules-image")
@generated_options(_FORCE_CRDS)
def generate_helm(folder: str, env_files: tuple[str, ...], to: Output, **flags: Any) -> int:
    """Make a Helm chart that installs the operator.

    Its values are documented in values.yaml. Exit status 0: done. 1: the project has mistakes, its CRDs have changes
    that break what works with those in the chart, or --check found a file that is missing or not current. 2: wrong
    usage, or a file cannot be read or written.
    """
    if to.out:
        _require_apart(to.out, folder)
    choices = chosen(folder, flags)
    loaded = load_with_sources(Folder(folder), env_files)
    crds = installed_crds(loaded)
    files = chart_files(loaded, choices, crds)
    if to.replaces:
        refuse_breaking_changes(crds, sorted(Path(to.out).glob("files/crds/*.yaml")))
    _note_missing_image(choices)
    printed = "".join(f"# path: {path}\n{text}" for path, text in files.items())
    return to.write(files, printed, first="Chart.yaml", folder="files")


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
    print_notes([note])


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
@generated_options()
def generate_image(
    folder: str,
    env_files: tuple[str, ...],
    *,
    base: str,
    rules_only: bool,
    to: Output,
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
        valid("base", base, IMAGE)
    choices = chosen(folder, flags)
    loaded = load_with_sources(Folder(folder), env_files)
    files = image_files(loaded.files, choices, None if rules_only else base or GENERIC_IMAGE)
    if not (base or rules_only):
        _print_image_note(_BUILD_GENERIC, "--base")
    return to.write(files, files["Dockerfile"])


@click.command(cls=Command, example="ruleop generate bundle --out bundle/ --version 1.2.0 --replaces 1.1.0")
@project_options
@choice_options("name", "image", "version", "rules")
@click.option("--channel", default="stable", show_default=True, metavar="NAME", help="The channel of the catalogue.")
@click.option("--replaces", default="", metavar="VERSION", help="The version that this one replaces.")
@generated_options(_FORCE_CRDS)
def generate_bundle(
    folder: str,
    env_files: tuple[str, ...],
    *,
    channel: str,
    replaces: str,
    to: Output,
    **flags: Any,
) -> int:
    """Make a bundle for the Operator Lifecycle Manager.

    What a catalogue shows stands under `about` in ruleop.yaml. Exit status 0: done. 1: the project has mistakes, its
    CRDs have changes that break what works with those in the bundle, or --check found a file that is missing or not
    current. 2: wrong usage, or a file cannot be read or written.
    """
    choices = chosen(folder, flags)
    loaded = load_with_sources(Folder(folder), env_files)
    crds = installed_crds(loaded)
    shown = samples(loaded, crds)
    files = bundle_files(loaded, choices, crds, shown, channel=channel, replaces=replaces)
    if to.replaces:
        before = (Path(to.out) / "manifests" / f"{crd['metadata']['name']}.yaml" for crd in crds)
        refuse_breaking_changes(crds, [each for each in before if each.is_file()])
    _note_missing_image(choices)
    printed = "".join(f"# path: {path}\n{text}" for path, text in files.items())
    return to.write(files, printed, folder="manifests")


@click.command(cls=Command, example="ruleop generate rbac --namespaces blog,shop")
@project_options
@choice_options("name", "namespace", "namespaces")
@generated_options()
@click.option("--users", is_flag=True, help="Also roles for people: view, edit and admin of the custom resources.")
def generate_rbac(folder: str, env_files: tuple[str, ...], to: Output, users: bool, **flags: Any) -> int:
    """Print the service account, the roles and the bindings of the operator.

    They grant exactly what the rules need, each rule with its reason. With --namespaces there are Roles in these
    namespaces, and no ClusterRole unless something cannot do without. Exit status 0: done. 1: the project has mistakes,
    a permission cannot be computed, or --check found a file that is missing or not current. 2: wrong usage, or a file
    cannot be read or written.
    """
    where = Folder(folder)
    choices = chosen(folder, flags)
    loaded = load_with_sources(where, env_files)
    roles = operator_roles(loaded, choices)
    print_diagnostics(finding_formats.lines(roles.warnings, where))
    wide = [*wide_permissions(roles, choices)]
    print_notes(wide)
    objects = [service_account(choices), *role_objects(roles, choices, comments=True)]
    header = f"{MARK} rbac` from the rules: change them there.\n" + "".join(f"# {each}\n" for each in wide)
    files = {"rbac.yaml": header + "---\n".join(map(rules_text, objects))}
    if users:
        header = f"{MARK} rbac --users` from the rules: change them there.\n"
        files["users.yaml"] = header + "---\n".join(map(rules_text, user_roles(loaded.project, choices)))
    return to.write(files, yaml_stream(files))


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
@generated_options()
def generate_dashboard(folder: str, *, job: str, output: str, to: Output, **flags: Any) -> int:
    """Print a Grafana dashboard of the operator, or its alerts.

    --out writes both, the dashboard also as a ConfigMap that Grafana's sidecar finds. Exit status 0: done. 1:
    ruleop.yaml has mistakes, or --check found a file that is missing or not current. 2: wrong usage, or a file cannot
    be read or written.
    """
    choices = chosen(folder, flags)
    job = job or metrics_job(choices)
    if not _PLAIN.fullmatch(job):
        raise UsageError(f'--job must be letters, digits and any of "_.:/-", not "{job}"')
    files = monitoring_files(choices, job)
    printed = {"dashboard": files["dashboard.json"], "alerts": files["alerts.yaml"], "rules": alerting_rules(job)}
    return to.write(files, printed[output], first="alerts.yaml")  # JSON has no comments
