"""`ruleop version`."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

import click
import orjson

import ruleop
from ruleop.cli.program import Command, output_option, write_to


@click.command(cls=Command, example="ruleop version -o json")
@output_option("text", "json")
def command(output: str) -> None:
    """Print the versions of ruleop, Python and the client library."""
    versions = {
        "ruleop": ruleop.__version__,
        "python": platform.python_version(),
        "kubernetes": metadata.version("kubernetes"),
    }
    if output == "json":
        text = orjson.dumps(versions, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    else:
        text = "".join(f"{name:<11}{version}\n" for name, version in versions.items())
    write_to(sys.stdout, text)
