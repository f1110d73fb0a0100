"""`ruleop generate schema`."""

from __future__ import annotations

import click

from ruleop.cli.generated import generated_options, print_or_write
from ruleop.cli.program import Command
from ruleop.rules import watches_schema
from ruleop.ruletests.format import test_schema
from ruleop.scaffold.schemas import TESTS, WATCHES, schema_text


@click.command(cls=Command, example="ruleop generate schema --out schemas/")
@click.option("--tests", is_flag=True, help="The schema of rule tests (*.test.yaml), instead of that of watches.yaml.")
@generated_options
def command(tests: bool, out: str, check: bool) -> int:
    """Print the JSON Schema of watches.yaml or of rule tests, for editors.

    --out writes both to files, or with --tests one. An editor with the YAML language server finds a schema by a comment
    at the top of a file, such as `# yaml-language-server: $schema=schemas/watches.schema.json`. Exit status 0: done. 1:
    --check found a file that is missing or not current. 2: wrong usage, or a file cannot be written.
    """
    files = schema_files()
    printed = files[TESTS if tests else WATCHES]
    return print_or_write({TESTS: files[TESTS]} if tests else files, printed, out=out, check=check)


def schema_files() -> dict[str, str]:
    """The text of each schema, by the name of its file."""
    return {WATCHES: schema_text(watches_schema()), TESTS: schema_text(test_schema())}
