"""`ruleop generate graph`."""

from __future__ import annotations

import click

from ruleop.authoring.generate.crd.generated_crds import MARK
from ruleop.authoring.generate.graph.graph_svg import svg
from ruleop.authoring.generate.graph.graph_texts import dot, mermaid
from ruleop.authoring.generate.graph.rule_graph import rule_graph
from ruleop.cli.generating.generated import Made, force_option, generated_options, print_or_write, reporting
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.program import Command, UsageError
from ruleop.core.printable import printable_lines
from ruleop.core.rules.findings import did_you_mean_quoted

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
@generated_options
@force_option
def command(folder: str, env_files: tuple[str, ...], kind: str, output: str, out: str, check: bool, force: bool) -> int:
    """Draw each rule: its children, the objects that it observes, and what depends on what.

    An edge leads from what comes first to what depends on it; a bold one means that it waits until the first is ready.
    --out writes graph.mmd, graph.dot or graph.svg. Exit status 0: done. 1: the project has mistakes, or --check found a
    file that is missing or not current. 2: wrong usage, or a file cannot be read or written.
    """
    with reporting(Folder(folder)):
        loaded = load_with_sources(Folder(folder), env_files)
    kinds = {watch.rule.kind.kind for watch in loaded.watches}
    if kind and kind not in kinds:
        raise UsageError(f'no rule is of the kind "{kind}"{did_you_mean_quoted(kind, kinds)}')
    drawn, suffix, start, end = _FORMATS[output]
    graphs = [rule_graph(watch, loaded) for watch in loaded.watches if kind in ("", watch.rule.kind.kind)]
    mark = f"{start}{MARK.removeprefix('#')}"
    text = f"{mark} graph` from the rules: change them there.{end}\n{printable_lines(drawn(graphs))}"
    return print_or_write({f"graph.{suffix}": text}, text, out=out, check=check, made=Made("" if force else mark))
