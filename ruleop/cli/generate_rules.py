"""`ruleop generate argocd`, `docs`, `graph`, `policy` and `schema`: what else is made from the rules, or helps to
write them."""

from __future__ import annotations

from typing import Any

import click

from ruleop.authoring.generate import (
    CONFIG_MAP,
    MARK,
    PAGE_MARK,
    argocd_text,
    dot,
    health_kinds,
    installed_crds,
    kind_docs,
    mermaid,
    policies,
    policy_text,
    rule_graph,
    svg,
)
from ruleop.authoring.ruletests.format import test_schema
from ruleop.authoring.scaffold import CHOICES, TESTS, WATCHES
from ruleop.cli.generated import Output, choice_options, chosen, generated_options, valid
from ruleop.cli.loading import load_with_sources
from ruleop.cli.options import Folder, project_options
from ruleop.cli.program import Command, UsageError
from ruleop.cli.terminal import print_notes
from ruleop.language.rules.keys.watches_yaml import watches_schema
from ruleop.language.rules.operator_choices import NAMESPACE, choices_schema
from ruleop.nearest import did_you_mean_quoted
from ruleop.printable import json_document, printable_lines


@click.command(
    cls=Command, example="ruleop generate argocd | kubectl apply --server-side --field-manager=ruleop-health -f -"
)
@project_options
@click.option(
    "--argocd-namespace", default="argocd", show_default=True, metavar="NAMESPACE", help="The namespace of Argo CD."
)
@generated_options()
def generate_argocd(folder: str, env_files: tuple[str, ...], argocd_namespace: str, to: Output) -> int:
    """Print the health of the kinds for Argo CD, which otherwise takes each custom resource for healthy.

    It is a part of the ConfigMap argocd-cm: a script in Lua for each kind, which reads the conditions of its operator.
    Server-side apply leaves the other parts as they are. Flux needs nothing: it reads the same conditions. --out writes
    argocd-cm.yaml. Exit status 0: done. 1: the project has mistakes, or --check found a file that is missing or not
    current. 2: wrong usage, no kind has these conditions, or a file cannot be read or written.
    """
    valid("argocd-namespace", argocd_namespace, NAMESPACE)
    loaded = load_with_sources(Folder(folder), env_files)
    kinds, notes = health_kinds(loaded, installed_crds(loaded))
    print_notes(notes)
    if not kinds:
        raise UsageError("no kind has the conditions of ruleop: there is nothing to generate")
    text = argocd_text(kinds, argocd_namespace)
    return to.write({f"{CONFIG_MAP}.yaml": text}, text)


@click.command(cls=Command, example="ruleop generate docs --out docs/")
@project_options
@generated_options()
def generate_docs(folder: str, env_files: tuple[str, ...], to: Output) -> int:
    """Print a reference of the kinds for people who write custom resources, in Markdown.

    For each kind: examples, fields, status, conditions, rules, the objects that are made of it, and what happens on
    deletion. --out writes reference.md. Exit status 0: done. 1: the project has mistakes, or --check found a file that
    is missing or not current. 2: wrong usage, or a file cannot be read or written.
    """
    loaded = load_with_sources(Folder(folder), env_files)
    text = kind_docs(loaded, installed_crds(loaded))
    return to.write({"reference.md": text}, text, mark=PAGE_MARK)


_FORMATS = {"mermaid": (mermaid, "mmd", "%%", ""), "dot": (dot, "dot", "#", ""), "svg": (svg, "svg", "<!--", " -->")}


@click.command(cls=Command, example="ruleop generate graph -o svg > graph.svg")
@project_options
@click.option("--kind", default="", metavar="KIND", help="Only the rules of this kind.")
@click.option(
    "-o",
    "--output",
    type=click.Choice([*_FORMATS]),
    default="mermaid",
    show_default=True,
    help="Mermaid, which GitHub and GitLab draw in Markdown; the language of Graphviz; or a finished picture.",
)
@generated_options()
def generate_graph(folder: str, env_files: tuple[str, ...], kind: str, output: str, to: Output) -> int:
    """Draw each rule: its children, the objects that it observes, and what depends on what.

    An edge leads from what comes first to what depends on it; a bold one means that it waits until the first is ready.
    --out writes graph.mmd, graph.dot or graph.svg. Exit status 0: done. 1: the project has mistakes, or --check found a
    file that is missing or not current. 2: wrong usage, or a file cannot be read or written.
    """
    loaded = load_with_sources(Folder(folder), env_files)
    kinds = {watch.rule.kind.kind for watch in loaded.watches}
    if kind and kind not in kinds:
        raise UsageError(f'no rule is of the kind "{kind}"{did_you_mean_quoted(kind, kinds)}')
    drawn, suffix, start, end = _FORMATS[output]
    graphs = [rule_graph(watch, loaded) for watch in loaded.watches if kind in ("", watch.rule.kind.kind)]
    mark = f"{start}{MARK.removeprefix('#')}"
    text = f"{mark} graph` from the rules: change them there.{end}\n{printable_lines(drawn(graphs))}"
    return to.write({f"graph.{suffix}": text}, text, mark=mark)


@click.command(cls=Command, example="ruleop generate policy | kubectl apply -f -")
@project_options
@choice_options("name", "namespaces")
@generated_options()
def generate_policy(folder: str, env_files: tuple[str, ...], to: Output, **flags: Any) -> int:
    """Print admission policies of the rules of `validate`, so that the API server refuses what breaks them.

    A rule that CEL cannot express exactly stays with the operator alone: a note on stderr has its line and the reason.
    Exit status 0: done. 1: the project has mistakes, or --check found a file that is missing or not current. 2: wrong
    usage, there is no such rule, or a file cannot be read or written.
    """
    choices = chosen(folder, flags)
    loaded = load_with_sources(Folder(folder), env_files)
    found, kept = policies(loaded)
    print_notes(kept)
    if not found:
        raise UsageError("no rule of `validate` that CEL can express: there is nothing to generate")
    text = policy_text(found, kept, choices)
    return to.write({"policy.yaml": text}, text)


@click.command(cls=Command, example="ruleop generate schema --out schemas/")
@click.option("--tests", is_flag=True, help="The schema of rule tests (*.test.yaml), instead of that of watches.yaml.")
@click.option("--choices", is_flag=True, help="The schema of ruleop.yaml, instead of that of watches.yaml.")
@generated_options("")
def generate_schema(tests: bool, choices: bool, to: Output) -> int:
    """Print the JSON Schema of watches.yaml, of rule tests or of ruleop.yaml, for editors.

    --out writes all to files, or with --tests or --choices one. An editor with the YAML language server finds a schema
    by a comment at the top of a file, such as `# yaml-language-server: $schema=schemas/watches.schema.json`. Exit
    status 0: done. 1: --check found a file that is missing or not current. 2: wrong usage, or a file cannot be written.
    """
    files = schema_files()
    if tests and choices:
        raise UsageError("--tests and --choices exclude each other")
    name = TESTS if tests else CHOICES if choices else WATCHES
    return to.write(files if name == WATCHES else {name: files[name]}, files[name])


def schema_files() -> dict[str, str]:
    """The text of each schema, by the name of its file."""
    return {
        WATCHES: json_document(watches_schema()),
        TESTS: json_document(test_schema()),
        CHOICES: json_document(choices_schema()),
    }
