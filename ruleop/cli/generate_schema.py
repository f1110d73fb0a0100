"""`ruleop generate schema`."""

from __future__ import annotations

import click

from ruleop.cli.generated import generated_options, print_or_write
from ruleop.cli.program import Command
from ruleop.scaffold.schemas import WATCHES, schema_files


@click.command(cls=Command, example="ruleop generate schema --out schemas/")
@generated_options
def command(out: str, check: bool) -> int:
    """Print the JSON Schema of watches.yaml, for editors.

    An editor with the YAML language server finds it by a comment at the top of watches.yaml:
    `# yaml-language-server: $schema=schemas/watches.schema.json`. Exit status 0: done. 1: --check found a file that is
    missing or not current. 2: wrong usage, or a file cannot be written.
    """
    return print_or_write(schema_files(), WATCHES, out=out, check=check)
