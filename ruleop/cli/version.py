"""`ruleop version`."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

import click
import orjson

import ruleop
from ruleop.cli.program import Command, put


@click.command(cls=Command)
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format.")
def command(output: str) -> None:
    """Print the versions of ruleop, Python and the client library."""
    versions = {"ruleop": ruleop.__version__, "python": platform.python_version(), "kubernetes": metadata.version("kubernetes")}
    if output == "json":
        text = orjson.dumps(versions, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    else:
        text = "".join(f"{name:<11}{version}\n" for name, version in versions.items())
    put(sys.stdout, text)
