"""`ruleop version`."""

from __future__ import annotations

import platform
from importlib import metadata

import click
import orjson

import ruleop


@click.command()
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print it.")
def command(output: str) -> None:
    """Print the versions of ruleop, Python and the client library."""
    versions = {"ruleop": ruleop.__version__, "python": platform.python_version(), "kubernetes": metadata.version("kubernetes")}
    if output == "json":
        click.echo(orjson.dumps(versions, option=orjson.OPT_INDENT_2))
    else:
        click.echo("\n".join(f"{name:<11}{version}" for name, version in versions.items()))
