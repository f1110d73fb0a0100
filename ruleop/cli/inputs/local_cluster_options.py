"""The options of the commands that start a cluster in memory."""

from __future__ import annotations

from pathlib import Path

import click

port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the API server. Default: a free one."
)


def new_file(_context: click.Context, parameter: click.Parameter, path: str) -> str:
    """The callback of an option that names a file to write."""
    if path and Path(path).exists():
        raise click.BadParameter(f"{path} exists; name a file that does not", param_hint=parameter.opts[0])
    return path
