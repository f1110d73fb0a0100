"""`ruleop history`: what changed on a custom resource of a cluster, and when."""

from __future__ import annotations

from typing import Any

import click

from ruleop.authoring.live import Historian
from ruleop.authoring.report import as_document, history_lines
from ruleop.cli.inputs.cluster_options import cluster_options
from ruleop.cli.inputs.live_cluster import on_cluster, read_target
from ruleop.cli.inputs.project import debug_option, folder_option
from ruleop.cli.outputs.terminal import print_lines, print_text
from ruleop.cli.program import DONE, Command, output_option
from ruleop.printable import json_document


@click.command(cls=Command, example="ruleop history App/app-sample -n default")
@click.argument("names", nargs=-1, metavar="KIND/NAME")
@cluster_options
@folder_option
@debug_option
@output_option("text", "json")
def command(folder: str, names: tuple[str, ...], output: str, **flags: Any) -> int:
    """Show what changed on a custom resource of a cluster, and when.

    Lists in the order of time: the revisions of the rules, edits of the custom resource, what was written to its
    children and by whom, and Events. Reads only, from what the cluster keeps. Fields are named, their values are not
    shown. The kind is named as for kubectl. Exit status 0: shown. 1: it does not exist, or cannot be read. 2: wrong
    usage, or the cluster cannot be used.
    """
    kind, name = read_target(names, "name the custom resource: KIND/NAME")
    history = on_cluster(folder, flags, lambda cluster: Historian(cluster).history(kind, name))
    if output == "json":
        print_text(json_document(as_document(history)))
    else:
        print_lines(history_lines(history))
    return DONE
